package autoreplytest

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Options describe the server.
type Options struct {
	// Dialect is how it writes; [OpenAI] unless set.
	Dialect Dialect
	// Key is what it wants as a bearer token, unless empty.
	Key string
	// Hermes makes it one of Hermes, as its capabilities say.
	Hermes bool
	// NoModels makes it one that does not list its models.
	NoModels bool
	// NewField makes it refuse max_tokens.
	NewField bool
	// Lenient keeps it from reporting requests that a strict server would refuse
	// to the test; it still refuses them.
	Lenient bool
}

// Server is a scripted server of chat completions.
type Server struct {
	// URL is the base URL, which ends in /v1.
	URL string

	t    testing.TB
	opts Options
	http *httptest.Server

	mu       sync.Mutex
	scripts  map[string][]Turn
	gates    map[string]*Gate
	requests []Request
}

// New starts a server, which ends with the test.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Dialect == "" {
		opts.Dialect = OpenAI
	}
	s := &Server{t: t, opts: opts, scripts: make(map[string][]Turn), gates: make(map[string]*Gate)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/capabilities", s.capabilities)
	s.http = httptest.NewServer(s.guard(mux))
	s.URL = s.http.URL + "/v1"
	t.Cleanup(func() {
		s.openAll()
		s.http.Close()
	})
	return s
}

// Client returns an HTTP client for the server.
func (s *Server) Client() *http.Client { return s.http.Client() }

// Script sets the replies to a session, in order; "" is the session of threads
// without a marker. When all were given, the test has failed.
func (s *Server) Script(session string, turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[session] = turns
}

// Gate returns the gate of that name, at which the obedient model waits when it
// is told to. Gates are opened at the end of the test.
func (s *Server) Gate(name string) *Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate, ok := s.gates[name]
	if !ok {
		gate = NewGate()
		s.gates[name] = gate
	}
	return gate
}

// openAll lets every request go, so that the server can end.
func (s *Server) openAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gate := range maps.Values(s.gates) {
		gate.Open()
	}
	for turns := range maps.Values(s.scripts) {
		for _, turn := range turns {
			if turn.Gate != nil {
				turn.Gate.Open()
			}
		}
	}
}

// Requests returns the chat completions that were asked for, in order of their
// arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// guard wants the key.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.opts.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Key {
			s.write(w, http.StatusUnauthorized,
				`{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	if s.opts.NoModels {
		s.write(w, http.StatusNotFound, `{"detail":"Not Found"}`)
		return
	}
	s.write(w, http.StatusOK, `{"object":"list","data":[{"id":"scripted","object":"model"}]}`)
}

func (s *Server) capabilities(w http.ResponseWriter, _ *http.Request) {
	if !s.opts.Hermes {
		s.write(w, http.StatusNotFound, `{"detail":"Not Found"}`)
		return
	}
	s.write(w, http.StatusOK, `{"object":"hermes.api_server.capabilities","runtime":{"tool_execution":"server"}}`)
}

// complete answers a chat completion.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	request, err := parseRequest(r.Header, body)
	if err == nil {
		err = request.check()
	}
	if err != nil {
		if !s.opts.Lenient {
			s.t.Errorf("a strict server refuses the request: %v", err)
		}
		s.write(w, http.StatusBadRequest, `{"error":{"message":"refused","type":"invalid_request_error","code":null}}`)
		return
	}
	if s.opts.NewField && request.has("max_tokens") {
		s.write(w, http.StatusBadRequest,
			`{"error":{"message":"use the other one","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`)
		return
	}
	turn, n := s.next(request)
	if turn.Gate.wait(r) {
		s.reply(w, turn, n)
	}
}

// next returns the reply to a request, and its number.
func (s *Server) next(request Request) (turn Turn, n int) {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	n = len(s.requests)
	script, scripted := s.scripts[request.Session]
	if scripted && len(script) > 0 {
		turn, s.scripts[request.Session] = script[0], script[1:]
	}
	s.mu.Unlock()
	switch {
	case !scripted:
		return obey(request, s.Gate), n
	case len(script) == 0:
		s.t.Errorf("session %q has no reply to request %d", request.Session, n)
		return Turn{Status: http.StatusInternalServerError}, n
	}
	return turn, n
}

// reply writes what a turn says.
func (s *Server) reply(w http.ResponseWriter, turn Turn, n int) {
	if turn.Drop {
		panic(http.ErrAbortHandler)
	}
	body, err := s.body(turn, n)
	if err != nil {
		s.t.Errorf("reply %d: %v", n, err)
	}
	maps.Copy(w.Header(), turn.Header)
	status := turn.Status
	if status == 0 {
		status = http.StatusOK
	}
	if !turn.Cut {
		s.write(w, status, body)
		return
	}
	// The whole length is announced, so that the client can tell.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000000")
	_, _ = io.WriteString(w, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func (s *Server) body(turn Turn, n int) (string, error) {
	switch {
	case turn.Body != "":
		return turn.Body, nil
	case turn.Status != 0 && turn.Status != http.StatusOK:
		return statusBody(turn.Status), nil
	}
	body, err := s.opts.Dialect.body(turn, n)
	return string(body), err
}

func (s *Server) write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // whoever has gone does not miss it
}
