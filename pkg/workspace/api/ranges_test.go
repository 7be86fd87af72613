package api

import (
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/blob"
)

// Ensures that a range, however it is written, is a piece of the file that is not
// empty, or none.
func FuzzRange(f *testing.F) {
	for _, header := range []string{"bytes=0-1", "bytes=-1", "bytes=1-", "bytes=99999999999999999999-", "bytes= 1-2", "bytes=1-2,3-4", "x"} {
		f.Add(header, int64(10))
	}
	f.Fuzz(func(t *testing.T, header string, size int64) {
		size = max(size, -size, 0)
		piece, ok := parseRange(header, size)
		if !ok {
			return
		}
		if piece.start < 0 || piece.length <= 0 || piece.start+piece.length > size {
			t.Errorf("%q of %d bytes gives %+v", header, size, piece)
		}
		if !strings.HasPrefix(header, "bytes=") || strings.Contains(header, ",") {
			t.Errorf("%q is taken for a range", header)
		}
	})
}

// Ensures that whatever is sent as an upload either is staged whole within the
// limits or leaves nothing on disk.
func FuzzUpload(f *testing.F) {
	f.Add("--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nx\r\n--b--\r\n")
	f.Add("--b\r\nContent-Disposition: form-data; name=f; filename=\"../../a\"\r\nContent-Type: text/html\r\n\r\nx\r\n--b--\r\n")
	f.Add("--b\r\nContent-Disposition: form-data; name=f\r\n\r\nx\r\n--b--\r\n")
	f.Add("--b\r\n")
	dir, err := blob.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		a := &API{opts: Options{Files: dir}, usage: newUsage()}
		r := &request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)), w: httptest.NewRecorder(), user: account.User{}}
		end := newEnding(strings.NewReader(body), "b")
		u := &uploading{api: a, request: r, end: end, held: a.usage.reserve("o", 0, a.opts.Quota), piece: make([]byte, 16)}
		err := u.receive(multipart.NewReader(end, "b"))
		if err != nil && workspace.CodeOf(err) == workspace.CodeInternal {
			t.Errorf("the error is %v", err)
		}
		if err == nil && (len(u.staged) == 0 || len(u.staged) > workspace.MaxFiles) {
			t.Errorf("%d files are staged", len(u.staged))
		}
		for _, s := range u.staged {
			if strings.ContainsAny(s.name, "/\\\x00") || s.name == "" {
				t.Errorf("the name is %q", s.name)
			}
		}
		u.discard()
		u.held.release()
		if len(a.usage.bytes) != 0 || a.usage.total != 0 {
			t.Errorf("the upload still holds %v", a.usage.bytes)
		}
	})
}

// Ensures that the header of a name can be read back by everybody, whatever the
// name.
func FuzzDisposition(f *testing.F) {
	f.Add("报告 \"1\"\r\n.txt")
	f.Fuzz(func(t *testing.T, name string) {
		value := dispositionOf(inline, workspace.CleanFileName(name))
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is no header", value)
		}
	})
}
