package chatapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// ipKey names a client in the limits: an IPv4 address or an IPv6 network /64,
// within which one client may choose its address (section 7).
type ipKey string

// clientAddr returns whom a request counts for: the peer, or, behind trusted
// proxies, the right-most address of X-Forwarded-For that is not one of them.
// Further to the left stands only what the client wrote itself.
func clientAddr(r *http.Request, trusted []netip.Prefix) ipKey {
	addr, ok := parseHop(r.RemoteAddr)
	if !ok {
		return ipKey("unknown")
	}
	hops := strings.Join(r.Header["X-Forwarded-For"], ",")
	for hops != "" && isTrusted(addr, trusted) {
		comma := strings.LastIndexByte(hops, ',')
		hop, ok := parseHop(strings.TrimSpace(hops[comma+1:]))
		if !ok {
			break // what stands left of garbage is not to be believed
		}
		addr, hops = hop, hops[:max(comma, 0)]
	}
	return keyOf(addr)
}

// parseHop reads an address with or without port, brackets and zone.
func parseHop(s string) (netip.Addr, bool) {
	if addrPort, err := netip.ParseAddrPort(s); err == nil {
		return plain(addrPort.Addr()), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		return netip.Addr{}, false
	}
	return plain(addr), true
}

func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, prefix := range trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

func keyOf(addr netip.Addr) ipKey {
	if addr.Is4() {
		return ipKey(addr.String())
	}
	return ipKey(netip.PrefixFrom(addr, 64).Masked().String())
}
