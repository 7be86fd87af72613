//go:build !race

package api_test

// slack is how much slower everything may be than it should.
const slack = 1
