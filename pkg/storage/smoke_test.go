package storage

import (
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

func TestSmoke(t *testing.T) {
	s := Open(Options{Root: t.TempDir(), Space: "newos4", Retention: chat.Retention{Messages: 200, MaxAge: 720 * time.Hour}, Threads: 500, Page: 50})
	id := chat.Token("0").Thread()
	for i := range 120 {
		r, err := s.Append(t.Context(), id, Post{Author: chat.Operator, Text: "hello", Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			t.Log(r)
		}
	}
	p, err := s.Poll(id, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(string(p.AppendJSON(nil)), len(p.Messages()))
	t.Log(s.Reset(t.Context(), id))
}
