package diagnosis

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/ratelimit"
)

// server returns the address of a server that ends with the test.
func server(t *testing.T, handler http.Handler) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return strings.TrimPrefix(s.URL, "http://")
}

// Ensures that a port which relayd serves on is told from one that something
// else has taken.
func TestListen_Taken(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	api := chatapi.New(chatapi.Options{Space: "newos4", Now: time.Now, Logger: discard()}, in.store(), ratelimit.New(time.Now, 1))
	in.set("LISTEN", server(t, api))
	want(t, in.run(), "listen", OK, "a relayd serves on ", "")

	for name, answer := range map[string]http.HandlerFunc{
		"another server":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"another refusal": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+in.config().Listen+chatapi.RetiredPath, http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t)
			address := server(t, answer)
			in.set("LISTEN", address)
			want(t, in.run(), "listen", Failure, "not relayd", "ss -ltnp 'sport = :"+portOf(address)+"'")
		})
	}
}

// Ensures that each reason for which nobody can listen has its own mend.
func TestListen_Refused(t *testing.T) {
	t.Parallel()
	for err, mend := range map[error]string{
		syscall.EACCES:        "CAP_NET_BIND_SERVICE",
		syscall.EADDRNOTAVAIL: "ip -brief address",
		syscall.EADDRINUSE:    "ss -ltnp 'sport = :80'",
		errors.New("other"):   "",
	} {
		f := unlistenable("192.0.2.1:80", fmt.Errorf("listen: %w", err))
		if f.Level != Failure || !strings.Contains(f.Mend, mend) {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

// Ensures that what opens relayd to other hosts, and what makes its limits
// worthless, is found.
func TestNetwork(t *testing.T) {
	t.Parallel()
	trust := func(networks string) func(in *installation) {
		return func(in *installation) { in.set("HTTP_TRUSTED_PROXIES", networks) }
	}
	testBreakages(t, map[string]breakage{
		"an address of other hosts": {
			do:    func(in *installation) { in.set("LISTEN", "0.0.0.0:0") },
			check: "listen", level: Note, words: "TLS", mend: "listen: 127.0.0.1:0",
		},
		"an address of another host": {
			do:    func(in *installation) { in.set("LISTEN", "192.0.2.1:0") },
			check: "listen", level: Failure, words: "no interface",
		},
		"no operator's side": {
			do:    func(in *installation) { in.set("ADMIN_LISTEN", "") },
			check: "listen", level: OK, words: "is free",
		},
		"an operator's side of other hosts": {
			do:    func(in *installation) { in.set("ADMIN_LISTEN", "0.0.0.0:0") },
			check: "admin", level: Note, words: "asks nobody who he is", mend: "admin.listen: 127.0.0.1:0",
		},
		"one address for both sides": {
			do: func(in *installation) {
				address := freeAddress(in.t)
				in.set("LISTEN", address)
				in.set("ADMIN_LISTEN", address)
			},
			check: "admin", level: Failure, words: "is the address of listen", mend: "admin.listen: 127.0.0.1:8641",
		},
		"an operator's side that is somebody else's": {
			do:    func(in *installation) { in.set("ADMIN_LISTEN", server(in.t, http.NotFoundHandler())) },
			check: "admin", level: Failure, words: "taken by something that is not relayd",
		},
		"all of IPv4":    {do: trust("0.0.0.0/0"), check: "proxies", level: Failure, words: "0.0.0.0/0", mend: "front end"},
		"halves of IPv4": {do: trust("0.0.0.0/1,128.0.0.0/1"), check: "proxies", level: Failure, words: "0.0.0.0/1 and 128.0.0.0/1"},
		"all of IPv6":    {do: trust("::/0"), check: "proxies", level: Failure, words: "::/0"},
		"a wide network": {do: trust("10.0.0.0/8"), check: "proxies", level: OK, words: "10.0.0.0/8"},
		"nobody":         {do: trust(""), check: "proxies", level: OK, words: "nobody"},
	})
}

// Ensures that what is asked of a relayd leaves no trace in its threads.
func TestListen_TouchesNothing(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	in.must(os.RemoveAll(in.root))
	api := chatapi.New(chatapi.Options{Space: "newos4", Now: time.Now, Logger: discard()}, in.store(), ratelimit.New(time.Now, 1))
	in.set("LISTEN", server(t, api))
	want(t, in.run(), "listen", OK, "a relayd serves on ", "")
	if _, err := os.Stat(in.root); !os.IsNotExist(err) {
		t.Errorf("the root: %v", err)
	}
}
