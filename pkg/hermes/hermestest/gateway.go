package hermestest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// readLimit is what the server takes in one message, as builds did until late
// July 2026; a larger one ends the connection.
const readLimit = 16 << 20

// volatile is what a restart loses.
type volatile struct {
	volatileSignIn
	epoch     string
	conns     map[*conn]bool
	sessions  map[string]*session  // by runtime id
	questions map[string]*question // open ones, by id
}

func (s *Server) newVolatile() volatile {
	return volatile{
		volatileSignIn: volatileSignIn{cookies: make(map[string]time.Time), tickets: make(map[string]time.Time)},
		epoch:          "e-" + hex(8),
		conns:          make(map[*conn]bool),
		sessions:       make(map[string]*session),
		questions:      make(map[string]*question),
	}
}

// dropAll ends every connection and every turn. The lock is held.
func (s *Server) dropAll() {
	for c := range s.conns {
		c.drop()
	}
	for _, live := range s.sessions {
		live.end()
	}
}

// strict reports whether unknown parameters are refused and questions are
// requests.
func (s *Server) strict() bool { return s.dialect == DialectNew || s.dialect == DialectGated }

// conn is one client's connection. Frames are sent in order by its own goroutine.
type conn struct {
	server *Server
	ws     *websocket.Conn
	ctx    context.Context
	drop   context.CancelFunc // cuts the connection without a close frame

	mu        sync.Mutex
	queue     [][]byte
	wake      chan struct{}
	last      frame // the call that is handled, for the reader alone
	announced bool  // guarded by the server's lock
}

// upgrade takes a client's connection, if its credentials are good.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	code, reason := s.admit(r)
	if code != 0 && s.dialect == Dialect019 {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{"hermes-gateway-v1"}})
	if err != nil {
		return
	}
	if code != 0 {
		_ = ws.Close(code, reason)
		return
	}
	s.serve(ws)
}

// admit returns the close code for a client that is not let in, or 0.
func (s *Server) admit(r *http.Request) (websocket.StatusCode, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.credential(r) {
		return 4401, "auth"
	}
	if origin := r.Header.Get("Origin"); origin != "" && !strings.HasSuffix(origin, "://"+r.Host) {
		return 4403, "origin_mismatch"
	}
	if s.hostOnly != "" && r.Host != s.hostOnly {
		return 4403, "host_mismatch"
	}
	return 0, ""
}

// credential checks and uses up what the client brought. The lock is held.
func (s *Server) credential(r *http.Request) bool {
	query := r.URL.Query()
	if !s.gate {
		return query.Get("token") == s.token
	}
	ticket := query.Get("ticket")
	until, ok := s.tickets[ticket]
	delete(s.tickets, ticket)
	return ok && time.Now().Before(until)
}

// serve speaks with a client until the connection ends.
func (s *Server) serve(ws *websocket.Conn) {
	ws.SetReadLimit(readLimit)
	ctx, drop := context.WithCancel(s.ctx)
	c := &conn{server: s, ws: ws, ctx: ctx, drop: drop, wake: make(chan struct{}, 1)}
	delay, ok := s.welcome(c)
	if !ok {
		drop()
		_ = ws.CloseNow()
		return
	}
	defer s.running.Done()
	var writer sync.WaitGroup
	writer.Go(c.write)
	if s.wait(ctx, delay) {
		c.send(s.ready())
		c.read()
	}
	drop()
	_ = ws.CloseNow()
	writer.Wait()
	s.detach(c)
}

// welcome notes a client's connection, which Close waits for, and returns how
// long its first frame takes; a closed server takes none.
func (s *Server) welcome(c *conn) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	s.running.Add(1)
	s.conns[c] = true
	return s.readyDelay, true
}

// wait lets d pass and reports whether it did; a negative one never does.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	if d < 0 {
		<-ctx.Done()
		return false
	}
	if d == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// ready is the first frame of a connection.
func (s *Server) ready() object {
	s.mu.Lock()
	defer s.mu.Unlock()
	payload := object{"skin": object{}}
	if s.dialect != Dialect019 {
		payload["change_events"] = true
	}
	if s.strict() {
		payload["heartbeat"], payload["replay_epoch"] = true, s.epoch
	}
	return object{"jsonrpc": "2.0", "method": "event", "params": object{"type": "gateway.ready", "payload": payload}}
}

// send queues a frame.
func (c *conn) send(frame any) {
	raw, err := json.Marshal(frame)
	if err != nil {
		panic("hermestest: encode frame: " + err.Error())
	}
	c.sendRaw(raw)
}

// sendRaw queues a frame as it is; nil cuts the connection behind what is queued.
func (c *conn) sendRaw(raw []byte) {
	c.mu.Lock()
	c.queue = append(c.queue, raw)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued, until the connection ends or it is to be cut.
func (c *conn) write() {
	defer c.drop()
	for {
		for _, next := range c.take() {
			if next == nil || c.ws.Write(c.ctx, kindOf(next), next) != nil {
				return
			}
		}
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
	}
}

// take empties the queue.
func (c *conn) take() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue := c.queue
	c.queue = nil
	return queue
}

// kindOf returns which kind of message carries data: a leading NUL asks for a
// binary one.
func kindOf(data []byte) websocket.MessageType {
	if len(data) > 0 && data[0] == 0 {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}

// frame is what a client sends.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// read handles what the client sends until the connection ends.
func (c *conn) read() {
	for {
		_, data, err := c.ws.Read(c.ctx)
		if err != nil {
			return
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			c.send(object{"jsonrpc": "2.0", "id": nil, "error": object{"code": -32700, "message": "parse error"}})
			continue
		}
		c.server.note(f)
		if c.server.silent.Load() {
			continue
		}
		if f.Method == "" {
			c.server.answered(f)
			continue
		}
		c.last = f
		c.handle(f)
	}
}

func (s *Server) note(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := Call{Method: f.Method, ID: strings.Trim(string(f.ID), `"`), Params: f.Params, Result: f.Result}
	if f.Error != nil {
		call.Error = f.Error.Code
	}
	s.calls = append(s.calls, call)
}

// handle runs one call, and the faults that are due at it.
func (c *conn) handle(f frame) {
	s := c.server
	if effect := s.take(f.Method, false); effect != nil {
		effect(c, f.ID)
		return
	}
	method, ok := methods[f.Method]
	if !ok || !method.in(s.dialect) {
		Answer(-32601, "unknown method: "+f.Method)(c, f.ID)
		return
	}
	if key := s.undeclared(f.Method, method, f.Params); key != "" && s.strict() {
		Answer(4000, "unknown parameter: "+key)(c, f.ID)
		return
	}
	s.mu.Lock()
	result, failure := method.run(s, c, f.Params)
	s.mu.Unlock()
	if effect := s.take(f.Method, true); effect != nil {
		effect(c, f.ID)
		return
	}
	if failure != nil {
		Answer(failure.code, failure.message)(c, f.ID)
		return
	}
	Result(result)(c, f.ID)
}

// method is one JSON-RPC method.
type method struct {
	keys     []string
	dialects []Dialect // all if empty
	run      func(s *Server, c *conn, params object) (any, *failure)
}

// failure is a JSON-RPC error.
type failure struct {
	code    int
	message string
}

func (m method) in(dialect Dialect) bool {
	return len(m.dialects) == 0 || slices.Contains(m.dialects, dialect)
}

// undeclared returns a parameter that a method does not declare, or "".
func (s *Server) undeclared(name string, m method, params object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range params {
		if !slices.Contains(m.keys, key) || s.forgotten[name+" "+key] {
			return key
		}
	}
	return ""
}

// detach lets go of a client's sessions: idle ones are closed after a while, and
// in old builds running ones are interrupted then.
func (s *Server) detach(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	for _, live := range s.sessions {
		if live.conn == c {
			live.conn = nil
			s.reapLater(live)
		}
	}
}
