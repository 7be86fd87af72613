//go:build !race

package store

// slowdown is how many times slower than usual this build may be.
const slowdown = 1
