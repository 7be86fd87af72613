package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxResponse is the most bytes of a response that are read.
const maxResponse = 4 << 20

// errTooLarge means a response of more than maxResponse bytes.
var errTooLarge = errors.New("the response is larger than 4 MiB")

// client makes single requests.
type client struct {
	http    *http.Client
	base    *url.URL
	key     Key
	timeout time.Duration
}

// newClient returns a client that uses the connections of h, or some of its own
// if h is nil, and none of h's policies.
func newClient(h *http.Client, base *url.URL, key Key, timeout time.Duration) client {
	if h == nil {
		h = &http.Client{Transport: newTransport()}
	}
	return client{base: base, key: key, timeout: timeout, http: &http.Client{
		Transport: h.Transport,
		// Where a redirect leads, neither key nor prompt was meant to go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// newTransport returns a transport that gives up early on a server that is not
// there. How long a model may take is another matter.
func newTransport() *http.Transport {
	const timeout = 10 * time.Second
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout: timeout,
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     time.Minute,
	}
}

// response is a whole response, of whatever status.
type response struct {
	status   int
	header   http.Header
	document document
	// size is the body's length in bytes.
	size int
}

// do makes one request. Its error means that there is no whole response.
func (c client) do(ctx context.Context, method, path string, body []byte) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return response{}, fmt.Errorf("making a request: %w", err)
	}
	c.setHeaders(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, fmt.Errorf("asking the server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read as far as it matters
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return response{}, fmt.Errorf("reading the response: %w", err)
	}
	if len(data) > maxResponse {
		return response{}, errTooLarge
	}
	return response{status: resp.StatusCode, header: resp.Header, document: parseDocument(data), size: len(data)}, nil
}

// setHeaders sends no Origin, which marks a browser and which some servers
// refuse.
func (c client) setHeaders(req *http.Request) {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "relay")
	if req.Method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+string(c.key))
	}
}
