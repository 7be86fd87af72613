package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"

	"github.com/newos4/relay/pkg/workspace"
)

// ErrAddress says that an address is none to which a user may send this server.
var ErrAddress = errors.New("the address is link-local, a metadata service or no host's")

// metadata returns the addresses of cloud metadata services that are not
// link-local.
func metadata() []netip.Addr {
	return []netip.Addr{
		netip.MustParseAddr("100.100.100.200"),
		netip.MustParseAddr("192.0.0.192"),
		netip.MustParseAddr("fd00:ec2::254"),
		netip.MustParseAddr("fd20:ce::254"),
	}
}

// CheckAddress returns [ErrAddress] for an address that users who are no
// administrators may not make the server connect to: link-local ones, those of
// metadata services, and those of no host. Private ones are allowed, because
// upstreams usually are there (section 9.8).
func CheckAddress(addr netip.Addr) error {
	addr = embedded(addr.Unmap().WithZone(""))
	refused := !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() ||
		addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || slices.Contains(metadata(), addr)
	if refused {
		return fmt.Errorf("%w: %s", ErrAddress, addr)
	}
	return nil
}

// embedded returns the IPv4 address that a translated IPv6 address leads to
// (RFC 6052), or the address itself.
func embedded(addr netip.Addr) netip.Addr {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(addr) {
		return addr
	}
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// checkHost refuses a URL whose host has an address that [CheckAddress] refuses.
// A name that cannot be resolved is found out by whoever connects.
func checkHost(ctx context.Context, raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return workspace.FailCause(workspace.CodeInvalidNode, err)
	}
	addrs, err := new(net.Resolver).LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return workspace.FailCause(workspace.CodeNodeUnavailable, err)
	}
	for _, addr := range addrs {
		if err := CheckAddress(addr); err != nil {
			return workspace.FailCause(workspace.CodeInvalidNode, err)
		}
	}
	return nil
}
