package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/newos4/relay/pkg/hermes"
)

// Bounds of frames, in bytes (hermes-upstream section 3.2).
const (
	maxFrame    = 36 << 20 // that come
	maxSent     = 12 << 20 // that are sent
	largeFrame  = 1 << 20  // from here on few are read at once
	bigFrames   = 2        // how many large ones of a client
	maxOddities = 100      // malformed frames of one connection
)

// frame is what the server sends: an answer, an event or a request.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// event is the parameters of an event.
type event struct {
	Type      string          `json:"type"`
	SessionID string          `json:"session_id"`
	Payload   json.RawMessage `json:"payload"`
	Seq       int64           `json:"seq"`
}

// readyPayload is what the first event says of the server.
type readyPayload struct {
	ChangeEvents *bool  `json:"change_events"`
	Heartbeat    *bool  `json:"heartbeat"`
	ReplayEpoch  string `json:"replay_epoch"`
}

// oldest reports whether this is a build whose sessions name the profile of the
// process in place of their own.
func (r readyPayload) oldest() bool {
	return r.ChangeEvents == nil && r.Heartbeat == nil && r.ReplayEpoch == ""
}

// link is one WebSocket connection.
type link struct {
	client  *Client
	ws      *websocket.Conn
	receive func(frame) // events and requests, in order, from the reader alone
	lost    func(*link) // told once when the connection ends
	ready   chan readyPayload
	done    chan struct{}
	cancel  context.CancelFunc
	group   sync.WaitGroup
	alive   atomic.Int64 // when something last came, in nanoseconds
	heard   atomic.Int64 // when an event of the session last came

	mu    sync.Mutex
	next  int64
	calls map[int64]chan frame
	err   error // why the connection ended; set before done is closed
}

// dial connects and waits for the first frame. Refused credentials are renewed
// once.
func (c *Client) dial(ctx context.Context, to *session) (*link, readyPayload, error) {
	p, err := c.signIn.pass(ctx)
	if err != nil {
		return nil, readyPayload{}, err
	}
	l, ready, err := c.dialOnce(ctx, p, to)
	if hermes.KindOf(err) != hermes.KindAuth {
		return l, ready, err
	}
	if p, err = c.signIn.renew(ctx, p); err != nil {
		return nil, readyPayload{}, err
	}
	l, ready, err = c.dialOnce(ctx, p, to)
	if hermes.KindOf(err) == hermes.KindAuth {
		err = c.whyRefused(ctx, err)
	}
	return l, ready, err
}

// whyRefused tells refused credentials from a refused host: builds that refuse
// the upgrade itself give the same answer to both.
func (c *Client) whyRefused(ctx context.Context, refused error) error {
	failure, ok := errors.AsType[*hermes.Error](refused)
	if !ok || failure.Code != http.StatusForbidden {
		return refused
	}
	if _, err := c.ListProfiles(ctx); err != nil {
		return refused
	}
	failure.Kind, failure.Text = hermes.KindForbidden, "the server takes no connection from here"
	failure.Hint = "give the address by the host name that the server is bound to"
	return failure
}

// dialOnce connects with credentials.
func (c *Client) dialOnce(ctx context.Context, p pass, to *session) (*link, readyPayload, error) {
	const doing = "connect"
	query := url.Values{}
	if p.gated {
		ticket, err := c.ticket(ctx)
		if err != nil {
			return nil, readyPayload{}, err
		}
		query.Set("ticket", ticket)
	} else {
		query.Set("token", p.token)
	}
	l, err := c.upgrade(ctx, doing, query, to)
	if err != nil {
		return nil, readyPayload{}, err
	}
	ready, err := l.awaitReady(ctx)
	if err != nil {
		l.close()
		return nil, readyPayload{}, err
	}
	return l, ready, nil
}

// upgrade opens the WebSocket and starts what reads from it.
func (c *Client) upgrade(ctx context.Context, doing string, query url.Values, to *session) (*link, error) {
	dialing, cancelDial := context.WithTimeout(ctx, c.timers.Dial)
	defer cancelDial()
	origin := url.URL{Scheme: c.base.Scheme, Host: c.base.Host}
	ws, response, err := websocket.Dial(dialing, c.address("/api/ws", query).String(), &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient: c.http, HTTPHeader: http.Header{"Origin": {origin.String()}},
	})
	if err != nil {
		return nil, c.refused(ctx, doing, response, err)
	}
	ws.SetReadLimit(maxFrame)
	reading, cancel := context.WithCancel(context.Background()) //nolint:gosec // close cancels it
	l := &link{
		client: c, ws: ws, receive: to.receive, lost: to.unlink, cancel: cancel,
		ready: make(chan readyPayload, 1), done: make(chan struct{}), calls: make(map[int64]chan frame),
	}
	l.touch()
	l.heard.Store(l.alive.Load())
	l.group.Go(func() { l.read(reading) })
	l.group.Go(func() { l.beat(reading) })
	return l, nil
}

// refused returns the failure of an upgrade. Its own error is not kept: it has
// the address, and so the token.
func (c *Client) refused(ctx context.Context, doing string, response *http.Response, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if response == nil || response.StatusCode == http.StatusSwitchingProtocols {
		if urlError, ok := errors.AsType[*url.Error](err); ok {
			err = urlError.Err
		} else {
			err = errors.Unwrap(err)
		}
		return c.transport(doing, cleaned(err))
	}
	failure := c.statusFailure(doing, response, nil)
	if response.StatusCode == http.StatusForbidden {
		failure.Kind, failure.Text = hermes.KindAuth, "the credentials were refused"
	}
	return failure
}

// cleaned returns the cause of an error that may name an address with a token.
func cleaned(err error) error {
	for err != nil {
		urlError, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = urlError.Err
	}
	return errors.New("no connection")
}

// awaitReady waits for the first frame.
func (l *link) awaitReady(ctx context.Context) (readyPayload, error) {
	timer := time.NewTimer(l.client.timers.Ready)
	defer timer.Stop()
	select {
	case ready := <-l.ready:
		return ready, nil
	case <-l.done:
		return readyPayload{}, l.client.closeFailure("connect", l.err)
	case <-ctx.Done():
		return readyPayload{}, ctx.Err()
	case <-timer.C:
		return readyPayload{}, &hermes.Error{
			Kind: hermes.KindUnavailable, Doing: "connect", Text: "the server never became ready", Retryable: true,
		}
	}
}

// close ends the connection and waits for what belongs to it. It must not be
// called from receive.
func (l *link) close() {
	l.fail(errors.New("closed"))
	l.group.Wait()
}

// fail ends the connection for a reason; the first one counts.
func (l *link) fail(err error) {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
	}
	l.mu.Unlock()
	if !first {
		return
	}
	close(l.done)
	l.cancel()
	_ = l.ws.CloseNow()
	l.lost(l)
}

// touch notes a sign of life.
func (l *link) touch() { l.alive.Store(time.Now().UnixNano()) }

// read takes frames until the connection ends.
func (l *link) read(ctx context.Context) {
	var buffer bytes.Buffer
	odd := 0
	for {
		text, err := l.readFrame(ctx, &buffer)
		if err != nil {
			l.fail(err)
			return
		}
		l.touch()
		var f frame
		if !text || json.Unmarshal(buffer.Bytes(), &f) != nil {
			if odd++; odd > maxOddities {
				l.fail(&hermes.Error{Kind: hermes.KindProtocol, Doing: "read", Text: "too many malformed frames"})
				return
			}
			l.client.log.Debug("a malformed frame was ignored", "bytes", buffer.Len())
		} else {
			l.handle(f)
		}
		if buffer.Cap() > largeFrame {
			buffer = bytes.Buffer{}
		}
	}
}

// readFrame reads one message into buffer and reports whether it is text. Of
// large ones a client reads few at a time, so that its memory stays bounded
// however many sessions it has.
func (l *link) readFrame(ctx context.Context, buffer *bytes.Buffer) (bool, error) {
	kind, reader, err := l.ws.Reader(ctx)
	if err != nil {
		return false, err
	}
	buffer.Reset()
	n, err := io.CopyN(buffer, reader, largeFrame)
	if errors.Is(err, io.EOF) {
		return kind == websocket.MessageText, nil
	}
	if err != nil || n < largeFrame {
		return false, err
	}
	select {
	case l.client.big <- struct{}{}:
		defer func() { <-l.client.big }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	_, err = buffer.ReadFrom(reader)
	return kind == websocket.MessageText, err
}

// handle gives an answer to its call, and everything else to the session.
func (l *link) handle(f frame) {
	if f.Method == "" {
		l.answer(f)
		return
	}
	if f.Method == "event" && len(f.ID) == 0 {
		var e event
		if json.Unmarshal(f.Params, &e) == nil && e.Type == "gateway.ready" {
			var ready readyPayload
			_ = json.Unmarshal(e.Payload, &ready)
			select {
			case l.ready <- ready:
			default:
			}
			return
		}
	}
	l.receive(f)
}

// answer gives an answer to its call. Those to unknown and to answered calls are
// dropped.
func (l *link) answer(f frame) {
	id, err := strconv.ParseInt(string(f.ID), 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	waiting := l.calls[id]
	delete(l.calls, id)
	l.mu.Unlock()
	if waiting != nil {
		waiting <- f
	}
}

// request is a call as it is sent.
type request struct {
	Version string         `json:"jsonrpc"`
	ID      int64          `json:"id"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params"`
}

// errSent marks the failure of a call that may have arrived.
var errSent = errors.New("sent, and not answered")

// call calls a method and decodes its result into into, unless that is nil.
// A failure for which errors.Is reports errSent leaves open whether the call
// arrived.
func (l *link) call(ctx context.Context, doing, method string, params map[string]any, timeout time.Duration, into any) error {
	l.mu.Lock()
	l.next++
	id := l.next
	waiting := make(chan frame, 1)
	l.calls[id] = waiting
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
	}()
	if err := l.write(ctx, doing, request{Version: "2.0", ID: id, Method: method, Params: params}); err != nil {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case f := <-waiting:
		return l.result(doing, f, into)
	case <-l.done:
		failure := l.client.closeFailure(doing, l.err)
		failure.Err = errors.Join(errSent, failure.Err)
		return failure
	case <-timer.C:
		return &hermes.Error{Kind: hermes.KindTimeout, Doing: doing, Text: "no answer in time", Retryable: true, Err: errSent}
	case <-ctx.Done():
		return errors.Join(ctx.Err(), errSent)
	}
}

// result decodes an answer.
func (l *link) result(doing string, f frame, into any) error {
	if f.Error != nil {
		return l.client.rpcFailure(doing, f.Error)
	}
	if into == nil {
		return nil
	}
	return decode(doing, f.Result, into)
}

// write sends one message.
func (l *link) write(ctx context.Context, doing string, message any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return &hermes.Error{Kind: hermes.KindRejected, Doing: doing, Text: "the message cannot be encoded", Err: err}
	}
	if len(raw) > maxSent {
		return &hermes.Error{
			Kind: hermes.KindTooLarge, Doing: doing, Text: "the message is larger than servers take",
			Hint: "send less than 8 MiB at once",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.client.timers.Call)
	defer cancel()
	if err := l.ws.Write(ctx, websocket.MessageText, raw); err != nil {
		l.fail(err)
		failure := l.client.closeFailure(doing, err)
		failure.Err = errors.Join(errSent, err)
		return failure
	}
	return nil
}

// beat asks for a sign of life now and then, and ends the connection when none
// comes.
func (l *link) beat(ctx context.Context) {
	ticker := time.NewTicker(l.client.timers.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		silent := time.Since(time.Unix(0, l.alive.Load()))
		if silent >= l.client.timers.Dead {
			l.fail(&hermes.Error{Kind: hermes.KindDisconnected, Doing: "wait for a sign of life", Text: "the server is silent", Retryable: true})
			return
		}
		l.ping(ctx)
	}
}

// ping asks for a sign of life. Builds that do not know the method refuse it,
// which is one.
func (l *link) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.client.timers.Heartbeat)
	defer cancel()
	raw := []byte(`{"jsonrpc":"2.0","id":"ping","method":"gateway.ping","params":{}}`)
	_ = l.ws.Write(ctx, websocket.MessageText, raw)
}
