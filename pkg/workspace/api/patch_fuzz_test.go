package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// Ensures that whatever is sent as the edit of a group or of an agent is an answer
// of the description, never an internal fault, and that a refused edit changes
// nothing.
func FuzzPatch(f *testing.F) {
	fix := newFixture(f)
	c := fix.as("ann")
	owner := fix.idOf("ann")
	ids := c.agents("a", "b")
	group, agent := "/conversations/"+c.group(ids...), "/agents/"+ids[0]
	for _, body := range []string{
		`{}`, ``, `{"memberIds":["` + ids[0] + `"]}`, `{"memberRoles":{"` + ids[1] + `":{"name":"x"}}}`, `{"maxReplyRounds":1e2}`,
		`{"name":"\u0000"}`, `{"avatar":"data:image/png;base64,AAAA"}`, `{"pinned":true,"archived":null}`, `{"name":"a","name":"b"}`, `[`,
	} {
		f.Add(body)
	}
	// The fixture reports to f, which a target must not.
	address, token, accepted := fix.server.URL, c.csrf, []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{group, agent} {
			before := cursorOf(t, fix.store, owner)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, address+"/api/app"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Origin", address)
			r.Header.Set(account.CSRFHeader, token)
			answer, err := c.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil || !slices.Contains(accepted, answer.StatusCode) {
				t.Errorf("%q is answered by %d, %v", body, answer.StatusCode, err)
			}
			if answer.StatusCode != http.StatusOK && cursorOf(t, fix.store, owner) != before {
				t.Errorf("%q is refused and changed something", body)
			}
		}
	})
}

func cursorOf(t *testing.T, s *store.Store, owner workspace.OwnerID) int64 {
	t.Helper()
	list, err := s.Conversations(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return list.Cursor
}
