package forwarded_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/newos4/relay/pkg/forwarded"
)

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func request(t *testing.T, peer string, header http.Header) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	for name, values := range header {
		r.Header[name] = values
	}
	return r
}

// Ensures that an address counts only as far as trusted peers wrote it.
func TestClient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		peer string
		hops []string
		want string
	}{
		"the peer":                     {"192.0.2.1:1", nil, "192.0.2.1"},
		"an untrusted peer's word":     {"192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1"},
		"a trusted peer's word":        {"127.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"the right-most untrusted one": {"127.0.0.1:1", []string{"1.1.1.1, 198.51.100.1, 127.0.0.2"}, "198.51.100.1"},
		"two headers":                  {"127.0.0.1:1", []string{"1.1.1.1", "198.51.100.1"}, "198.51.100.1"},
		"garbage ends the chain":       {"127.0.0.1:1", []string{"1.1.1.1, garbage"}, "127.0.0.1"},
		"port, mapped and zone":        {"[::ffff:127.0.0.1]:1", []string{"[fe80::1%eth0]:80"}, "fe80::1"},
		"a socket without address":     {"@", []string{"1.1.1.1"}, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, test.peer, http.Header{"X-Forwarded-For": test.hops})
			if got := forwarded.Client(r, loopback()).String(); got != test.want {
				t.Errorf("client %s, want %s", got, test.want)
			}
		})
	}
}

// Ensures that one client cannot be many by choosing within its network.
func TestKey(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1":       "192.0.2.1",
		"2001:db8:1:2::3": "2001:db8:1:2::/64",
	} {
		if got := forwarded.Key(netip.MustParseAddr(addr)); got != want {
			t.Errorf("key of %s is %s, want %s", addr, got, want)
		}
	}
	if got := forwarded.Key(netip.Addr{}); got != "unknown" {
		t.Errorf("key of no address is %q", got)
	}
}

// Ensures that only TLS, or a trusted peer's word for it, makes a request secure.
func TestScheme(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		peer   string
		protos []string
		tls    bool
		want   string
	}{
		"plain":                    {peer: "192.0.2.1:1", want: forwarded.HTTP},
		"TLS":                      {peer: "192.0.2.1:1", tls: true, want: forwarded.HTTPS},
		"TLS whatever a peer says": {peer: "127.0.0.1:1", protos: []string{"http"}, tls: true, want: forwarded.HTTPS},
		"an untrusted peer's word": {peer: "192.0.2.1:1", protos: []string{"https"}, want: forwarded.HTTP},
		"a trusted peer's word":    {peer: "127.0.0.1:1", protos: []string{"HTTPS"}, want: forwarded.HTTPS},
		"what the client wrote":    {peer: "127.0.0.1:1", protos: []string{"https, http"}, want: forwarded.HTTP},
		"the last of two headers":  {peer: "127.0.0.1:1", protos: []string{"http", "https"}, want: forwarded.HTTPS},
		"a socket without address": {peer: "@", protos: []string{"https"}, want: forwarded.HTTP},
		"garbage":                  {peer: "127.0.0.1:1", protos: []string{"httpsx"}, want: forwarded.HTTP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, test.peer, http.Header{"X-Forwarded-Proto": test.protos})
			if test.tls {
				r.TLS = new(tls.ConnectionState)
			}
			if got := forwarded.Scheme(r, loopback()); got != test.want {
				t.Errorf("scheme %s, want %s", got, test.want)
			}
		})
	}
}
