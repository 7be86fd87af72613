package nginx_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newos4/relay/etc/nginx/nginxtest"
)

// startUpstream runs a server in relayd's place and a site before it.
func startUpstream(t *testing.T, handler http.HandlerFunc) site {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return startSite(t, nginxtest.Options{Upstream: server.Listener.Addr().String()})
}

// Ensures that what relayd writes reaches the client before the answer ends, for
// long polls and streams on every route.
func TestAnswer_IsNotHeldBack(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	s := startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		select {
		case <-read:
			_, _ = io.WriteString(w, "last\n")
		case <-r.Context().Done():
		}
	})
	client := s.client(t, "127.0.0.1")
	client.Timeout = 10 * time.Second
	for _, path := range []string{chatPath + "poll.php", "/", "/api/app/events"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+name+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		body := bufio.NewReader(resp.Body)
		if line, err := body.ReadString('\n'); err != nil || line != "first\n" {
			t.Fatalf("%s: the first line is %q, %v", path, line, err)
		}
		read <- struct{}{}
		if rest, err := io.ReadAll(body); err != nil || string(rest) != "last\n" {
			t.Errorf("%s: the rest is %q, %v", path, rest, err)
		}
		_ = resp.Body.Close()
	}
}

// Ensures that relayd alone decides what is compressed, although the server
// around it compresses all it can.
func TestAnswer_IsCompressedByRelaydAlone(t *testing.T) {
	t.Parallel()
	plain := strings.Repeat("<p>text</p>\n", 1000)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.RawQuery == "plain" || r.Header.Get("Accept-Encoding") != "gzip" {
			_, _ = io.WriteString(w, plain)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	client := s.client(t, "127.0.0.1")
	header := http.Header{"Accept-Encoding": {"gzip"}}
	for _, path := range []string{"/page", chatPath + "poll.php"} {
		if got := do(t, client, request{path: path, header: header}); got.body != packed.String() || len(got.header["Content-Encoding"]) != 1 {
			t.Errorf("%s: compressed by relayd: %d bytes, want %d; %v", path, len(got.body), packed.Len(), got.header)
		}
		if got := do(t, client, request{path: path + "?plain", header: header}); got.body != plain || got.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: not compressed by relayd: %d bytes, want %d; %v", path, len(got.body), len(plain), got.header)
		}
	}
}

// Ensures what relayd learns of a client: its address as nginx sees it, the name
// and scheme it used, its token, and a change of protocol for WebSocket alone.
func TestHeaders_OfTheRequest(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	s := startUpstream(t, func(_ http.ResponseWriter, r *http.Request) { got <- r })
	client := s.client(t, "127.0.0.9")
	for upgrade, want := range map[string]string{"": "", "WebSocket": "websocket", "h2c": "", "websocket, h2c": ""} {
		header := http.Header{"X-Forwarded-For": {"1.2.3.4", "5.6.7.8"}, "X-Forwarded-Proto": {"gopher"}}
		if upgrade != "" {
			header["Connection"], header["Upgrade"] = []string{"Upgrade"}, []string{upgrade}
		}
		do(t, client, request{path: "/", header: header})
		r := <-got
		if r.Header.Get("Upgrade") != want || (r.Header.Get("Connection") == "upgrade") != (want != "") {
			t.Errorf("upgrade %q arrives as %q, connection %q", upgrade, r.Header.Values("Upgrade"), r.Header.Values("Connection"))
		}
		if r.Host != name || r.ProtoMinor != 1 {
			t.Errorf("host %q, %s", r.Host, r.Proto)
		}
		for key, value := range map[string]string{"X-Forwarded-For": "127.0.0.9", "X-Forwarded-Proto": "https", "X-Chat-Token": token(1)} {
			if values := r.Header.Values(key); !slices.Equal(values, []string{value}) {
				t.Errorf("%s arrives as %q, want %q", key, values, value)
			}
		}
	}
}

// Ensures that nginx sends no request twice, neither on a new connection nor on
// one that it kept: whoever ends it without an answer may have done the work.
func TestRequest_IsNeverSentTwice(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodGet} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			u := startHangingUp(t)
			client := startSite(t, nginxtest.Options{Upstream: u.address}).client(t, "127.0.0.1")
			send := func(query string) answer {
				return do(t, client, request{method: method, path: chatPath + "post.php?" + query, body: strings.NewReader("{}")})
			}
			for i, want := range []int{502, 200, 502} {
				query := map[int]string{502: "hang-up", 200: "answer"}[want]
				if got := send(fmt.Sprintf("%s&%d", query, i)); got.status != want || (want == 502 && !got.isHTML()) {
					t.Errorf("%s is answered by %d %q", query, got.status, got.body)
				}
			}
			want := []string{"1 hang-up&0", "2 answer&1", "2 hang-up&2"}
			if got := u.requests(); !slices.Equal(got, want) {
				t.Errorf("sent: %q, want %q", got, want)
			}
		})
	}
}

// hangingUp is a server that reads requests and ends the connection of those
// that ask for it, without an answer.
type hangingUp struct {
	address string
	mu      sync.Mutex
	seen    []string
}

// requests returns what was sent: the number of the connection and the query.
func (u *hangingUp) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.seen)
}

func startHangingUp(t *testing.T) *hangingUp {
	t.Helper()
	listener := nginxtest.Listen(t)
	u := &hangingUp{address: listener.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return // closed with the test
			}
			serving.Go(func() { u.serve(n, conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait() // nginx, which ended before, closed its connections
	})
	return u
}

func (u *hangingUp) serve(n int, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		u.mu.Lock()
		u.seen = append(u.seen, fmt.Sprintf("%d %s", n, r.URL.RawQuery))
		u.mu.Unlock()
		if strings.HasPrefix(r.URL.RawQuery, "hang-up") {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return
		}
	}
}
