package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

const (
	nodePassword = "node-password-that-nobody-may-see"
	voiceKey     = "voice-key-that-nobody-may-see"
	speechKey    = "speech-key-that-nobody-may-see"
)

// fillSecrets stores one secret of each kind.
func fillSecrets(t *testing.T, s *Store) workspace.Node {
	t.Helper()
	n, err := s.AddNode(t.Context(), ann, workspace.Node{Name: "home", URL: "http://node.example"},
		workspace.NodeCredentials{Username: "hermes", Password: nodePassword})
	if err != nil {
		t.Fatal(err)
	}
	edit := workspace.DuplexVoiceEdit{
		APIKey:         workspace.Some(voiceKey),
		Voices:         workspace.Some([]workspace.Voice{{ID: "v1", Name: "One"}, {ID: "v2", Name: "Two"}}),
		CurrentVoiceID: workspace.Some("v1"),
	}
	if _, err := s.EditDuplexVoice(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []workspace.SpeechKind{workspace.TTS, workspace.STT} {
		if _, err := s.EditSpeech(t.Context(), kind, func(now workspace.SpeechSettings) (workspace.SpeechSettings, error) {
			return now.Set(kind, "openai", workspace.SpeechEdit{Secrets: workspace.Some(map[string]string{"apiKey": speechKey})})
		}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// Ensures section 9.2 and scenario 33: secrets come back as they were stored,
// and none of them is found in any file of the data directory.
func TestSecrets_AreNotInTheFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s := mustOpen(t, inDir(dir))
	n := fillSecrets(t, s)
	got, secret, err := s.Node(t.Context(), ann, n.ID)
	if err != nil || got != n || secret.Password != nodePassword || secret.Username != "hermes" {
		t.Errorf("the node is %+v %q, %v", got, secret.Password, err)
	}
	if d, err := s.DuplexVoice(t.Context()); err != nil || d.APIKey != voiceKey {
		t.Errorf("the voice key is %q, %v", d.APIKey, err)
	}
	if settings, err := s.Speech(t.Context(), workspace.STT); err != nil || settings.Providers["openai"].Secrets["apiKey"] != speechKey {
		t.Errorf("the speech settings are %+v, %v", settings, err)
	}
	look := func() {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{nodePassword, voiceKey, speechKey} {
				if bytes.Contains(content, []byte(word)) {
					t.Errorf("%s holds %q", entry.Name(), word)
				}
			}
		}
	}
	mustExec(t, s, ann, `UPDATE node SET name = 'written after the secrets'`)
	if err := s.Close(); err != nil { // only now: closing a file of the database drops its locks
		t.Fatal(err)
	}
	look()
}

// Ensures section 9.2: a secret opens only in its place and under its key; a row
// that was moved to another owner or node, or changed, does not.
func TestSecrets_AreBoundToTheirPlace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workspace")
	s := mustOpen(t, inDir(dir))
	n := fillSecrets(t, s)
	other, err := s.AddNode(t.Context(), ann, workspace.Node{Name: "other"}, workspace.NodeCredentials{Password: "x"})
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, ann, `UPDATE secret SET sealed = (SELECT sealed FROM secret WHERE id = ?) WHERE id = ?`, n.ID, other.ID)
	if _, _, err := s.Node(t.Context(), ann, other.ID); err == nil || !strings.Contains(err.Error(), "hint:") {
		t.Errorf("a moved secret opens: %v", err)
	}
	for _, sealed := range [][]byte{{}, make([]byte, 5), make([]byte, 50)} {
		mustExec(t, s, ann, `UPDATE secret SET sealed = ? WHERE id = ?`, sealed, other.ID)
		if _, _, err := s.Node(t.Context(), ann, other.ID); err == nil {
			t.Errorf("%d bytes open as a secret", len(sealed))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, KeyName)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mustOpen(t, inDir(dir)).Node(t.Context(), ann, n.ID); err == nil {
		t.Error("a secret opens under another key")
	}
	if err := os.Truncate(filepath.Join(dir, KeyName), 31); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); err == nil {
		t.Error("a key of another length does not stop the start")
	}
}

// Ensures that the same secret is never sealed twice alike, and that no two
// places are taken for each other.
func TestSealer_FreshNonces(t *testing.T) {
	t.Parallel()
	s, err := newSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	at := place{ann, "node", "1"}
	first, err := s.seal(at, "secret")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.seal(at, "secret")
	if err != nil || bytes.Equal(first, second) {
		t.Errorf("two secrets are sealed alike: %v", err)
	}
	for _, other := range []place{{bob, "node", "1"}, {ann, "voice", "1"}, {ann, "node", "2"}, {ann, "node1", ""}} {
		var plain string
		if err := s.unseal(other, first, &plain); err == nil {
			t.Errorf("what was sealed at %v opens at %v", at, other)
		}
	}
}

// Ensures section 3.8: adding and deleting a node is told, and its credentials go
// with it.
func TestNodes(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	n := fillSecrets(t, s)
	if nodes, err := s.Nodes(t.Context(), ann); err != nil || !cmp.Equal(nodes, []workspace.Node{n}) {
		t.Errorf("the nodes are %+v, %v", nodes, err)
	}
	if err := s.DeleteNode(t.Context(), ann, n.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.DeleteNode(t.Context(), ann, n.ID), workspace.CodeRowNotFound)
	if got := types(mustEvents(t, s, ann, 0)); got != "nodes nodes" {
		t.Errorf("the events are %s", got)
	}
	if n := count(t, s, `SELECT count(*) FROM secret WHERE kind = 'node'`); n != 0 {
		t.Errorf("%d secrets are left", n)
	}
}

// Ensures section 3.9 and scenario 35: each user keeps an own selected voice,
// which must be one of the server's, and an edit without a key keeps the key.
func TestVoices(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	if d, own, err := s.SelectedVoice(t.Context(), ann); err != nil || len(d.Voices) != 0 || own != "" {
		t.Errorf("before any edit: %+v, %q, %v", d, own, err)
	}
	fillSecrets(t, s)
	if _, err := s.SelectVoice(t.Context(), ann, "v2"); err != nil {
		t.Fatal(err)
	}
	_, err := s.SelectVoice(t.Context(), ann, "v3")
	wantCode(t, err, workspace.CodeInvalidRequest)
	for owner, want := range map[workspace.OwnerID]string{ann: "v2", bob: "v1"} {
		if d, own, err := s.SelectedVoice(t.Context(), owner); err != nil || d.Chosen(own) != want {
			t.Errorf("%s has voice %q, %v", owner, d.Chosen(own), err)
		}
	}
	edit := workspace.DuplexVoiceEdit{Voices: workspace.Some([]workspace.Voice{{ID: "v1", Name: "One"}}), CurrentVoiceID: workspace.Some("")}
	if d, err := s.EditDuplexVoice(t.Context(), edit); err != nil || d.APIKey != voiceKey {
		t.Errorf("after an edit without a key: %q, %v", d.APIKey, err)
	}
	before, err := s.Speech(t.Context(), workspace.TTS)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.EditSpeech(t.Context(), workspace.TTS, func(now workspace.SpeechSettings) (workspace.SpeechSettings, error) {
		return now.Activate(workspace.TTS, "unknown")
	})
	wantCode(t, err, workspace.CodeInvalidRequest)
	if after, err := s.Speech(t.Context(), workspace.TTS); err != nil || !cmp.Equal(before, after) {
		t.Errorf("a refused edit changed the settings: %v", err)
	}
}

// Ensures section 3.10 and scenario 34: a snapshot that was observed earlier does
// not replace a later one, an equally old one does, and another user or profile
// has none.
func TestSessionContext_NeverGoesBack(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	put := func(observed float64, tokens int64) workspace.SessionSnapshot {
		t.Helper()
		snapshot, err := s.PutSessionContext(t.Context(), ann, "default", "native", workspace.SessionContext{
			UsedTokens: workspace.Some(tokens), ObservedAt: workspace.Some(observed), LimitTokens: workspace.Null[int64](),
		})
		if err != nil {
			t.Fatal(err)
		}
		return snapshot
	}
	put(20, 1)
	if got := put(10, 2); got.UsedTokens.Or(0) != 1 || got.ObservedAt.Or(0) != 20 {
		t.Errorf("an earlier snapshot gives %+v", got)
	}
	last := put(20, 3)
	stored, err := s.SessionContext(t.Context(), ann, "default", "native")
	if err != nil || stored == nil || !cmp.Equal(*stored, last, cmp.AllowUnexported(workspace.Optional[int64]{}, workspace.Optional[float64]{}, workspace.Optional[string]{})) {
		t.Errorf("stored is %+v, %v, want %+v", stored, err, last)
	}
	for _, other := range [][2]string{{string(bob), "default"}, {string(ann), "other"}} {
		if got, err := s.SessionContext(t.Context(), workspace.OwnerID(other[0]), other[1], "native"); err != nil || got != nil {
			t.Errorf("%v sees %+v, %v", other, got, err)
		}
	}
}

// Ensures section 9.3: the guard knows every id that any owner's binding has or
// had, and no other.
func TestIsHiddenSession(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	a := mustAgent(t, s, ann, "A")
	b := workspace.Binding{ConversationID: mustDirect(t, s, ann, a.ID).ID, AgentID: a.ID, StoredID: "s1", RuntimeID: "r1"}
	for _, next := range []workspace.Binding{b, b.Rename("s2"), b.Rename("s2").Rename("s3")} {
		if err := s.SaveBinding(t.Context(), ann, next); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"s1": true, "s2": true, "s3": true, "r1": true, "s": false, "": false, `"`: false} {
		if hidden, err := s.IsHiddenSession(t.Context(), "unknown", name); err != nil || hidden != want {
			t.Errorf("%q is hidden: %v, %v", name, hidden, err)
		}
	}
	if hidden, err := s.IsHiddenSession(t.Context()); err != nil || hidden {
		t.Errorf("no id is hidden: %v, %v", hidden, err)
	}
}
