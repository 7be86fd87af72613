package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

// Each benchmark stands beside the bare statements of the same shape, on the same
// database with the same settings and prepared statements, whose rows are scanned
// into plain values: what any program would pay.

// bare is a database opened without the store.
type bare struct{ *sql.DB }

func openBare(b *testing.B, s *Store, a access) bare {
	b.Helper()
	db, err := sql.Open("sqlite", dataSource(filepath.Join(s.opts.Dir, FileName), a))
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = db.Close() })
	return bare{db}
}

func (db bare) prepare(b *testing.B, query string) *sql.Stmt {
	b.Helper()
	prepared, err := db.PrepareContext(context.Background(), query)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = prepared.Close() })
	return prepared
}

// scanAll reads all rows of a statement into strings.
func scanAll(b *testing.B, prepared *sql.Stmt, args ...any) (n int) {
	rows, err := prepared.QueryContext(context.Background(), args...)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		b.Fatal(err)
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return n
}

// fill appends n messages to a chat, each with its event, in few transactions.
func fill(b *testing.B, s *Store, to workspace.ConversationID, n int) {
	b.Helper()
	for ; n > 0; n -= 1000 {
		say(b, s, to, min(n, 1000))
	}
}

// BenchmarkEvents reads events when there is nothing new.
func BenchmarkEvents(b *testing.B) {
	s := mustOpen(b)
	fill(b, s, mustDirect(b, s, ann, mustAgent(b, s, ann, "A").ID).ID, 2000)
	cursor := mustList(b, s, ann).Cursor
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			if page, err := s.Events(context.Background(), ann, cursor, 250); err != nil || len(page.Events) != 0 {
				b.Fatal(page, err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		prepared := openBare(b, s, readOnly).prepare(b, `SELECT seq, type, conversation_id, data FROM event WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?`)
		for b.Loop() {
			if scanAll(b, prepared, ann, cursor, 250) != 0 {
				b.Fatal("something is new")
			}
		}
	})
	b.Run("store, a page of 250", func(b *testing.B) {
		for b.Loop() {
			if page, err := s.Events(context.Background(), ann, 0, 250); err != nil || len(page.Events) != 250 {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare, a page of 250", func(b *testing.B) {
		prepared := openBare(b, s, readOnly).prepare(b, `SELECT seq, type, conversation_id, data FROM event WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?`)
		for b.Loop() {
			scanAll(b, prepared, ann, 0, 250)
		}
	})
}

// BenchmarkConversations lists 500 chats, with few and with many messages.
func BenchmarkConversations(b *testing.B) {
	for _, each := range []int{1, 40} {
		s := mustOpen(b)
		for i := range 500 {
			to := mustDirect(b, s, ann, mustAgent(b, s, ann, fmt.Sprint("agent ", i)).ID).ID
			fill(b, s, to, each)
			if i%100 == 0 {
				mustSend(b, s, ann, to, text(i, "hello"))
			}
		}
		b.Run(fmt.Sprintf("store, %d messages each", each), func(b *testing.B) {
			for b.Loop() {
				if list, err := s.Conversations(context.Background(), ann); err != nil || len(list.Conversations) != 500 {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("bare, %d messages each", each), func(b *testing.B) {
			db := openBare(b, s, readOnly)
			list := db.prepare(b, `SELECT `+chatColumns+`avatar FROM conversation WHERE owner = ?
				ORDER BY pinned DESC, coalesce(last_message_at, created_at) DESC, id`)
			cursor := db.prepare(b, `SELECT max(seq) FROM event WHERE owner = ?`)
			for b.Loop() {
				scanAll(b, cursor, ann)
				if scanAll(b, list, ann) != 500 {
					b.Fatal("not 500 chats")
				}
			}
		})
	}
}

// BenchmarkConversation opens a chat with few and with many messages.
func BenchmarkConversation(b *testing.B) {
	for _, messages := range []int{100, 10_000} {
		s := mustOpen(b)
		to := mustDirect(b, s, ann, mustAgent(b, s, ann, "A").ID).ID
		fill(b, s, to, messages)
		mustSend(b, s, ann, to, text(1, "hello"))
		b.Run(fmt.Sprintf("store, %d messages", messages), func(b *testing.B) {
			for b.Loop() {
				if d, err := s.Conversation(context.Background(), ann, to); err != nil || len(d.Messages) != 100 || d.Run == nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("bare, %d messages", messages), func(b *testing.B) {
			db := openBare(b, s, readOnly)
			var statements []*sql.Stmt
			for _, query := range []string{
				`SELECT ` + chatColumns + `avatar FROM conversation WHERE owner = ? AND id = ?`,
				`SELECT ` + messageColumns + ` FROM message WHERE owner = ? AND conversation_id = ? AND hidden = 0 AND seq < 1000000 ORDER BY seq DESC LIMIT 100`,
				`SELECT id FROM message WHERE owner = ? AND conversation_id = ? AND hidden = 1`,
				`SELECT ` + interactionColumns + ` FROM interaction WHERE owner = ? AND conversation_id = ? AND resolved = 0`,
				`SELECT data FROM context_usage WHERE owner = ? AND conversation_id = ?`,
				`SELECT ` + runColumns + ` FROM run WHERE owner = ? AND conversation_id = ? AND status NOT IN ('complete', 'failed', 'interrupted')`,
			} {
				statements = append(statements, db.prepare(b, query))
			}
			for b.Loop() {
				for _, prepared := range statements {
					scanAll(b, prepared, ann, to)
				}
			}
		})
	}
}

// BenchmarkSend sends from 32 clients to 32 chats, durably.
func BenchmarkSend(b *testing.B) {
	const clients = 32
	b.Run("store", func(b *testing.B) {
		s := mustOpen(b)
		var chats []workspace.ConversationID
		for i := range clients {
			chats = append(chats, mustDirect(b, s, ann, mustAgent(b, s, ann, fmt.Sprint("agent ", i)).ID).ID)
		}
		inParallel(b, clients, func(client, n int) error {
			_, err := s.Send(context.Background(), ann, chats[client], text(n, "a message of usual length, as people write them"))
			return err
		})
	})
	b.Run("bare", func(b *testing.B) {
		s := mustOpen(b)
		var chats []workspace.ConversationID
		for i := range clients {
			chats = append(chats, mustDirect(b, s, ann, mustAgent(b, s, ann, fmt.Sprint("agent ", i)).ID).ID)
		}
		t := newBareSend(b, s)
		inParallel(b, clients, func(client, n int) error { return t.send(chats[client], n) })
	})
	b.Run("bare, the commit alone", func(b *testing.B) {
		s := mustOpen(b)
		db := openBare(b, s, readWrite)
		insert := db.prepare(b, `INSERT INTO selected_voice (owner, voice_id) VALUES (?, 'v')`)
		inParallel(b, clients, func(_, n int) error {
			_, err := insert.ExecContext(context.Background(), n)
			return err
		})
	})
}

// inParallel calls do with rising numbers from so many goroutines.
func inParallel(b *testing.B, clients int, do func(client, n int) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for client := range clients {
		group.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := do(client, int(n)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
}

// bareSend writes the rows of a send as they come, without asking any rule.
type bareSend struct {
	mu         sync.Mutex
	statements []*sql.Stmt
	begin      *sql.Stmt
	commit     *sql.Stmt
}

func newBareSend(b *testing.B, s *Store) *bareSend {
	db := openBare(b, s, readWrite)
	t := &bareSend{begin: db.prepare(b, "BEGIN IMMEDIATE"), commit: db.prepare(b, "COMMIT")}
	for _, query := range []string{
		`INSERT INTO message (owner, ` + messageColumns + `) VALUES (?1, 'm' || ?3, ?2, ?3, 'user', '', '', 'r' || ?3, '', 0, 'complete', '', ?3,
			'a message of usual length, as people write them', '', '[]', '[]')`,
		`INSERT INTO run (owner, ` + runColumns + `) VALUES (?1, 'r' || ?3, ?2, 'm' || ?3, ?3, '[]', 'a', 'queued', 0, '', 0, ?3, ?3)`,
		`INSERT INTO task (owner, id, run_id, conversation_id, agent_id, message_id, trigger_seq, depth, batch_id, review_of, reply_mode, required_reply,
			status, current_message_id, submitted, cancel_requested, planned, silent, had_interaction, error, context_through_seq, attempt, created_at, launch)
			VALUES (?1, 't' || ?3, 'r' || ?3, ?2, 'a', 'm' || ?3, ?3, 0, '', NULL, 'mentioned', 0, 'queued', '', 0, 0, 0, 0, 0, '', 0, 0, ?3, '')`,
		`INSERT INTO command (owner, request_id, run_id, fingerprint) VALUES (?1, 'q' || ?2 || ?3, 'r' || ?3, 'f')`,
		`UPDATE conversation SET last_seq = last_seq + 1, last_message_at = ?3, preview = 'a message', queued_message_count = queued_message_count + 1
			WHERE owner = ?1 AND id = ?2`,
		bareEvent("message", 450), bareEvent("run", 300), bareEvent("conversation", 700),
	} {
		t.statements = append(t.statements, db.prepare(b, query))
	}
	return t
}

func bareEvent(kind string, size int) string {
	return fmt.Sprintf(`INSERT INTO event (owner, type, conversation_id, entity_id, created_at, avatar, data)
		VALUES (?1, '%s.changed', ?2, 'm' || ?3, ?3, '', '%s')`, kind, strings.Repeat("x", size))
}

func (t *bareSend) send(to workspace.ConversationID, n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx := context.Background()
	if _, err := t.begin.ExecContext(ctx); err != nil {
		return err
	}
	for _, prepared := range t.statements {
		if _, err := prepared.ExecContext(ctx, ann, to, n); err != nil {
			return err
		}
	}
	_, err := t.commit.ExecContext(ctx)
	return err
}

// BenchmarkWake measures from the commit of an event until the last of 100
// clients that wait knows of it.
func BenchmarkWake(b *testing.B) {
	s := mustOpen(b)
	cursor := int64(0)
	for b.Loop() {
		var ready, group sync.WaitGroup
		for range 100 {
			ready.Add(1)
			group.Go(func() {
				ready.Done()
				if _, err := s.WaitEvents(context.Background(), ann, cursor, 250, time.Minute); err != nil {
					b.Error(err)
				}
			})
		}
		ready.Wait()
		tell(b, s, ann, workspace.EventNodes, "", 1)
		group.Wait()
		cursor = mustList(b, s, ann).Cursor
	}
}
