package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// answerLimit is the most that is read of an answer, in bytes; the largest
// honest one is a page of fifty long messages.
const answerLimit = 8 << 20

// target is what is judged.
type target struct {
	base       *url.URL
	space      string
	root       string   // empty without -root
	chat       []string // empty without -chat
	newThreads int      // 0 without -new-threads
	client     *http.Client
}

// missing names the flags that a case needs and the command line lacks.
func (s *target) missing(needs need) string {
	var flags []string
	if needs&needRoot != 0 && s.root == "" {
		flags = append(flags, "-root")
	}
	if needs&needChat != 0 && len(s.chat) == 0 {
		flags = append(flags, "-chat")
	}
	if needs&needNewThreads != 0 && s.newThreads == 0 {
		flags = append(flags, "-new-threads")
	}
	return strings.Join(flags, " and ")
}

func (s *target) postPath() string { return s.under("api/chat/post.php") }
func (s *target) pollPath() string { return s.under("api/chat/poll.php") }

// under returns the URL path of something in the space.
func (s *target) under(path string) string { return "/spaces/" + s.space + "/" + path }

// call is one HTTP request.
type call struct {
	method string
	path   string      // with its query, as it stands in the request line
	tokens []string    // one X-Chat-Token header each
	from   []string    // one X-Forwarded-For header each
	header http.Header // any others
	body   io.Reader
}

// headers returns all headers of the call.
func (c call) headers() http.Header {
	h := c.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if len(c.tokens) > 0 {
		h["X-Chat-Token"] = c.tokens
	}
	if len(c.from) > 0 {
		h["X-Forwarded-For"] = c.from
	}
	return h
}

// answer is one HTTP response, read to its end.
type answer struct {
	asked  string // the request, for messages
	method string
	status int
	header http.Header
	body   []byte
}

// reach reports whether the server answers at all.
func (s *target) reach(ctx context.Context) error {
	_, err := s.send(ctx, call{method: http.MethodGet, path: s.pollPath(), tokens: []string{randomToken()}})
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return nil
}

// send makes a call the usual way.
func (s *target) send(ctx context.Context, c call) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, s.base.String()+c.path, c.body)
	if err != nil {
		return answer{}, fmt.Errorf("making the request: %w", err)
	}
	req.Header = c.headers()
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readAnswer(c, resp)
}

// sendRaw makes a call on a connection of its own. The request line and the
// headers go out as they are, so that paths are not cleaned and the case itself
// says how the body is framed. A server may answer before it has read the body.
func (s *target) sendRaw(ctx context.Context, c call) (answer, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }()
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", c.method, c.path, s.base.Host)
	if err := c.headers().Write(&head); err != nil {
		return answer{}, fmt.Errorf("writing the headers: %w", err)
	}
	head.WriteString("\r\n")
	if _, err := conn.Write(head.Bytes()); err != nil {
		return answer{}, fmt.Errorf("writing the request: %w", err)
	}
	if c.body != nil {
		// The copy ends with the connection; its error says only that the
		// server would not read on, which the answer tells better.
		go func() { _, _ = io.Copy(conn, c.body) }()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.method})
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	return readAnswer(c, resp)
}

// dial opens a connection that is cut when its time is over.
func (s *target) dial(ctx context.Context) (net.Conn, error) {
	host, port := s.base.Hostname(), s.base.Port()
	if port == "" {
		port = s.base.Scheme
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return nil, fmt.Errorf("bounding the connection: %w", err)
	}
	if s.base.Scheme == "https" {
		return tls.Client(conn, &tls.Config{ServerName: host}), nil
	}
	return conn, nil
}

func readAnswer(c call, resp *http.Response) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return answer{}, fmt.Errorf("reading the body: %w", err)
	}
	return answer{
		asked:  c.method + " " + c.path,
		method: c.method,
		status: resp.StatusCode,
		header: resp.Header,
		body:   body,
	}, nil
}
