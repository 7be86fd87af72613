//go:build !amd64

package sandbox

// legacyCalls has nothing to try: newer architectures do without them.
func (a *attacker) legacyCalls() {}

// probeTails are those of amd64 alone.
func probeTails() []uintptr { return nil }
