package gateway

import (
	"net/netip"
	"testing"
)

// Ensures that addresses at which clouds tell secrets are recognised in every
// spelling, and that those where nodes live are not.
func TestHarmful(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"169.254.169.254": true, "169.254.0.1": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "::a9fe:a9fe": true,
		"fe80::1": true, "fe80::1%eth0": true, "fd00:ec2::254": true, "100.100.100.200": true, "168.63.129.16": true, "224.0.0.1": true,
		"ff02::1": true, "255.255.255.255": true, "192.0.0.192": true, "fd20:ce::254": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "172.16.0.1": false, "fd12::1": false,
		"8.8.8.8": false, "2001:db8::1": false, "::ffff:10.0.0.1": false, "100.64.0.1": false,
	} {
		if got := harmful(netip.MustParseAddr(address)); got != want {
			t.Errorf("harmful(%s) = %v", address, got)
		}
	}
}
