package store

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/workspace"
)

func newFile(name string, size int64) NewFile {
	return NewFile{Name: name, MIMEType: "text/plain", Size: size, Sender: workspace.SenderUser, Path: "ab/" + name, Digest: "ab"}
}

// mustFiles adds files of one byte to the owner's library.
func mustFiles(t testing.TB, s *Store, owner workspace.OwnerID, names ...string) []StoredFile {
	t.Helper()
	var files []NewFile
	for _, name := range names {
		files = append(files, newFile(name, 1))
	}
	stored, err := s.AddFiles(t.Context(), owner, files, Quota{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// Ensures section 9.5: what goes beyond an owner's quota or the server's is
// refused as a whole and leaves nothing, and statistics count what is there.
func TestAddFiles_Quota(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	quota := Quota{PerOwner: 100, Total: 150}
	add := func(owner workspace.OwnerID, sizes ...int64) error {
		var files []NewFile
		for _, size := range sizes {
			files = append(files, newFile("f", size))
		}
		_, err := s.AddFiles(t.Context(), owner, files, quota)
		return err
	}
	if err := add(ann, 60, 40); err != nil {
		t.Errorf("exactly the quota is refused: %v", err)
	}
	wantCode(t, add(ann, 1), workspace.CodeQuotaExceeded)
	wantCode(t, add(bob, 25, 26), workspace.CodeQuotaExceeded)
	if err := add(bob, 50); err != nil {
		t.Errorf("exactly the ceiling is refused: %v", err)
	}
	for owner, want := range map[workspace.OwnerID][2]int64{ann: {2, 100}, bob: {1, 50}, "nobody": {0, 0}} {
		files, bytes, err := s.FileStats(t.Context(), owner)
		if err != nil || int64(files) != want[0] || bytes != want[1] {
			t.Errorf("%s has %d files of %d bytes, %v", owner, files, bytes, err)
		}
	}
	if events := mustEvents(t, s, bob, 0); types(events) != "files" {
		t.Errorf("the events are %s", types(events))
	}
	mustExec(t, s, ann, `DELETE FROM file WHERE owner = ? AND size = 60`, ann)
	if _, bytes, _ := s.FileStats(t.Context(), ann); bytes != 40 {
		t.Errorf("after a deletion %d bytes are counted", bytes)
	}
}

// Ensures section 3.7: the library is ordered by time and id, is found by each
// of its filters, and its pages go on without gap or repetition.
func TestLibrary(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := mustOpen(t, withClock(c))
	direct := mustDirect(t, s, ann, mustAgent(t, s, ann, "竹儿").ID)
	for i := range 130 {
		c.advance(time.Duration(i%3) * time.Millisecond)
		mustFiles(t, s, ann, fmt.Sprintf("Report %03d.txt", i))
	}
	made := newFile("chart.png", 5)
	made.MIMEType, made.Sender, made.Profile, made.SourcePath = "image/png", workspace.SenderAgent, "research", "/home/x/chart.png"
	if _, err := s.AddFiles(t.Context(), ann, []NewFile{made}, Quota{}); err != nil {
		t.Fatal(err)
	}
	linked := mustFiles(t, s, ann, "linked.txt")[0]
	in := text(1, "look")
	in.FileIDs = workspace.Some([]workspace.FileID{linked.ID})
	mustSend(t, s, ann, direct.ID, in)
	mustFiles(t, s, bob, "Report of Bob.txt")

	filters := map[string]struct {
		q    LibraryQuery
		want int
	}{
		"all":              {LibraryQuery{}, 132},
		"part of the name": {LibraryQuery{Search: "rEPORT 00"}, 10},
		"no pattern":       {LibraryQuery{Search: "%"}, 0},
		"sender":           {LibraryQuery{Sender: workspace.SenderAgent}, 1},
		"profile":          {LibraryQuery{Profile: "research"}, 1},
		"kind":             {LibraryQuery{Kind: workspace.KindImage}, 1},
		"chat":             {LibraryQuery{ConversationID: direct.ID}, 1},
		"two at once":      {LibraryQuery{Kind: workspace.KindText, Search: "chart"}, 0},
	}
	for name, tt := range filters {
		tt.q.Limit = 200
		page, err := s.Library(t.Context(), ann, tt.q)
		if err != nil || len(page.Files) != tt.want || page.Total != tt.want || page.NextCursor != "" {
			t.Errorf("%s: %d of %d files, %v", name, len(page.Files), page.Total, err)
		}
		if name == "chat" && page.Files[0].ConversationName != "竹儿" {
			t.Errorf("the file's chat is %q", page.Files[0].ConversationName)
		}
	}
	var all []LibraryFile
	q := LibraryQuery{Limit: 50}
	for {
		page, err := s.Library(t.Context(), ann, q)
		if err != nil || page.Total != 132 {
			t.Fatalf("a page has total %d, %v", page.Total, err)
		}
		all = append(all, page.Files...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	ordered := slices.IsSortedFunc(all, func(a, b LibraryFile) int {
		if a.CreatedAt != b.CreatedAt {
			return int(b.CreatedAt - a.CreatedAt)
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	if len(all) != 132 || !ordered {
		t.Errorf("%d files, ordered: %v", len(all), ordered)
	}
	_, err := s.Library(t.Context(), ann, LibraryQuery{Cursor: "50"})
	wantCode(t, err, workspace.CodeInvalidRequest)
}

// Ensures section 3.7: a file is found by its id and by its number, and the
// number is never given to another.
func TestFile_ByIDAndNumber(t *testing.T) {
	t.Parallel()
	s := mustOpen(t)
	f := mustFiles(t, s, ann, "a.txt")[0]
	for _, ref := range []string{string(f.ID), strconv.FormatInt(f.ItemID, 10)} {
		got, err := s.File(t.Context(), ann, ref)
		if err != nil || got != f {
			t.Errorf("%s: %+v, %v", ref, got, err)
		}
	}
	for _, ref := range []string{"", "-1", "x", "../etc", string(id[workspace.FileID](1))} {
		_, err := s.File(t.Context(), ann, ref)
		wantCode(t, err, workspace.CodeRowNotFound)
	}
	has, err := s.HasPath(t.Context(), ann, f.Path)
	if err != nil || !has {
		t.Errorf("the stored path is unknown: %v", err)
	}
	mustExec(t, s, ann, `DELETE FROM file`)
	if next := mustFiles(t, s, ann, "b.txt")[0]; next.ItemID != f.ItemID+1 {
		t.Errorf("the next number is %d after %d", next.ItemID, f.ItemID)
	}
}
