package hermestest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Call is one received JSON-RPC call, or the answer to a server request, whose
// Method is then "" and whose ID is the request's.
type Call struct {
	Method string
	ID     string
	Params map[string]any
	Result map[string]any
	Error  int
}

// Request is one received HTTP request.
type Request struct {
	Method, Path string
	Header       http.Header
}

// journal is what the server received.
type journal struct {
	calls    []Call
	requests []Request
	prompts  []Prompt
	logins   int
}

// Prompt is a prompt as the model would see it, references expanded.
type Prompt struct {
	StoredID, Profile, Text string
	Images                  int
}

// Calls returns the calls of a method so far, or all of them for "".
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return method != "" && c.Method != method })
}

// Answers returns the answers to server requests so far.
func (s *Server) Answers() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return c.Method != "" })
}

// Prompts returns every prompt that was admitted, of all sessions.
func (s *Server) Prompts() []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts)
}

// Requests returns the HTTP requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Logins returns how often somebody tried to sign in.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

func (s *Server) noteRequest(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone()})
}

// Effect is what a fault does.
type Effect func(c *conn, id json.RawMessage)

// Fault is a fault of one call.
type Fault struct {
	method string
	after  bool
	effect Effect
}

// faults are the faults to come.
type faults struct {
	rpc  []Fault
	rest []restFault
}

type restFault struct {
	prefix, body string
	status       int
	times        int
	header       map[string]string
}

// Before makes the next call of a method fail before it is handled, and After
// once it was handled, in place of its answer.
func Before(method string, effect Effect) Fault { return Fault{method: method, effect: effect} }

// After is explained at [Before].
func After(method string, effect Effect) Fault {
	return Fault{method: method, after: true, effect: effect}
}

// Drop cuts the connection.
func Drop() Effect { return func(c *conn, _ json.RawMessage) { c.drop() } }

// Mute never answers.
func Mute() Effect { return func(*conn, json.RawMessage) {} }

// HoldCall handles the call once a gate is opened, while others are handled.
func HoldCall(gate *Gate) Effect {
	return func(c *conn, id json.RawMessage) {
		call := c.last
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		c.server.spawn(func() {
			close(gate.reached)
			select {
			case <-gate.open:
				call.ID = id
				c.handle(call)
			case <-c.ctx.Done():
			}
		})
	}
}

// Answer answers with an error.
func Answer(code int, message string) Effect {
	return func(c *conn, id json.RawMessage) {
		c.send(object{"jsonrpc": "2.0", "id": id, "error": object{"code": code, "message": message}})
	}
}

// Result answers with a result.
func Result(result any) Effect {
	return func(c *conn, id json.RawMessage) { c.send(object{"jsonrpc": "2.0", "id": id, "result": result}) }
}

// Late answers with a result after d, while other calls are handled.
func Late(d time.Duration, result any) Effect {
	return func(c *conn, id json.RawMessage) {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		c.server.spawn(func() {
			if c.server.wait(c.ctx, d) {
				Result(result)(c, id)
			}
		})
	}
}

// Inject adds faults; each happens once, in the order of their methods' calls.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rpc = append(s.rpc, faults...)
}

// take returns the next fault of a method, or nil.
func (s *Server) take(method string, after bool) Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, fault := range s.rpc {
		if fault.method != method {
			continue
		}
		if fault.after != after {
			return nil
		}
		s.rpc = slices.Delete(s.rpc, i, i+1)
		return fault.effect
	}
	return nil
}

// FailHTTP answers the next requests below a path with a status and a body; the
// number of times is -1 for ever. Pairs of header names and values may follow.
func (s *Server) FailHTTP(prefix string, status, times int, body string, header ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := restFault{prefix: prefix, status: status, times: times, body: body, header: make(map[string]string)}
	for i := 0; i+1 < len(header); i += 2 {
		fault.header[header[i]] = header[i+1]
	}
	s.rest = append(s.rest, fault)
}

// ClearHTTP ends every failure of [Server.FailHTTP].
func (s *Server) ClearHTTP() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = nil
}

// failRequest answers r if a fault is due.
func (s *Server) failRequest(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rest {
		fault := &s.rest[i]
		if fault.times == 0 || !strings.HasPrefix(r.URL.Path, fault.prefix) {
			continue
		}
		fault.times--
		for name, value := range fault.header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(fault.body)))
		w.WriteHeader(fault.status)
		_, _ = w.Write([]byte(fault.body))
		return true
	}
	return false
}
