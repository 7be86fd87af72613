package hermesapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/chat"
)

const (
	testKey = "hermes-key-0123456789"
	thread  = chat.ThreadID("0123456789abcdef")

	// noTools is the list of a profile that was made for this purpose: every
	// toolset is there, none is enabled.
	noTools = `{"object":"list","platform":"api_server","data":[
		{"name":"terminal","label":"Terminal","description":"","enabled":false,"configured":true,"tools":["terminal","process"]},
		{"name":"file","label":"Files","description":"","enabled":false,"configured":true,"tools":["patch","read_file","search_files","write_file"]}]}`
	itself = `{"object":"hermes.api_server.capabilities","auth":{"type":"bearer","required":true},
		"runtime":{"mode":"server_agent","tool_execution":"server","split_runtime":false},"features":{"chat_completions":true},"endpoints":{}}`
	fine = `{"id":"chatcmpl-x1","object":"chat.completion","created":1,"model":"hermes-agent","choices":[{"index":0,
		"message":{"role":"assistant","content":"It is there."},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
)

// hermes is a scripted Hermes API server with the shapes of section 2.
type hermes struct {
	server *httptest.Server

	mu           sync.Mutex
	capabilities string
	toolsets     string
	status       int
	header       http.Header
	answer       string
	hold         chan struct{} // what a completion waits for, besides its client

	calls    map[string]int // by path
	requests []*http.Request
	bodies   []completionRequest
}

// MustServe starts a server that has no tools and a fine answer.
func MustServe(t testing.TB) *hermes {
	t.Helper()
	h := &hermes{capabilities: itself, toolsets: noTools, status: http.StatusOK, answer: fine, calls: map[string]int{}}
	h.server = httptest.NewServer(h)
	t.Cleanup(h.server.Close)
	return h
}

// set changes the script.
func (h *hermes) set(change func(h *hermes)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// count returns how often a path was asked for.
func (h *hermes) count(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[path]
}

func (h *hermes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[r.URL.Path]++
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Origin") != "":
		w.WriteHeader(http.StatusForbidden)
	case r.Header.Get("Authorization") != "Bearer "+testKey:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"Invalid API key","type":"invalid_request_error","code":"invalid_api_key"}}`)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/capabilities":
		_, _ = io.WriteString(w, h.capabilities)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/toolsets":
		_, _ = io.WriteString(w, h.toolsets)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions":
		h.complete(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (h *hermes) complete(w http.ResponseWriter, r *http.Request) {
	var body completionRequest
	if err := json.UnmarshalRead(r.Body, &body, json.RejectUnknownMembers(true)); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.requests, h.bodies = append(h.requests, r), append(h.bodies, body)
	if h.hold != nil {
		h.hold <- struct{}{}
		<-r.Context().Done()
		return
	}
	for name, values := range h.header {
		w.Header()[name] = values
	}
	w.WriteHeader(h.status)
	_, _ = io.WriteString(w, h.answer)
}

// MustNew returns a back end that asks the server and is closed with the test.
func (h *hermes) MustNew(t testing.TB, o Options) *Backend {
	t.Helper()
	o.BaseURL, o.Key = h.server.URL, testKey
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// ask returns a question whose messages an operator wrote.
func ask(texts ...string) autoreply.Question {
	q := autoreply.Question{Thread: thread, Limit: 4000, Budget: autoreply.Budget{Bytes: 1 << 20}}
	for i, text := range texts {
		q.Messages = append(q.Messages, chat.Message{Epoch: 1_700_000_000_000 + int64(i), Author: chat.Operator, Text: text})
	}
	return q
}

// dataOf returns the lines between the two marks of a prompt.
func dataOf(t testing.TB, user string) []string {
	t.Helper()
	lines := strings.Split(user, "\n")
	if len(lines) < 4 || !strings.HasPrefix(lines[1], "BEGIN-") {
		t.Fatalf("prompt %q", user)
	}
	mark := strings.TrimPrefix(lines[1], "BEGIN-")
	last := len(lines) - 2
	if len(mark) != 32 || lines[last] != "END-"+mark || strings.Count(user, mark) != 4 {
		t.Fatalf("prompt %q", user)
	}
	return lines[2:last]
}
