// Package forwarded tells where a request came from when trusted proxies stand
// between: the client's address and the scheme that the client used.
//
// Headers count only as far as trusted peers wrote them. Further to the left
// stands what the client wrote itself.
package forwarded

import (
	"net/http"
	"net/netip"
	"strings"
)

// Schemes of a request.
const (
	HTTP  = "http"
	HTTPS = "https"
)

// unknown names all clients whose address cannot be read.
const unknown = "unknown"

// Client returns the address of whom the request came from: the peer, or, behind
// trusted proxies, the right-most address of X-Forwarded-For that is not one of
// them. It is the zero Addr if the peer has none.
func Client(r *http.Request, trusted []netip.Prefix) netip.Addr {
	addr, ok := parseHop(r.RemoteAddr)
	if !ok {
		return netip.Addr{}
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
	return addr
}

// Key names a client in limits: an IPv4 address or an IPv6 network /64, within
// which one client may choose its address. Clients without address share a key.
func Key(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return unknown
	case addr.Is4():
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// Scheme returns [HTTPS] if the client used TLS: the connection does, or a
// trusted peer says so in the right-most value of X-Forwarded-Proto. Otherwise
// it returns [HTTP].
func Scheme(r *http.Request, trusted []netip.Prefix) string {
	if r.TLS != nil {
		return HTTPS
	}
	peer, ok := parseHop(r.RemoteAddr)
	if !ok || !isTrusted(peer, trusted) {
		return HTTP
	}
	protos := strings.Join(r.Header["X-Forwarded-Proto"], ",")
	last := strings.TrimSpace(protos[strings.LastIndexByte(protos, ',')+1:])
	if strings.EqualFold(last, HTTPS) {
		return HTTPS
	}
	return HTTP
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
