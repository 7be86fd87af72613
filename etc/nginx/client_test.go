package nginx_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// chatPath is the path of the chat API in the files.
const chatPath = "/spaces/newos4/api/chat/"

// client returns a browser whose address is source. It follows no redirect,
// finds the site at whatever name, and asks for no compression by itself.
func (s site) client(t *testing.T, source string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	transport := &http.Transport{
		DisableCompression:    true,
		ForceAttemptHTTP2:     true, // the site decides
		ExpectContinueTimeout: 20 * time.Second,
		TLSClientConfig:       &tls.Config{RootCAs: s.Roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := s.Plain
			if strings.HasSuffix(address, ":443") {
				to = s.TLS
			}
			return dialer.DialContext(ctx, network, to)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one request to a site.
type request struct {
	method string // GET if empty
	scheme string // https if empty
	path   string // as it is sent, without any cleaning
	header http.Header
	body   io.Reader
	length int64 // what the header claims, if that is not the body's length
}

// answer is what came back.
type answer struct {
	status int
	proto  int    // the major version of HTTP
	tls    uint16 // its version, 0 for none
	header http.Header
	body   string
}

// isHTML reports whether the answer is a page of nginx's own.
func (a answer) isHTML() bool {
	return strings.HasPrefix(a.header.Get("Content-Type"), "text/html") && strings.Contains(a.body, "nginx</center>")
}

// is reports whether the answer is relayd's refusal with a code.
func (a answer) is(status int, code string) bool {
	var body struct {
		Success *bool  `json:"success"`
		Code    string `json:"code"`
	}
	err := json.Unmarshal([]byte(a.body), &body)
	return err == nil && a.status == status && body.Success != nil && !*body.Success && body.Code == code
}

// do sends a request, with the token of a thread unless it has one itself.
func do(t *testing.T, client *http.Client, r request) answer {
	t.Helper()
	scheme := "https"
	if r.scheme != "" {
		scheme = r.scheme
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, scheme+"://"+name+"/", r.body)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = r.path
	if strings.HasPrefix(r.path, "//") {
		req.URL.Opaque = "//" + name + r.path // or its first part would be taken for the host
	}
	req.Header = http.Header{"X-Chat-Token": {token(1)}}
	maps.Copy(req.Header, r.header)
	if r.length > 0 {
		req.ContentLength = r.length
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", r.method, r.path, err)
	}
	got := answer{status: resp.StatusCode, proto: resp.ProtoMajor, header: resp.Header, body: string(body)}
	if resp.TLS != nil {
		got.tls = resp.TLS.Version
	}
	return got
}

// token returns the token of the n-th thread.
func token(n int) string { return fmt.Sprintf("%064x", n) }

// post is a request that posts a message.
func post(text string) request {
	return request{
		method: http.MethodPost, path: chatPath + "post.php", body: strings.NewReader(`{"text":"` + text + `"}`),
		header: http.Header{"Content-Type": {"application/json"}},
	}
}

// poll is a request for the messages of a thread.
func poll() request { return request{method: http.MethodGet, path: chatPath + "poll.php"} }
