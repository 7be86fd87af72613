package store

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// property is one of each thing that an owner can have.
type property struct {
	agent       workspace.Agent
	direct      workspace.ConversationID
	group       workspace.ConversationID
	run         workspace.Run
	message     workspace.MessageID
	interaction workspace.InteractionID
	file        StoredFile
	node        workspace.Node
}

func mustProperty(t *testing.T, s *Store, owner workspace.OwnerID, n int) (p property) {
	t.Helper()
	p.agent = mustAgent(t, s, owner, "A")
	p.direct = mustDirect(t, s, owner, p.agent.ID).ID
	p.group = mustGroup(t, s, owner, workspace.ModeHost, p.agent, mustAgent(t, s, owner, "B")).ID
	p.file = mustFiles(t, s, owner, "a.txt")[0]
	in := text(1, "hello") // the same request id for both owners
	in.FileIDs = workspace.Some([]workspace.FileID{p.file.ID})
	p.run = mustSend(t, s, owner, p.direct, in)
	p.message = p.run.MessageID
	p.interaction = ask(t, s, owner, p.run, n)
	var err error
	if p.node, err = s.AddNode(t.Context(), owner, workspace.Node{Name: "n"}, workspace.NodeCredentials{}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveBinding(t.Context(), owner, workspace.Binding{ConversationID: p.direct, AgentID: p.agent.ID, StoredID: "s"}); err != nil {
		t.Fatal(err)
	}
	return p
}

// Ensures sections 1.8 and 9.1 and scenario 18: whatever a user tries on rows of
// another, by id, is answered as if they did not exist, changes nothing, and
// tells nobody anything; and lists hold own rows only.
func TestOwners_AreStrangers(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	of := map[workspace.OwnerID]property{ann: mustProperty(t, s, ann, 1), bob: mustProperty(t, s, bob, 2)}
	for me, other := range map[workspace.OwnerID]workspace.OwnerID{ann: bob, bob: ann} {
		mine, theirs := of[me], of[other]
		beforeMine, beforeTheirs := everything(t, s, me), everything(t, s, other)
		for name, try := range attempts(s, me, mine, theirs) {
			err := try(t.Context())
			want := workspace.CodeRowNotFound
			if name == "send with a file" {
				want = workspace.CodeUploadNotFound
			}
			if name == "send with a mention" {
				want = workspace.CodeInvalidMentions
			}
			if workspace.CodeOf(err) != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		for owner, before := range map[workspace.OwnerID]owned{me: beforeMine, other: beforeTheirs} {
			if after := everything(t, s, owner); !cmp.Equal(before, after, optionals) {
				t.Errorf("something of %s changed:\n%s", owner, cmp.Diff(before, after, optionals))
			}
		}
		if list := mustList(t, s, me); len(list.Conversations) != 3 {
			t.Errorf("%s sees %d conversations", me, len(list.Conversations))
		}
		if files, err := s.MessageFiles(t.Context(), me, []workspace.MessageID{theirs.message}); err != nil || len(files) != 0 {
			t.Errorf("the files of a foreign message are %+v, %v", files, err)
		}
		if page, err := s.Library(t.Context(), me, LibraryQuery{ConversationID: theirs.direct, Limit: 9}); err != nil || page.Total != 0 {
			t.Errorf("the library by a foreign chat has %d files, %v", page.Total, err)
		}
		if has, err := s.HasPath(t.Context(), "nobody", theirs.file.Path); err != nil || has {
			t.Errorf("a foreign path is known: %v", err)
		}
	}
	if list, events := mustList(t, s, "nobody"), mustEvents(t, s, "nobody", 0); len(list.Conversations) != 0 || list.Cursor != 0 || len(events) != 0 {
		t.Errorf("a stranger sees %+v and %d events", list, len(events))
	}
}

// attempts is what one owner may try on what another has.
func attempts(s *Store, me workspace.OwnerID, mine, theirs property) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"edit agent": func(ctx context.Context) error {
			_, _, err := s.EditAgent(ctx, me, theirs.agent.ID, workspace.AgentPatch{Name: workspace.Some("X")})
			return err
		},
		"detail": func(ctx context.Context) error { _, err := s.Conversation(ctx, me, theirs.direct); return err },
		"pages":  func(ctx context.Context) error { _, err := s.Messages(ctx, me, theirs.direct, 0, 9); return err },
		"edit chat": func(ctx context.Context) error {
			_, _, err := s.EditConversation(ctx, me, theirs.group, workspace.ConversationPatch{Archived: workspace.Some(true)})
			return err
		},
		"create group": func(ctx context.Context) error {
			_, err := s.CreateGroup(ctx, me, workspace.NewGroup{Name: workspace.Some("g"), AdministratorID: workspace.Some(mine.agent.ID),
				MemberIDs: workspace.Some([]workspace.AgentID{mine.agent.ID, theirs.agent.ID})})
			return err
		},
		"add member": func(ctx context.Context) error {
			_, _, err := s.EditConversation(ctx, me, mine.group, workspace.ConversationPatch{
				MemberIDs: workspace.Some([]workspace.AgentID{mine.agent.ID, theirs.agent.ID})})
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := s.MarkRead(ctx, me, theirs.direct, workspace.ReadMarker{Seq: workspace.Some(int64(1))})
			return err
		},
		"send": func(ctx context.Context) error { _, err := s.Send(ctx, me, theirs.direct, text(7, "hi")); return err },
		"send with a file": func(ctx context.Context) error {
			in := text(7, "hi")
			in.FileIDs = workspace.Some([]workspace.FileID{theirs.file.ID})
			_, err := s.Send(ctx, me, mine.direct, in)
			return err
		},
		"send with a mention": func(ctx context.Context) error {
			in := text(7, "hi")
			in.MentionIDs = workspace.Some([]workspace.AgentID{theirs.agent.ID})
			_, err := s.Send(ctx, me, mine.group, in)
			return err
		},
		"stop run":  func(ctx context.Context) error { _, err := s.StopRun(ctx, me, theirs.run.ID); return err },
		"reconcile": func(ctx context.Context) error { _, err := s.UncertainTasks(ctx, me, theirs.run.ID); return err },
		"stop a member": func(ctx context.Context) error {
			_, err := s.StopMember(ctx, me, theirs.group, theirs.agent.ID)
			return err
		},
		"respond": func(ctx context.Context) error {
			_, _, err := s.Respond(ctx, me, theirs.interaction, workspace.AnswerInteraction{Answer: workspace.Some("once")},
				func(workspace.Interaction) bool { return true })
			return err
		},
		"responded": func(ctx context.Context) error {
			_, err := s.Responded(ctx, me, theirs.interaction, workspace.Interaction.Sent)
			return err
		},
		"file":        func(ctx context.Context) error { _, err := s.File(ctx, me, string(theirs.file.ID)); return err },
		"file number": func(ctx context.Context) error { _, err := s.File(ctx, me, itoa(theirs.file.ItemID)); return err },
		"node":        func(ctx context.Context) error { _, _, err := s.Node(ctx, me, theirs.node.ID); return err },
		"delete node": func(ctx context.Context) error { return s.DeleteNode(ctx, me, theirs.node.ID) },
		"usage":       func(ctx context.Context) error { return s.SetUsage(ctx, me, theirs.direct, []byte(`{}`)) },
		"binding": func(ctx context.Context) error {
			_, err := s.Binding(ctx, me, theirs.direct, theirs.agent.ID)
			return err
		},
		"save binding": func(ctx context.Context) error {
			return s.SaveBinding(ctx, me, workspace.Binding{ConversationID: theirs.direct, AgentID: theirs.agent.ID})
		},
	}
}

var optionals = cmp.AllowUnexported(workspace.Optional[int64]{}, workspace.Optional[float64]{}, workspace.Optional[string]{})

// owned is what an owner sees.
type owned struct {
	List    ConversationList
	Details []ConversationDetail
	Agents  []workspace.Agent
	Nodes   []workspace.Node
	Files   LibraryPage
	Events  []workspace.Event
}

func everything(t *testing.T, s *Store, owner workspace.OwnerID) (o owned) {
	t.Helper()
	var errs [3]error
	o.List = mustList(t, s, owner)
	for _, c := range o.List.Conversations {
		o.Details = append(o.Details, mustDetail(t, s, owner, c.ID))
	}
	o.Agents, errs[0] = s.Agents(t.Context(), owner)
	o.Nodes, errs[1] = s.Nodes(t.Context(), owner)
	o.Files, errs[2] = s.Library(t.Context(), owner, LibraryQuery{Limit: 200})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	o.Events = mustEvents(t, s, owner, 0)
	return o
}

// Ensures that one owner's events wake nobody else, and that writes without an
// owner are impossible.
func TestOwners_AreToldOfTheirOwnOnly(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	next := s.Changed(bob)
	mustAgent(t, s, ann, "A")
	select {
	case <-next:
		t.Error("somebody else was woken")
	default:
	}
	if page, err := s.WaitEvents(t.Context(), bob, 0, 9, time.Nanosecond); err != nil || len(page.Events) != 0 {
		t.Errorf("somebody else sees %+v, %v", page, err)
	}
	if _, err := s.CreateAgent(t.Context(), "", newAgent("A"), sources); err == nil {
		t.Error("a row without an owner was stored")
	}
}

// Ensures section 2.17: every table has the owner as the first column of a key,
// the accounts themselves and the version of the schema excepted.
func TestSchema_OwnerLeadsEveryKey(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	var tables []string
	if err := s.read(t.Context(), "test", func(v view) (err error) {
		tables, err = all(v, scalar[string], `SELECT name FROM sqlite_schema WHERE type = 'table'
			AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT IN ('account', 'goose_db_version')`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(tables) < 15 {
		t.Fatalf("only %v are tables", tables)
	}
	for _, table := range tables {
		leading := count(t, s, `SELECT count(*) FROM pragma_index_list(?) AS i JOIN pragma_index_info(i.name) AS c
			WHERE i."unique" = 1 AND c.seqno = 0 AND c.name = 'owner'`, table)
		if leading == 0 {
			t.Errorf("no key of %s begins with the owner", table)
		}
	}
}
