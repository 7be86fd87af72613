package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/newos4/relay/pkg/hermes"
)

// Bounds of bodies, in bytes.
const (
	maxSmallBody   = 1 << 20 // of what has no bound of its own
	maxProfiles    = 4 << 20
	maxHistoryBody = 8 << 20
)

// call is one HTTP request.
type call struct {
	doing  string
	method string
	path   string
	query  url.Values
	body   any
	limit  int
	public bool // needs no credentials
}

// reply is an HTTP answer.
type reply struct {
	header http.Header
	body   []byte
}

// do sends a request with credentials. If they are refused it signs in again and
// repeats the request, once.
func (c *Client) do(ctx context.Context, k call) (reply, error) {
	if k.public {
		return c.send(ctx, k, pass{})
	}
	p, err := c.signIn.pass(ctx)
	if err != nil {
		return reply{}, err
	}
	r, err := c.send(ctx, k, p)
	if hermes.KindOf(err) != hermes.KindAuth {
		return r, err
	}
	if p, err = c.signIn.renew(ctx, p); err != nil {
		return reply{}, err
	}
	return c.send(ctx, k, p)
}

// send sends a request once.
func (c *Client) send(ctx context.Context, k call, p pass) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timers.Call)
	defer cancel()
	request, err := c.request(ctx, k, p)
	if err != nil {
		return reply{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, c.transport(k.doing, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(k.limit)+1))
	if err != nil {
		return reply{}, c.transport(k.doing, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return reply{}, c.statusFailure(k.doing, response, body)
	}
	if len(body) > k.limit {
		return reply{}, &hermes.Error{Kind: hermes.KindTooLarge, Doing: k.doing, Text: "the answer is larger than allowed"}
	}
	return reply{header: response.Header, body: body}, nil
}

// request makes a request. It never has an Origin, as no browser stands behind it.
func (c *Client) request(ctx context.Context, k call, p pass) (*http.Request, error) {
	var body io.Reader
	if k.body != nil {
		raw, err := json.Marshal(k.body)
		if err != nil {
			return nil, &hermes.Error{Kind: hermes.KindRejected, Doing: k.doing, Text: "the request cannot be encoded", Err: err}
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, k.method, c.address(k.path, k.query).String(), body)
	if err != nil {
		return nil, &hermes.Error{Kind: hermes.KindRejected, Doing: k.doing, Text: "the request cannot be made", Err: err}
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if p.token != "" {
		request.Header.Set("X-Hermes-Session-Token", p.token)
	}
	return request, nil
}

// address returns the server's address with a path, whose segments are escaped
// already, and a query.
func (c *Client) address(path string, query url.Values) *url.URL {
	address := *c.base
	raw := address.Path + path
	address.RawPath = raw
	if decoded, err := url.PathUnescape(raw); err == nil {
		address.Path = decoded
	}
	address.RawQuery = query.Encode()
	return &address
}

// decode reads a JSON answer.
func decode(doing string, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return &hermes.Error{Kind: hermes.KindProtocol, Doing: doing, Text: "the answer is malformed", Err: err}
	}
	return nil
}

// errorText returns the text of an error answer in its usual forms, or "".
func errorText(body []byte) string {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{answer.Detail, answer.Error} {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		var nested struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &nested) == nil && nested.Message != "" {
			return nested.Message
		}
	}
	return ""
}
