//go:build !cgo

package sandbox

// threadList is a directory that must stay listable; here there is none.
func threadList() string { return "" }
