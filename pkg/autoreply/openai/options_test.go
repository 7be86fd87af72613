package openai_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/autoreply/openai"
)

// Ensures that a base URL is taken only when it is plain and does not send a key
// in the clear, and that a refusal does not repeat what may be a secret.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url, key string
		ok       bool
	}{
		{"https://api.example/v1", "sk-secret", true},
		{"https://api.example/v1/", "", true},
		{"http://127.0.0.1:8080/v1", "sk-secret", true},
		{"http://[::1]:8080/v1", "sk-secret", true},
		{"http://localhost:11434/v1", "sk-secret", true},
		{"http://ollama:11434/v1", "", true},
		{"http://ollama:11434/v1", "sk-secret", false},
		{"http://localhost.evil.example/v1", "sk-secret", false},
		{"http://10.0.0.1/v1", "sk-secret", false},
		{"https://user:secret@api.example/v1", "", false},
		{"https://api.example/v1?key=secret", "", false},
		{"https://api.example/v1#secret", "", false},
		{"ftp://api.example/v1", "", false},
		{"unix:///run/secret.sock", "", false},
		{"api.example/v1", "", false},
		{"https:///v1", "", false},
		{"://secret", "", false},
		{"", "", false},
		{"https://api.example/v1", "sk-secret\n", false},
		{"https://api.example/v1", "sk secret", false},
		{"https://api.example/v1", "sk-sécret", false},
	} {
		_, err := openai.New(openai.Options{BaseURL: test.url, Model: "m", Key: openai.Key(test.key)})
		if (err == nil) != test.ok {
			t.Errorf("%s with key %q: %v", test.url, test.key, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sécret")) {
			t.Errorf("the error repeats a secret: %v", err)
		}
	}
	if _, err := openai.New(openai.Options{BaseURL: "https://api.example/v1"}); err == nil {
		t.Error("no model, no error")
	}
}

// Ensures that options can be printed and logged in any way without the key.
func TestKey_IsHidden(t *testing.T) {
	t.Parallel()
	opts := openai.Options{BaseURL: "https://api.example/v1", Model: "m", Key: "sk-secret"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("options", "options", opts, "key", opts.Key)
	for _, text := range []string{
		log.String(), fmt.Sprint(opts), fmt.Sprintf("%+v", opts), fmt.Sprintf("%#v", opts), fmt.Sprintf("%q %s", opts.Key, opts.Key),
	} {
		if strings.Contains(text, "sk-secret") {
			t.Errorf("the key is in %s", text)
		}
	}
}
