package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// copyRow returns a statement that stores a copy of the only row of a table, with
// some columns set to other values.
func copyRow(t *testing.T, s *Store, table string, set map[string]string) string {
	t.Helper()
	var names, values []string
	if err := s.read(t.Context(), "test", func(v view) error {
		return each(v, func(r row) error {
			var name string
			err := r.Scan(&name)
			names = append(names, name)
			if other, ok := set[name]; ok {
				values = append(values, other)
			} else {
				values = append(values, name)
			}
			return err
		}, `SELECT name FROM pragma_table_info(?)`, table)
	}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %[1]s LIMIT 1", table, strings.Join(names, ", "), strings.Join(values, ", "))
}

// Ensures section 2.17: the database itself refuses a second row where the
// contract has one, whatever the program does, and takes the row of another key.
func TestSchema_Unique(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	p := mustProperty(t, s, ann, 1)
	fill := func(query string, args ...any) { t.Helper(); mustExec(t, s, ann, query, args...) }
	fill(`DELETE FROM message_file`)
	fill(`UPDATE task SET review_of = 'batch'`)
	fill(`DELETE FROM agent WHERE id <> ? AND id NOT IN (SELECT agent_id FROM conversation WHERE agent_id IS NOT NULL)`, p.agent.ID)
	other := `'` + string(id[workspace.AgentID](77)) + `'`
	tests := map[string]struct {
		table          string
		refused, taken map[string]string
	}{
		"agent's name":         {"agent", map[string]string{"id": other}, map[string]string{"id": other, "name_key": other}},
		"direct chat of agent": {"conversation", map[string]string{"id": other}, map[string]string{"id": other, "agent_id": "NULL", "kind": "'group'"}},
		"sequence in a chat":   {"message", map[string]string{"id": other}, map[string]string{"id": other, "seq": "seq + 1"}},
		"request id":           {"command", map[string]string{"fingerprint": "'x'"}, map[string]string{"request_id": other}},
		"review of a batch":    {"task", map[string]string{"id": other}, map[string]string{"id": other, "review_of": "NULL"}},
		"upstream's question":  {"interaction", map[string]string{"id": other}, map[string]string{"id": other, "upstream_request_id": "'2'"}},
		"binding of a member":  {"binding", map[string]string{"stored_id": "'x'"}, map[string]string{"agent_id": other}},
		"run of a message":     {"run", map[string]string{"id": other}, nil},
		"snapshot of an event": {"event", map[string]string{"data": "''"}, map[string]string{"seq": "(SELECT max(seq) + 1 FROM event)"}},
	}
	for name, tt := range tests {
		attempt := func(set map[string]string) error {
			query := copyRow(t, s, tt.table, set)
			return s.write(t.Context(), ann, "test", func(t *tx) error { _, err := t.exec(query); return err })
		}
		if err := attempt(tt.refused); !isTaken(err) {
			t.Errorf("%s: a second row gives %v", name, err)
		}
		if tt.taken == nil {
			continue
		}
		if err := attempt(tt.taken); err != nil {
			t.Errorf("%s: another row gives %v", name, err)
		}
	}
}

// Ensures that the database refuses states, modes and bounds that section 2 does
// not know, and rows that refer to nothing.
func TestSchema_Checks(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	mustProperty(t, s, ann, 1)
	for _, change := range []string{
		`UPDATE agent SET name = ''`,
		`UPDATE agent SET instructions = printf('%.*c', 24001, 'x')`,
		`UPDATE conversation SET kind = 'topic'`,
		`UPDATE conversation SET kind = 'group' WHERE kind = 'direct'`,
		`UPDATE conversation SET mode = 'other'`,
		`UPDATE conversation SET max_reply_rounds = 0`,
		`UPDATE conversation SET max_reply_rounds = 101`,
		`UPDATE conversation SET member_ids = '[]'`,
		`UPDATE conversation SET member_ids = '[1,2,3,4,5,6,7,8,9]'`,
		`UPDATE conversation SET read_seq = last_seq + 1`,
		`UPDATE conversation SET unread_count = -1`,
		`UPDATE conversation SET administrator_id = 'nobody'`,
		`UPDATE message SET seq = 0`,
		`UPDATE message SET status = 'other'`,
		`UPDATE message SET role = 'tool'`,
		`UPDATE message SET conversation_id = 'nowhere'`,
		`UPDATE run SET status = 'other'`,
		`UPDATE run SET message_id = 'nowhere'`,
		`UPDATE task SET status = 'other'`,
		`UPDATE task SET run_id = 'nowhere'`,
		`UPDATE interaction SET response_state = 'other'`,
		`UPDATE file SET size = -1`,
		`UPDATE file SET sender = 'system'`,
		`INSERT INTO message_file (owner, message_id, ordinal, file_id) SELECT owner, id, 9, 'nowhere' FROM message`,
	} {
		err := s.write(t.Context(), ann, "test", func(t *tx) error { _, err := t.exec(change); return err })
		if sqliteCode(err)&0xff != 19 { // SQLITE_CONSTRAINT
			t.Errorf("%s gives %v", change, err)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Ensures section 4.3: the newest event of each entity is the whole entity as it
// is stored, so that who replays the log has what a reader sees.
func TestEvents_CarryTheWholeEntity(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	p := mustProperty(t, s, ann, 1)
	roles := workspace.Some(map[workspace.AgentID]workspace.Role{p.agent.ID: {Name: "Lead", Description: "leads"}})
	if _, _, err := s.EditConversation(t.Context(), ann, p.group, workspace.ConversationPatch{MemberRoles: roles, Pinned: workspace.Some(true)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.EditAgent(t.Context(), ann, p.agent.ID, workspace.AgentPatch{Name: workspace.Some("Anna")}); err != nil {
		t.Fatal(err)
	}
	say(t, s, p.direct, 3)
	if _, err := s.StopRun(t.Context(), ann, p.run.ID); err != nil {
		t.Fatal(err)
	}
	newest := make(map[string]string)
	for _, e := range mustEvents(t, s, ann, 0) {
		var entity struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(e.Data, &entity, json.RejectUnknownMembers(false)); err != nil {
			t.Fatal(err)
		}
		newest[string(e.Type)+entity.ID] = string(e.Data)
	}
	seen := everything(t, s, ann)
	want := make(map[string]any)
	for _, a := range seen.Agents {
		want["agent.changed"+string(a.ID)] = a
	}
	for _, d := range seen.Details {
		want["conversation.changed"+string(d.Conversation.ID)] = d.Conversation.Conversation
		for _, m := range d.Messages {
			want["message.changed"+string(m.ID)] = m
		}
	}
	for _, f := range seen.Files.Files {
		want["files.changed"+string(f.ID)] = f.File
	}
	if len(want) < 10 {
		t.Fatalf("only %d entities", len(want))
	}
	for key, entity := range want {
		text, err := encode(entity)
		if err != nil || newest[key] != text {
			t.Errorf("%s, %v (-stored +event):\n%s", key, err, cmp.Diff(text, newest[key]))
		}
	}
	if !strings.Contains(newest["run.changed"+string(p.run.ID)], `"status":"interrupted"`) {
		t.Errorf("the run's last event is %s", newest["run.changed"+string(p.run.ID)])
	}
}
