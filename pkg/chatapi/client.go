package chatapi

import (
	"net/http"
	"net/netip"

	"github.com/newos4/relay/pkg/forwarded"
)

// ipKey names a client in the limits: an IPv4 address or an IPv6 network /64,
// within which one client may choose its address (section 7).
type ipKey string

// clientAddr returns whom a request counts for.
func clientAddr(r *http.Request, trusted []netip.Prefix) ipKey {
	return ipKey(forwarded.Key(forwarded.Client(r, trusted)))
}
