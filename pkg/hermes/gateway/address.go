package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// errAddress is why an address is not dialled.
var errAddress = errors.New("link-local and metadata addresses are not allowed")

// metadata are the addresses at which clouds tell a machine's secrets, besides
// the link-local ones.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),
	netip.MustParsePrefix("fd20:ce::/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
}

// translated are the prefixes behind which an IPv4 address stands in the last
// four bytes.
var translated = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("::/96"),
}

// harmful reports whether only somebody who means harm names address as a node
// (section 9.8). Private addresses are where nodes usually live.
func harmful(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	for _, prefix := range translated {
		if prefix.Contains(address) && address != netip.IPv6Loopback() && !address.IsUnspecified() {
			raw := address.As16()
			return harmful(netip.AddrFrom4([4]byte(raw[12:])))
		}
	}
	if address.IsLinkLocalUnicast() || address.IsMulticast() {
		return true
	}
	for _, prefix := range metadata {
		if prefix.Contains(address) {
			return true
		}
	}
	return address == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// dialer returns how connections are made: directly, never by a proxy of the
// environment, and to an address that was judged after the name was resolved.
func (c *Client) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if c.config.Dial != nil {
		return c.config.Dial
	}
	dialer := &net.Dialer{Timeout: c.timers.Dial}
	if !c.config.AnyAddress {
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil || harmful(resolved.Addr()) {
				return errAddress
			}
			return nil
		}
	}
	return dialer.DialContext
}
