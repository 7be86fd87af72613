package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// requestTimeout bounds a request of an ordinary client.
const requestTimeout = 10 * time.Second

// routes of the contract.
const (
	postRoute = "/spaces/newos4/api/chat/post.php"
	pollRoute = "/spaces/newos4/api/chat/poll.php"
)

// party is one browser: its token, and the address that its front end gives.
type party struct {
	token chat.Token
	from  string
}

// newParty returns the party with that number. Its token is no secret.
func newParty(seed uint64, n int) party {
	return party{
		token: chat.Token(fmt.Sprintf("%032x%032x", seed, n)),
		from:  fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255),
	}
}

// client speaks the contract over HTTP.
type client struct {
	address func() string
	http    *http.Client
}

func newClient(address func() string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, IdleConnTimeout: 30 * time.Second}
	return &client{address: address, http: &http.Client{Transport: transport}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// receipt is what a message was acknowledged with.
type receipt struct {
	ID    string `json:"id"`
	Epoch int64  `json:"epoch"`
}

// page is what a poll answers with.
type page struct {
	Messages  []message `json:"messages"`
	Awaiting  bool      `json:"awaiting"`
	Truncated bool      `json:"truncated"`
	Cursor    int64     `json:"cursor"`
}

func (c *client) post(ctx context.Context, p party, text string) (receipt, result) {
	var r receipt
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return r, result{code: err.Error()}
	}
	res := c.ask(ctx, p, http.MethodPost, postRoute, body, http.StatusCreated, &r)
	return r, res
}

func (c *client) poll(ctx context.Context, p party, since int64) (page, result) {
	var g page
	res := c.ask(ctx, p, http.MethodGet, pollRoute+"?since="+strconv.FormatInt(since, 10), nil, http.StatusOK, &g)
	return g, res
}

// ask makes one request. It goes on when the trial is over, so that the end of a
// trial cuts nothing off.
func (c *client) ask(ctx context.Context, p party, method, path string, body []byte, want int, into any) result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.address()+path, bytes.NewReader(body))
	if err != nil {
		return result{code: codeUnreached}
	}
	request.Header.Set("X-Chat-Token", string(p.token))
	request.Header.Set("X-Forwarded-For", p.from)
	request.Header.Set("Content-Type", "application/json")
	started := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return result{code: codeOfFailure(err)}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	took := time.Since(started)
	if err != nil {
		return result{}
	}
	if response.StatusCode != want {
		return result{code: codeOfRefusal(response.StatusCode, data)}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return result{code: "unreadable answer"}
	}
	return result{served: true, took: took}
}

// codeOfFailure tells a request that cannot have been heard from one that was
// cut off.
func codeOfFailure(err error) string {
	if failure, ok := errors.AsType[*net.OpError](err); ok && failure.Op == "dial" {
		return codeUnreached
	}
	return ""
}

func codeOfRefusal(status int, body []byte) string {
	var refusal struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(body, &refusal); err != nil || refusal.Code == "" {
		return strconv.Itoa(status)
	}
	return refusal.Code
}
