package openai_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
	"github.com/newos4/relay/pkg/autoreply/openai"
)

// probeOf probes a server that answers with the same everywhere.
func probeOf(t *testing.T, status int, body string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	backend, err := openai.New(openai.Options{BaseURL: server.URL, Model: "m", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backend.Close() }()
	return backend.Probe(t.Context())
}

// Ensures that a server is taken when it lists models or does not know how to,
// and not when it refuses the key, is busy or is not there.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]autoreplytest.Options{
		"models": {}, "no models": {NoModels: true}, "key": {Key: "sk-test"},
	} {
		if err := newFixture(t, options).backend.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, test := range []struct {
		status int
		body   string
		want   autoreply.Reason // "" for none
	}{
		{http.StatusOK, `<html>`, ""},
		{http.StatusNotFound, `x`, ""},
		{http.StatusMethodNotAllowed, ``, ""},
		{http.StatusNotImplemented, ``, ""},
		{http.StatusUnauthorized, `{}`, autoreply.ReasonRefused},
		{http.StatusFound, ``, autoreply.ReasonRefused},
		{http.StatusServiceUnavailable, `loading model`, autoreply.ReasonUnavailable},
		{http.StatusOK, `{"object":"hermes.something.new"}`, autoreply.ReasonUnsafe},
	} {
		err := probeOf(t, test.status, test.body)
		failure, ok := errors.AsType[*autoreply.Failure](err)
		if ok != (test.want != "") || ok && failure.Reason != test.want {
			t.Errorf("status %d: %v, want %q", test.status, err, test.want)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	backend, err := openai.New(openai.Options{BaseURL: gone.URL, Model: "m", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	failure, ok := errors.AsType[*autoreply.Failure](backend.Probe(t.Context()))
	if !ok || failure.Reason != autoreply.ReasonUnavailable || !failure.Retry {
		t.Errorf("a server that is gone: %v", failure)
	}
}

// Ensures that a Hermes API server, which runs tools of its own, is refused
// before any text is sent to it, and also when it took another's place later.
func TestHermesIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, autoreplytest.Options{Hermes: true})
	for _, err := range []error{
		f.backend.Probe(t.Context()), f.failure(question("hello"), autoreply.ReasonUnsafe, false),
	} {
		failure, ok := errors.AsType[*autoreply.Failure](err)
		if !ok || failure.Reason != autoreply.ReasonUnsafe || failure.Retry || !strings.Contains(err.Error(), "Hermes") {
			t.Errorf("error %v", err)
		}
	}
	if n := len(f.server.Requests()); n != 0 {
		t.Errorf("%d texts were sent", n)
	}

	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			t.Error("a text was sent to a server that has not said what it is")
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer busy.Close()
	unknown, err := openai.New(openai.Options{BaseURL: busy.URL, Model: "m", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unknown.Answer(t.Context(), question("hello")); err == nil {
		t.Error("a server in trouble is taken for harmless")
	}

	later := newFixture(t, autoreplytest.Options{})
	later.server.Script("", autoreplytest.Turn{Text: "x", Header: http.Header{"X-Hermes-Session-Id": {"api-1"}}})
	later.fails(question("hello"), autoreply.ReasonUnsafe, false)
}
