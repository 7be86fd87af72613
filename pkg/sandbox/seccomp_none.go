//go:build !amd64 && !arm64

package sandbox

// allowedCalls is empty where no list was ever tried: there is no filter then.
func allowedCalls(int) []call { return nil }
