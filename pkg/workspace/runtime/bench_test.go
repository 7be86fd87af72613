package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/runtime"
	"github.com/newos4/relay/pkg/workspace/store"
)

// instant is an upstream that costs nothing: what is measured is the runtime.
type instant struct {
	hermes.Upstream
	submitted chan *turn
}

// turn is a session of [instant].
type turn struct {
	hermes.Session
	up     *instant
	events chan hermes.Event
}

// always is the upstream of every node.
type always struct{ up hermes.Upstream }

func (a always) Upstream(context.Context, workspace.OwnerID, workspace.NodeID) (hermes.Upstream, error) {
	return a.up, nil
}

func (u *instant) Open(context.Context, hermes.OpenRequest) (hermes.Session, error) {
	return &turn{up: u, events: make(chan hermes.Event)}, nil
}

func (t *turn) State() hermes.State         { return hermes.State{StoredID: "s", RuntimeID: "r", Profile: "p"} }
func (t *turn) Events() <-chan hermes.Event { return t.events }
func (t *turn) Close() error                { return nil }
func (t *turn) Usage(context.Context) (hermes.Usage, error) {
	return hermes.Usage{}, errors.New("unknown")
}

func (t *turn) Submit(context.Context, hermes.Prompt) error {
	t.up.submitted <- t
	return nil
}

// bench returns a runtime over an instant upstream with one direct chat, and a
// number of idle ones beside it.
func bench(b *testing.B, idle int) (*runtime.Runtime, *store.Store, *instant, workspace.ConversationID) {
	b.Helper()
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Dir: filepath.Join(b.TempDir(), "workspace")})
	if err != nil {
		b.Fatal(err)
	}
	user := account.User{ID: string(ann), Username: "ann", Role: account.RoleUser, Enabled: true}
	if err := s.Accounts().AddUser(ctx, account.Record{User: user, Key: "ann"}); err != nil {
		b.Fatal(err)
	}
	for i := range idle + 1 {
		_, err := s.CreateAgent(ctx, ann, workspace.NewAgent{Name: workspace.Some(fmt.Sprint("agent ", i)), Profile: workspace.Some("p")},
			func(context.Context) ([]workspace.Source, error) {
				return []workspace.Source{{NodeID: workspace.LocalNode, Profile: "p"}}, nil
			})
		if err != nil {
			b.Fatal(err)
		}
	}
	list, err := s.Conversations(ctx, ann)
	if err != nil {
		b.Fatal(err)
	}
	up := &instant{submitted: make(chan *turn)}
	r := runtime.New(runtime.Options{Store: s, Upstreams: always{up}})
	if err := r.Start(ctx); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		r.Stop()
		_ = s.Close()
	})
	return r, s, up, list.Conversations[0].ID
}

// BenchmarkSubmission measures from a stored message to its submission, and from
// the upstream's frame to the event, each with the syncs of the disk, beside 1000
// idle chats.
func BenchmarkSubmission(b *testing.B) {
	r, s, up, chat := bench(b, 1000)
	ctx := context.Background()
	var submission, frame time.Duration
	n := 0
	for b.Loop() {
		n++
		_, err := s.Send(ctx, ann, chat, workspace.SendMessage{
			RequestID: workspace.Some(workspace.RequestID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))), Content: workspace.Some("hi"),
		})
		if err != nil {
			b.Fatal(err)
		}
		stored := time.Now()
		r.Wake()
		t := <-up.submitted
		submission += time.Since(stored)
		t.events <- hermes.Started{}
		changed := s.Changed(ann)
		sent := time.Now()
		t.events <- hermes.Delta{Text: "hello"}
		<-changed
		frame += time.Since(sent)
		t.events <- hermes.Completed{Text: "hello"}
		for {
			d, err := s.Conversation(ctx, ann, chat)
			if err != nil {
				b.Fatal(err)
			}
			if d.Run == nil {
				break
			}
		}
	}
	b.ReportMetric(float64(submission.Microseconds())/float64(n), "µs/submission")
	b.ReportMetric(float64(frame.Microseconds())/float64(n), "µs/frame")
}
