//go:build race

package api_test

// slack is how much slower everything may be under the race detector.
const slack = 20
