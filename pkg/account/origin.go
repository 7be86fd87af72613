package account

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/newos4/relay/pkg/forwarded"
)

// hostPort is a host with an optional port, as it stands in a Host header and,
// behind the scheme, in an Origin.
type hostPort struct {
	name string     // lower case, without the dot that may end it
	addr netip.Addr // of a name that is an address
	port int        // 0 when there is none
}

// parseHostPort reads a name, an IPv4 address or an IPv6 address in brackets, with
// or without a port. Everything else, such as user info or a path, is no host.
func parseHostPort(s string) (hostPort, bool) {
	const longest = 255 + len(":65535")
	if len(s) > longest {
		return hostPort{}, false
	}
	name, port := s, ""
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, ']') {
		name, port = s[:colon], s[colon+1:]
		if port == "" {
			return hostPort{}, false
		}
	}
	number, ok := parsePort(port)
	if !ok {
		return hostPort{}, false
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || !strings.HasSuffix(inner, "]") {
			return hostPort{}, false
		}
		return hostPort{name: addr.Unmap().String(), addr: addr.Unmap(), port: number}, true
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || strings.ContainsFunc(name, notInHost) {
		return hostPort{}, false
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		addr = netip.Addr{} // a name
	}
	return hostPort{name: name, addr: addr, port: number}, true
}

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// parsePort reads a port, or 0 for none.
func parsePort(digits string) (int, bool) {
	if digits == "" {
		return 0, true
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	return int(port), err == nil && port > 0
}

// portFor returns the port, or the scheme's own.
func (h hostPort) portFor(scheme string) int {
	switch {
	case h.port != 0:
		return h.port
	case scheme == forwarded.HTTPS:
		return 443
	}
	return 80
}

// isLocal reports whether the host can be nothing but this machine or its private
// network, whatever a name server says.
func (h hostPort) isLocal() bool {
	return h.name == "localhost" || h.addr.IsLoopback() || h.addr.IsPrivate()
}

// hosts are the rules of which hosts and origins are this server's own (section
// 1.4).
type hosts struct {
	port    int
	allowed []hostPort
}

// newHosts reads the allow list, whose entries are hosts with or without a port;
// one without allows every port.
func newHosts(port int, allowed []string) (hosts, error) {
	h := hosts{port: port}
	for _, entry := range allowed {
		host, ok := parseHostPort(entry)
		if !ok {
			return hosts{}, fmt.Errorf("the allowed host %q is no host\nhint: write a name or an address, with a port if only that one is meant, such as chat.example or [2001:db8::1]:8443", entry)
		}
		h.allowed = append(h.allowed, host)
	}
	return h, nil
}

func (h hosts) isAllowed(host hostPort, scheme string) bool {
	for _, allowed := range h.allowed {
		if allowed.name == host.name && (allowed.port == 0 || allowed.port == host.portFor(scheme)) {
			return true
		}
	}
	return false
}

// checkHost refuses a request to a host that is not this server: a page of
// another site could reach it by a name of its own that points here.
func (h hosts) checkHost(r *http.Request, scheme string) error {
	host, ok := parseHostPort(r.Host)
	if !ok {
		return errorf(CodeInvalidHost, "the request has no readable host")
	}
	ownPort := host.port == 0 || host.port == 80 || host.port == 443 || host.port == h.port
	if host.isLocal() && ownPort || h.isAllowed(host, scheme) {
		return nil
	}
	return errorf(CodeInvalidHost, "the request is for another host")
}

// checkOrigin refuses a request from a page that is not this server's. An https
// page is right for a plain request to the same host too, because a proxy may have
// taken the TLS away.
func (h hosts) checkOrigin(r *http.Request, scheme string) error {
	origins := r.Header["Origin"]
	if len(origins) != 1 {
		return errorf(CodeInvalidOrigin, "the request has no origin, or several")
	}
	originScheme, origin, ok := parseOrigin(origins[0])
	if !ok {
		return errorf(CodeInvalidOrigin, "the request has an opaque or malformed origin")
	}
	host, ok := parseHostPort(r.Host)
	isSame := ok && origin.name == host.name && origin.portFor(originScheme) == host.portFor(originScheme) &&
		(originScheme == scheme || originScheme == forwarded.HTTPS)
	if isSame || h.isAllowed(origin, originScheme) {
		return nil
	}
	return errorf(CodeInvalidOrigin, "the request has a foreign origin")
}

// parseOrigin reads scheme://host[:port] and nothing else.
func parseOrigin(s string) (scheme string, host hostPort, ok bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != forwarded.HTTP && scheme != forwarded.HTTPS {
		return "", hostPort{}, false
	}
	host, ok = parseHostPort(rest)
	return scheme, host, ok
}
