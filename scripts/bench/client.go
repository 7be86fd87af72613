package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// connections is how many keep-alive connections the driver has.
const connections = 32

// maxAnswer is room for the largest answer, a page of 50 short messages.
const maxAnswer = 64 << 10

// client is one keep-alive connection. It knows just as much HTTP/1.1 as the
// servers that are measured speak, so that the driver, which shares the machine
// with them, takes little of it.
type client struct {
	conn net.Conn
	buf  []byte
}

// answer is what came back for a request.
type answer struct {
	status int
	body   []byte // valid until the client's next request
}

func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server: %w", err)
	}
	return &client{conn: conn, buf: make([]byte, maxAnswer)}, nil
}

// ask sends a request and reads its answer.
func (c *client) ask(request []byte) (answer, error) {
	if _, err := c.conn.Write(request); err != nil {
		return answer{}, fmt.Errorf("sending a request: %w", err)
	}
	have := 0
	for {
		n, err := c.conn.Read(c.buf[have:])
		if err != nil {
			return answer{}, fmt.Errorf("reading an answer: %w", err)
		}
		have += n
		if a, whole, err := parseAnswer(c.buf[:have]); err != nil || whole {
			return a, err
		}
	}
}

// parseAnswer reads an answer with a Content-Length; whole is false as long as
// bytes of it are missing.
func parseAnswer(data []byte) (a answer, whole bool, err error) {
	head, body, found := bytes.Cut(data, []byte("\r\n\r\n"))
	if !found {
		return answer{}, false, nil
	}
	_, field, found := bytes.Cut(head, []byte("\r\nContent-Length: "))
	length, _, _ := bytes.Cut(field, []byte("\r\n"))
	size, err := strconv.Atoi(string(length))
	if !found || err != nil || size > maxAnswer-len(head) || len(head) < len("HTTP/1.1 200") {
		return answer{}, false, fmt.Errorf("the driver does not understand the answer %q", head)
	}
	status, err := strconv.Atoi(string(head[len("HTTP/1.1 "):len("HTTP/1.1 200")]))
	if err != nil {
		return answer{}, false, fmt.Errorf("the driver does not understand the answer %q", head)
	}
	return answer{status: status, body: body}, len(body) >= size, nil
}

// askOnce sends one request over a connection of its own.
func askOnce(ctx context.Context, addr string, request []byte) (answer, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = c.conn.Close() }()
	a, err := c.ask(request)
	if err != nil {
		return answer{}, err
	}
	return a, checkStatus(a)
}

func checkStatus(a answer) error {
	if a.status/100 != 2 {
		return fmt.Errorf("the server refused with %d: %s", a.status, a.body)
	}
	return nil
}

// paceHTTP returns how many of the requests, over and over, the server answers
// in a second. The connections stand before the time starts, and each begins at
// another place of the list.
func paceHTTP(ctx context.Context, addr string, d time.Duration, requests [][]byte) (rate float64, err error) {
	clients := make([]*client, connections)
	for i := range clients {
		if clients[i], err = dial(ctx, addr); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, clients[i].conn.Close()) }()
	}
	return pace(connections, d, func(worker, i int) error {
		next := (worker*len(requests)/connections + i) % len(requests)
		a, err := clients[worker].ask(requests[next])
		if err != nil {
			return err
		}
		return checkStatus(a)
	})
}
