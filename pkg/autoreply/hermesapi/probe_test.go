package hermesapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
)

// tools is a list with one toolset.
func tools(toolset string) string { return `{"object":"list","data":[` + toolset + `]}` }

// Ensures that only a server whose list of tools proves harmless is used, and
// that the failure names what is in the way.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		capabilities, toolsets string
		says                   string // "" if it may be used
	}{
		"none enabled":        {itself, noTools, ""},
		"empty list":          {itself, `{"data":[]}`, ""},
		"empty toolset":       {itself, tools(`{"name":"none","enabled":true,"tools":[]}`), ""},
		"allowed":             {itself, tools(`{"name":"time","enabled":true,"tools":["clock",{"name":"clock"}]}`), ""},
		"enabled":             {itself, strings.Replace(noTools, "false", "true", 1), `the tool "terminal" of the toolset "terminal" is enabled`},
		"second of a set":     {itself, tools(`{"name":"time","enabled":true,"tools":["clock","alarm"]}`), `the tool "alarm"`},
		"as an object":        {itself, tools(`{"name":"time","enabled":true,"tools":[{"name":"alarm"}]}`), `the tool "alarm"`},
		"another letter case": {itself, tools(`{"name":"time","enabled":true,"tools":["Clock"]}`), `the tool "Clock"`},
		"enabled or not":      {itself, tools(`{"name":"time","tools":["alarm"]}`), `the tool "alarm"`},
		"tools not told":      {itself, tools(`{"name":"time","enabled":true}`), "does not say what it holds"},
		"tools null":          {itself, tools(`{"name":"time","enabled":true,"tools":null}`), "does not say what it holds"},
		"tool without a name": {itself, tools(`{"name":"time","enabled":true,"tools":[{}]}`), "without a name"},
		"tool a number":       {itself, tools(`{"name":"time","enabled":true,"tools":[7]}`), "without a name"},
		"enabled a text":      {itself, tools(`{"name":"time","enabled":"no","tools":["alarm"]}`), "cannot be understood"},
		"names alone":         {itself, `{"toolsets":["terminal"]}`, "missing"},
		"a bare list":         {itself, `[]`, "cannot be understood"},
		"not JSON":            {itself, `<html>`, "cannot be understood"},
		"a hostile name":      {itself, tools(`{"name":"x","enabled":true,"tools":["\u001b[2J\u202e"]}`), `⟦U+001B⟧[2J⟦U+202E⟧`},
		"another server":      {`{"object":"list"}`, noTools, "not a Hermes API server"},
		"no object":           {`{}`, noTools, "not a Hermes API server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := MustServe(t)
			h.capabilities, h.toolsets = test.capabilities, test.toolsets
			b := h.MustNew(t, Options{AllowedTools: []string{"clock"}})
			_, answerErr := b.Answer(t.Context(), ask("Where?"))
			for what, err := range map[string]error{"Probe": b.Probe(t.Context()), "Answer": answerErr} {
				if test.says == "" {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
					continue
				}
				if got := failureOf(t, err); got.Reason != autoreply.ReasonUnsafe || got.Retry || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: got %v, want %q", what, err, test.says)
				}
			}
			if n := h.count("/v1/chat/completions"); n > 0 && test.says != "" {
				t.Error("a thread was sent all the same")
			}
		})
	}
}

// Ensures that a server that cannot be asked for its tools gets no thread, for
// the reason there is.
func TestProbe_Fails(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	for name, test := range map[string]struct {
		base, key string
		want      autoreply.Reason
	}{
		"wrong key":     {h.server.URL, "another", autoreply.ReasonRefused},
		"no key":        {h.server.URL, "", autoreply.ReasonRefused},
		"wrong address": {h.server.URL + "/elsewhere", testKey, autoreply.ReasonUnsafe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := New(Options{BaseURL: test.base, Key: test.key})
			if err != nil {
				t.Fatal(err)
			}
			if got := failureOf(t, b.Probe(t.Context())); got.Reason != test.want || got.Retry {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Ensures that the tools are looked at before the first answer and again when
// that is some time ago, and that one that was enabled meanwhile ends all
// answers until it is gone.
func TestProbe_Again(t *testing.T) {
	t.Parallel()
	h := MustServe(t)
	now := time.Unix(1_700_000_000, 0)
	b := h.MustNew(t, Options{Now: func() time.Time { return now }})
	expect := func(what string, fine bool, looks, answers int) {
		t.Helper()
		_, err := b.Answer(t.Context(), ask("Where?"))
		if (err == nil) != fine || h.count("/v1/toolsets") != looks || h.count("/v1/chat/completions") != answers {
			t.Errorf("%s: %v after %d looks and %d answers, want %d and %d",
				what, err, h.count("/v1/toolsets"), h.count("/v1/chat/completions"), looks, answers)
		}
	}
	expect("first", true, 1, 1)
	h.set(func(h *hermes) { h.toolsets = tools(`{"name":"web","enabled":true,"tools":["fetch"]}`) })
	now = now.Add(DefaultProbeEvery - 1)
	expect("trusted", true, 1, 2)
	now = now.Add(1)
	expect("looked again", false, 2, 2)
	expect("still enabled", false, 3, 2)
	h.set(func(h *hermes) { h.toolsets = noTools })
	expect("gone", true, 4, 3)
	expect("trusted again", true, 4, 4)
	h.set(func(h *hermes) { h.toolsets = "" })
	if err := b.Probe(t.Context()); err == nil {
		t.Error("Probe trusts an old list")
	}
	expect("after a failed probe", false, 6, 4)
}

// Ensures that an address is taken with and without what its requests add, that
// malformed ones are refused, and that no error repeats a secret.
func TestNew(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://127.0.0.1:8642":              "http://127.0.0.1:8642",
		"http://127.0.0.1:8642/":             "http://127.0.0.1:8642",
		"http://127.0.0.1:8642/v1":           "http://127.0.0.1:8642",
		"https://h.example/p/public/v1/":     "https://h.example/p/public",
		"":                                   "",
		"127.0.0.1:8642":                     "",
		"ftp://h.example":                    "",
		"http://":                            "",
		"http://h.example/v1?x=1":            "",
		"http://user:secret@h.example/v1":    "",
		"http://user:secret@h.example/%zz/a": "",
	} {
		b, err := New(Options{BaseURL: address, Key: testKey})
		switch {
		case want == "" && (err == nil || strings.Contains(err.Error(), "secret")):
			t.Errorf("New(%q): %v", address, err)
		case want != "" && (err != nil || b.base != want):
			t.Errorf("New(%q): %v", address, err)
		}
	}
	for _, key := range []string{"a secret", "secret\n", "sécret"} {
		if _, err := New(Options{BaseURL: "https://h.example", Key: key}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("New with the key %q: %v", key, err)
		}
	}
}

// Ensures that the client that is given is not changed.
func TestNew_Client(t *testing.T) {
	t.Parallel()
	var client http.Client
	if _, err := New(Options{BaseURL: "http://h.example", Client: &client}); err != nil || client.CheckRedirect != nil || client.Transport != nil {
		t.Errorf("client is %+v, %v", client, err)
	}
}

// Ensures that a key is sent in the clear to this host alone.
func TestNew_KeyInTheClear(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"http://127.0.0.1:8642": true, "http://localhost/v1": true, "http://[::1]:1": true, "https://h.example": true,
		"http://h.example": false, "http://192.0.2.1:8642": false, "http://localhost.example": false,
	} {
		if _, err := New(Options{BaseURL: address, Key: testKey}); (err == nil) != ok || err != nil && strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := New(Options{BaseURL: address}); err != nil {
			t.Errorf("%s without a key: %v", address, err)
		}
	}
}
