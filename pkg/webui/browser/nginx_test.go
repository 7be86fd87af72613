package browser_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/newos4/relay/etc/nginx/nginxtest"
)

// nginx runs the real nginx with the files of etc/nginx before relayd until the
// test ends, and returns its URL. The browser is told to take the certificate.
func nginx(t *testing.T, r *relayd) string {
	t.Helper()
	site := nginxtest.Start(t, nginxtest.Options{
		Files: filepath.Join("..", "..", "..", "etc", "nginx"), Upstream: strings.TrimPrefix(r.url, "http://"),
	})
	return "https://" + site.TLS
}

// client makes requests beside the browser and asks for no compression by itself.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is the test's own
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// get asks for a URL and returns the status, the header and the body's length.
func get(ctx context.Context, c *http.Client, url string, header http.Header) (int, http.Header, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, 0, err
	}
	req.Header = header
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, len(body), err
}

func mustGet(t *testing.T, c *http.Client, url string, header http.Header) (int, http.Header, int) {
	t.Helper()
	status, got, size, err := get(t.Context(), c, url, header)
	if err != nil {
		t.Fatal(err)
	}
	return status, got, size
}

// Ensures that nginx's own 503 of its rate zone, which is HTML, delays a message
// and does not lose it.
func TestNginx_RateZone(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	url := nginx(t, r)
	p := newBrowser(t).open(t, url, tabOptions{refusals: true})
	p.waitForText("#connection", "connected")
	crowd := startCrowd(t, url+"/spaces/newos4/api/chat/poll.php")
	<-crowd.refused
	p.write("patience")
	p.waitForText(".pending .state", "The server is busy. Sending again in")
	crowd.stop()
	p.waitForText(".operator:not(.pending) .text", "patience")
	if n := strings.Count(r.stored(t), "patience"); n != 1 {
		t.Errorf("the message stands %d times", n)
	}
}

// crowd is somebody at the same address who asks without a pause.
type crowd struct {
	refused chan struct{} // closed when the zone has refused him
	stop    func()        // may be called twice
}

func startCrowd(t *testing.T, url string) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c, asks := client(t), &crowd{refused: make(chan struct{})}
	var asking sync.WaitGroup
	asking.Go(func() {
		told := sync.OnceFunc(func() { close(asks.refused) })
		for ctx.Err() == nil {
			if status, _, _, err := get(ctx, c, url, http.Header{}); err == nil && status == http.StatusServiceUnavailable {
				told()
			}
		}
	})
	asks.stop = func() { cancel(); asking.Wait() }
	t.Cleanup(asks.stop)
	return asks
}

// Ensures that what nginx hands on of the page is what relayd sent: compressed
// once, with its strong tag, its policy and a 304 for who has it already.
func TestNginx_HandsThePageOn(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	front, c := nginx(t, r), client(t)
	for _, path := range []string{"/", "/spaces/newos4/", "/spaces/newos4/hermes-chat.js", "/page.css"} {
		header := http.Header{"Accept-Encoding": {"gzip"}}
		_, direct, length := mustGet(t, c, r.url+path, header)
		status, got, size := mustGet(t, c, front+path, header)
		if status != http.StatusOK || size != length {
			t.Errorf("%s: %d with %d bytes, want %d", path, status, size, length)
		}
		for _, name := range []string{"Etag", "Content-Encoding", "Content-Type", "Vary", "Cache-Control", "Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"} {
			if got.Get(name) != direct.Get(name) || got.Get(name) == "" {
				t.Errorf("%s: %s is %q, relayd sent %q", path, name, got.Get(name), direct.Get(name))
			}
		}
		header.Set("If-None-Match", got.Get("Etag"))
		if status, _, size := mustGet(t, c, front+path, header); status != http.StatusNotModified || size != 0 {
			t.Errorf("%s: %d with %d bytes for who has it", path, status, size)
		}
	}
}
