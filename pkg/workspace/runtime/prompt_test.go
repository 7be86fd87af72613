package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// Ensures that a prompt has the rules as they are when it is sent, and that no
// message has any of them (section 6.12).
func TestScenario74_FreshRules(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 3)
		gate := hermestest.NewGate()
		r.script("A", hermestest.Hold(gate), hermestest.Complete("@B"))
		run := r.send(chat, "go")
		r.reached(gate)
		_, _, err := r.store.EditAgent(r.Context(), ann, r.agent("B").ID, workspace.AgentPatch{Instructions: workspace.Some("NEWRULES")})
		r.must(err)
		r.edit(chat, workspace.ConversationPatch{
			Instructions: workspace.Some("NEWGROUP"),
			MemberRoles:  workspace.Some(map[workspace.AgentID]workspace.Role{r.agent("B").ID: {Name: "NEWROLE"}}),
		})
		gate.Open()
		r.ends(run, workspace.RunComplete)
		for _, part := range []string{"NEWRULES", "第 2 版", "NEWGROUP", "NEWROLE"} {
			if !strings.Contains(r.prompt("B", 0), part) {
				t.Errorf("%s is missing in\n%s", part, r.prompt("B", 0))
			}
		}
		for _, e := range r.events() {
			if e.Type == workspace.EventMessage && strings.Contains(string(e.Data), "NEW") {
				t.Errorf("a message has rules: %s", e.Data)
			}
		}
		for _, request := range r.fake.Requests() {
			if request.Method != "GET" && !strings.HasPrefix(request.Path, "/api/auth") {
				t.Errorf("something was written upstream: %s %s", request.Method, request.Path)
			}
		}
	})
}

// Ensures that the roles of a group are in its prompts and in no direct chat's
// (sections 5.4 and 5.8).
func TestScenario75_RolesStayInTheirGroup(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		group, direct := r.group(workspace.ModeFree, "AB", "", 1), r.direct("A")
		r.edit(group, workspace.ConversationPatch{MemberRoles: workspace.Some(map[workspace.AgentID]workspace.Role{r.agent("A").ID: {Name: "ROLE"}})})
		r.ends(r.send(group, "@A"), workspace.RunComplete)
		r.ends(r.send(direct, "hi"), workspace.RunComplete)
		if !strings.Contains(r.prompt("A", 0), "A：ROLE") || strings.Contains(r.prompt("A", 1), "ROLE") {
			t.Errorf("the prompts are\n%s\n%s", r.prompt("A", 0), r.prompt("A", 1))
		}
	})
}

// Ensures that what a prompt was made inert with comes back neither as text nor as
// a name that nobody has, nor as a silence that is seen (sections 5.3 and 6.8).
func TestInertPromptsComeBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "ABC", "C", 2)
		r.answers("A", "mail a@\u2060x.example and @\u2060B")
		r.answers("C", "[[\u2060relay-silent:v1]]")
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		if got := sorted(r.prompts()); got != "ABC" {
			t.Errorf("prompted %s", got)
		}
		r.wantSays(chat, "user: hi", "A: mail a@x.example and @B", "B: ok", "system: "+workspace.LimitNotice)
	})
}

// upload puts a file into Ann's library.
func (r *rig) upload(name, mime, content string) workspace.FileID {
	r.Helper()
	path, digest, err := r.files.Keep(context.Background(), ann, []byte(content))
	r.must(err)
	stored, err := r.store.AddFiles(context.Background(), ann, []store.NewFile{{
		Name: name, MIMEType: mime, Size: int64(len(content)), Sender: workspace.SenderUser, Path: path, Digest: digest,
	}}, store.Quota{})
	r.must(err)
	return stored[0].ID
}

// Ensures that the files of a message are handed to the session before its prompt,
// for every task of its run (section 6.12).
func TestAttachments(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeHost, "AB", "", 3)
		r.answers("A", "@B", "done")
		r.ends(r.send(chat, "look", r.upload("a.png", "image/png", "pixels"), r.upload("b.txt", "text/plain", "words")), workspace.RunComplete)
		for i, p := range r.fake.Prompts() {
			if p.Images != 1 || !strings.Contains(p.Text, "<file>words</file>") {
				t.Errorf("prompt %d has %d images and the text\n%s", i, p.Images, p.Text)
			}
		}
		missing := r.upload("c.txt", "text/plain", "gone")
		r.files.forget()
		r.ends(r.send(r.direct("A"), "look", missing), workspace.RunFailed)
	})
}

// Ensures that files which a reply names are fetched and attached to it, once, and
// that one that cannot be fetched costs nothing (section 7.6).
func TestProducedFiles(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.fake.PutFile("/tmp/out.csv", []byte("a,b"))
		r.answers("A", "here: [out](/tmp/out.csv), [no](/tmp/missing)")
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		m := r.detail(chat).Messages[1]
		if len(m.Attachments) != 1 || m.Status != workspace.MessageComplete {
			t.Fatalf("the row is %+v", m)
		}
		f, err := r.store.File(r.Context(), ann, string(m.Attachments[0].ID))
		r.must(err)
		if f.Name != "out.csv" || f.Sender != workspace.SenderAgent || f.SourcePath != "/tmp/out.csv" || f.Profile != "a" || f.MessageID != m.ID || f.Size != 3 {
			t.Errorf("the file is %+v", f)
		}
		data, err := r.files.Read(r.Context(), ann, f.Path)
		if err != nil || string(data) != "a,b" {
			t.Errorf("its bytes are %q, %v", data, err)
		}
	})
}

// Ensures that a session that moves to another stored id is followed, and that its
// old ids stay protected (sections 2.11 and 9.3).
func TestRotation(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		r.script("A", hermestest.Rotate("20261130_000000_abcdef", true), hermestest.Complete("one"))
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		before := r.fake.Prompts()[0].StoredID
		r.ends(r.send(chat, "more"), workspace.RunComplete)
		if got := r.fake.Prompts()[1].StoredID; got != "20261130_000000_abcdef" {
			t.Errorf("the second prompt went to %s", got)
		}
		hidden, err := r.store.IsHiddenSession(r.Context(), before)
		if err != nil || !hidden {
			t.Errorf("the old id is not protected: %v", err)
		}
	})
}

// Ensures that a session that was deleted upstream is replaced by a new one, which
// is given the group's history again (sections 6.13 and 7.5).
func TestDeletedSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.group(workspace.ModeFree, "AB", "", 1)
		r.ends(r.send(chat, "@A FIRST"), workspace.RunComplete)
		b, err := r.store.Binding(r.Context(), ann, chat, r.agent("A").ID)
		r.must(err)
		b.StoredID = "20200101_000000_000000"
		r.must(r.store.SaveBinding(r.Context(), ann, b))
		r.fake.Restart()
		r.ends(r.send(chat, "@A SECOND"), workspace.RunComplete)
		if p := r.prompt("A", 1); !strings.Contains(p, "FIRST") || !strings.Contains(p, "SECOND") {
			t.Errorf("the prompt is\n%s", p)
		}
	})
}

// Ensures that a task whose session executes something else is tried again later,
// and fails when that does not end (section 7.3).
func TestBusy(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		chat := r.direct("A")
		busy := func(times int) {
			for range times {
				r.fake.Inject(hermestest.Before("prompt.submit", hermestest.Answer(4009, "session busy")))
			}
		}
		busy(6)
		r.ends(r.send(chat, "hi"), workspace.RunComplete)
		busy(200)
		run := r.send(chat, "more")
		time.Sleep(time.Hour)
		r.ends(run, workspace.RunFailed)
		if got := r.prompts(); got != "A" {
			t.Errorf("prompted %s", got)
		}
		if got := r.says(chat); len(got) != 4 {
			t.Errorf("the chat has %q", got)
		}
	})
}
