package store

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensures section 6.1: processes that are killed at any moment of their writing
// leave a whole database with every acknowledged message, at most one more of
// each, an event for each, and the next writer unhindered.
func TestCrash_AtAnyMoment(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 4 * soak() {
		dir := filepath.Join(t.TempDir(), "workspace")
		s := mustOpen(t, inDir(dir))
		to := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID).ID
		children := []*child{startChild(t, "send", dir, string(to), "p0"), startChild(t, "send", dir, string(to), "p1")}
		acknowledged := make(map[string]bool)
		for range 1 + r.IntN(30) {
			if c := children[round%2]; c.stdout.Scan() {
				acknowledged[c.stdout.Text()] = true
			}
		}
		for _, c := range children {
			if err := c.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		for _, c := range children {
			lines, err := c.finish()
			if !isKilled(err) {
				t.Errorf("a child ended by itself: %v", err)
			}
			for _, line := range lines {
				acknowledged[line] = true
			}
		}
		checkSurvivors(t, s, to, acknowledged)
		mustSend(t, s, ann, to, text(1, "after the crash"))
	}
}

func checkSurvivors(t *testing.T, s *Store, to workspace.ConversationID, acknowledged map[string]bool) {
	t.Helper()
	stored := 0
	for before := int64(0); before >= 0; {
		page, err := s.Messages(t.Context(), ann, to, before, 200)
		if err != nil {
			t.Fatal(err)
		}
		before = -1
		for i, m := range page {
			if stored++; i == 0 {
				before = m.Seq
			}
			delete(acknowledged, m.Content)
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("lost: %v", acknowledged)
	}
	if err := holds(s, to, stored); err != nil {
		t.Error(err)
	}
}

// Ensures that a full disk loses and acknowledges nothing, is called what it is,
// leaves the store readable, and that writing goes on once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	lines, err := startChild(t, "full disk", t.TempDir()).finish()
	if err != nil {
		t.Fatalf("%v\n%v", err, lines)
	}
	t.Log(lines)
}

// Ensures that processes that write at the same time wait for each other instead
// of failing, and that their sequences never collide.
func TestProcesses_WriteTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s := mustOpen(t, inDir(dir))
	to := mustDirect(t, s, ann, mustAgent(t, s, ann, "A").ID).ID
	c := startChild(t, "send", dir, string(to), "other")
	seen := 0
	for n := 0; seen < 20; n++ {
		mustSend(t, s, ann, to, text(n, fmt.Sprint("own ", n)))
		if c.stdout.Scan() {
			seen++
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.finish(); !isKilled(err) {
		t.Errorf("the other process ended by itself: %v", err)
	}
	if n := count(t, s, `SELECT count(*) - max(seq) FROM message WHERE conversation_id = ?`, to); n != 0 {
		t.Errorf("the sequences of the chat have a gap of %d", n)
	}
}
