package api_test

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
	"github.com/newos4/relay/pkg/workspace/store"
)

// part is one part of a multipart body.
type part struct{ name, kind, text string }

// form returns a multipart body and its type.
func form(t testing.TB, parts ...part) (io.Reader, string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", mime.FormatMediaType("form-data", map[string]string{"name": "files", "filename": p.name}))
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		to, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(to, p.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b, w.FormDataContentType()
}

func (c *client) uploadAll(parts ...part) answer {
	c.Helper()
	body, kind := form(c.TB, parts...)
	r := c.request(http.MethodPost, "/uploads", body)
	r.Header.Set("Content-Type", kind)
	return c.send(r)
}

func (c *client) upload(name, kind, text string) answer {
	c.Helper()
	return c.uploadAll(part{name, kind, text})
}

// file uploads a file and returns its id.
func (c *client) file(name, kind, text string) string {
	c.Helper()
	return c.upload(name, kind, text).want(http.StatusCreated).str("files", "0", "id")
}

// Ensures that uploads are in the library of their user alone, that no answer
// names a path of the disk, and that a message carries them.
func TestScenario29_Uploads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, other := f.as("ann"), f.as("bob")
	made := c.uploadAll(part{"报告.txt", "text/plain; charset=utf-8", "hello"}, part{"b.png", "image/png", "PNG"}).want(http.StatusCreated)
	if made.str("files", "0", "name") != "报告.txt" || made.str("files", "0", "mimeType") != "text/plain" || made.num("files", "0", "size") != 5 ||
		made.str("files", "1", "name") != "b.png" || made.str("files", "1", "sender") != "user" {
		t.Errorf("the answer is %s", made.body)
	}
	library := c.get("/files").want(http.StatusOK)
	if library.num("total") != 2 || len(other.get("/files").list("items")) != 0 || other.get("/files/stats").num("count") != 0 {
		t.Errorf("the library is %s", library.body)
	}
	stats := c.get("/files/stats")
	if stats.num("count") != 2 || stats.num("totalBytes") != 8 {
		t.Errorf("the library has %s", stats.body)
	}
	for _, a := range []answer{made, library} {
		for _, path := range f.onDisk() {
			if bytes.Contains(a.body, []byte(filepath.Base(path))) || bytes.Contains(a.body, []byte(f.dir)) {
				t.Errorf("%s tells of %s: %s", a.what, path, a.body)
			}
		}
	}
	ids := []string{made.str("files", "0", "id"), made.str("files", "1", "id")}
	chat := c.direct(c.agent("Ann"))
	c.post("/conversations/"+chat+"/messages", obj{"requestId": uuid(), "content": "see", "fileIds": ids}).want(http.StatusAccepted)
	message := c.get("/conversations/" + chat + "/messages")
	if message.str("messages", "0", "attachments", "1", "id") != ids[1] {
		t.Errorf("the message is %s", message.body)
	}
	id := message.str("messages", "0", "id")
	query := c.post("/message-files/query", obj{"messageIds": []any{id, 17, uuid()}}).want(http.StatusOK)
	if files := query.at("messages").(obj); len(files) != 1 || len(files[id].([]any)) != 2 {
		t.Errorf("the answer is %s", query.body)
	}
	if a := other.post("/message-files/query", obj{"messageIds": []any{id}}); len(a.at("messages").(obj)) != 0 {
		t.Errorf("somebody else sees %s", a.body)
	}
	many := make([]int, 501)
	for _, ids := range []any{many, "x", nil, []any{true}, []any{nil}} {
		c.post("/message-files/query", obj{"messageIds": ids}).want(http.StatusBadRequest, "invalid_workspace_request")
	}
}

// Ensures that the library is searched, paged and kept in its order.
func TestLibrary_SearchAndPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	for i := range 5 {
		c.file(fmt.Sprintf("Note%d.txt", i), "text/plain", "x")
		f.clock.advance(1e6)
	}
	image := c.file("cat.png", "image/png", "x")
	chat := c.direct(c.agent("Ann"))
	c.post("/conversations/"+chat+"/messages", obj{"requestId": uuid(), "fileIds": []string{image}}).want(http.StatusAccepted)
	for query, want := range map[string]int64{
		"": 6, "search=nOTE": 5, "search=%25": 0, "kind=image": 1, "kind=video": 0, "sender=user": 6, "sender=agent": 0,
		"session_id=" + strings.ToUpper(chat): 1, "session_id=x": 0, "profile=default": 0, "search=1&kind=text": 1, "limit=x": 6, "limit=0": 6,
	} {
		if got := c.get("/files?" + query).want(http.StatusOK).num("total"); got != want {
			t.Errorf("%q finds %d files, want %d", query, got, want)
		}
	}
	var names []string
	for cursor := ""; ; {
		page := c.get("/files?limit=4&cursor=" + url.QueryEscape(cursor)).want(http.StatusOK)
		for _, item := range page.list("items") {
			names = append(names, item.(obj)["name"].(string))
		}
		if page.at("nextCursor") == nil {
			break
		}
		cursor = page.str("nextCursor")
	}
	if strings.Join(names, " ") != "cat.png Note4.txt Note3.txt Note2.txt Note1.txt Note0.txt" {
		t.Errorf("the order is %v", names)
	}
	c.get("/files?cursor=nonsense").want(http.StatusBadRequest, "invalid_workspace_request")
	item := c.get("/files?kind=image")
	if item.str("items", "0", "conversationId") != chat || item.str("items", "0", "origins", "0", "sessionTitle") != "Ann" {
		t.Errorf("the file is %s", item.body)
	}
}

// Ensures that what a browser might execute is delivered as a neutral attachment,
// on the preview too, and anything else as what it is.
func TestScenario30_ActiveContent(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	for _, p := range []part{
		{"a.svg", "image/svg+xml", "<svg/>"}, {"a.html", "text/html", "<p>"}, {"page.HTM", "text/plain", "<p>"},
		{"a.txt", "application/xhtml+xml", "<p>"}, {"a.js", "application/octet-stream", "1"}, {"a.mjs", "", "1"}, {"a.bin", "TEXT/HTML", "<p>"},
	} {
		id := c.file(p.name, p.kind, p.text)
		for _, how := range []string{"download", "preview"} {
			a := c.get("/files/" + id + "/" + how).want(http.StatusOK)
			if a.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment;") {
				t.Errorf("%s of %v: %v", how, p, a.header)
			}
		}
	}
	id := c.file("图 \"1\".png", "image/png", "PNG")
	for how, disposition := range map[string]string{"download": "attachment", "preview": "inline"} {
		a := c.get("/files/" + id + "/" + how).want(http.StatusOK)
		for name, want := range map[string]string{
			"Content-Type":        "image/png",
			"Content-Disposition": disposition + `; filename="_ _1_.png"; filename*=UTF-8''%E5%9B%BE%20%221%22.png`,
			"Accept-Ranges":       "bytes", "Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff", "Content-Length": "3",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", how, name, got, want)
			}
		}
		kind, params, err := mime.ParseMediaType(a.header.Get("Content-Disposition"))
		if err != nil || kind != disposition || params["filename"] != "图 \"1\".png" {
			t.Errorf("the name is read as %v: %v", params, err)
		}
	}
}

// Ensures that a file is found by its number, too, that single ranges are served
// and that anything else is refused with the size.
func TestScenario31_Ranges(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	made := c.upload("a.txt", "text/plain", "0123456789").want(http.StatusCreated)
	number := c.get("/files").num("items", "0", "itemId")
	paths := []string{"/files/" + made.str("files", "0", "id") + "/download", fmt.Sprintf("/files/%d/preview", number)}
	ask := func(path string, values ...string) answer {
		t.Helper()
		r := c.request(http.MethodGet, path, nil)
		r.Header["Range"] = values
		return c.send(r)
	}
	for _, path := range paths {
		for value, want := range map[string]string{
			"bytes=2-4": "234 bytes 2-4/10", "bytes=-2": "89 bytes 8-9/10", "bytes=7-": "789 bytes 7-9/10",
			"bytes=0-0": "0 bytes 0-0/10", "bytes=5-99999999999999999999": "56789 bytes 5-9/10", "bytes=-99": "0123456789 bytes 0-9/10",
		} {
			a := ask(path, value).want(http.StatusPartialContent)
			if got := string(a.body) + " " + a.header.Get("Content-Range"); got != want {
				t.Errorf("%s gives %q, want %q", value, got, want)
			}
		}
		for _, value := range []string{"bytes=9999-", "bytes=10-", "bytes=-0", "bytes=4-2", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,4-5", "chunks=1-2", "1-2", "bytes=+1-2", "bytes=1-2-3"} {
			a := ask(path, value).want(http.StatusRequestedRangeNotSatisfiable, "invalid_range")
			if a.header.Get("Content-Range") != "bytes */10" || a.header.Get("Content-Disposition") != "" {
				t.Errorf("%s: %v", value, a.header)
			}
		}
		ask(path, "bytes=1-2", "bytes=3-4").want(http.StatusRequestedRangeNotSatisfiable, "invalid_range")
		conditional := c.request(http.MethodGet, path, nil)
		conditional.Header.Set("Range", "bytes=1-2")
		conditional.Header.Set("If-Range", `"etag"`)
		if a := c.send(conditional).want(http.StatusOK); len(a.body) != 10 {
			t.Errorf("If-Range gives %q", a.body)
		}
		head := c.request(http.MethodHead, path, nil)
		head.Header.Set("Range", "bytes=1-2")
		if a := c.send(head).want(http.StatusOK); a.header.Get("Content-Length") != "10" || len(a.body) != 0 {
			t.Errorf("HEAD gives %v %q", a.header, a.body)
		}
	}
	empty := c.file("empty", "", "")
	if a := c.get("/files/" + empty + "/download").want(http.StatusOK); len(a.body) != 0 {
		t.Errorf("an empty file has %q", a.body)
	}
	ask("/files/"+empty+"/download", "bytes=0-").want(http.StatusRequestedRangeNotSatisfiable, "invalid_range")
	for _, id := range []string{uuid(), "999", "-1", "x", "1e3"} {
		c.get("/files/"+id+"/download").want(http.StatusNotFound, "workspace_not_found")
	}
}

// repeated returns a text of n bytes.
func repeated(n int) string { return strings.Repeat("x", n) }

// Ensures that each limit of an upload refuses it with its code and leaves nothing
// on disk and in the library.
func TestScenario32_UploadLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *api.Options) { o.Quota = store.Quota{PerOwner: 60 << 20, Total: 70 << 20} })
	c := f.as("ann")
	small := part{"a", "text/plain", "x"}
	many := func(n int, p part) (parts []part) {
		for range n {
			parts = append(parts, p)
		}
		return parts
	}
	nothing := func(what string) {
		t.Helper()
		if left := f.onDisk(); len(left) != 0 || c.get("/files").num("total") != 0 {
			t.Errorf("%s left %v", what, left)
		}
	}
	for what, a := range map[string]struct {
		parts  []part
		status int
		code   string
	}{
		"nine files":     {many(9, small), 413, "too_many_uploads"},
		"17 parts":       {many(17, part{"", "", "x"}), 413, "too_many_parts"},
		"a large file":   {[]part{small, {"big", "", repeated(workspace.MaxFileBytes + 1)}}, 413, "upload_file_too_large"},
		"a large upload": {many(3, part{"a", "", repeated(workspace.MaxUploadBytes/3 + 1)}), 413, "upload_request_too_large"},
		"no file":        {[]part{{"", "", "x"}}, 400, "missing_files"},
		"no part":        {nil, 400, "missing_files"},
	} {
		c.uploadAll(a.parts...).want(a.status, a.code)
		nothing(what)
	}
	const whole = "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nhalf\r\n--b"
	for n := range len(whole) {
		broken := c.request(http.MethodPost, "/uploads", strings.NewReader(whole[:n]))
		broken.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		c.send(broken).want(http.StatusBadRequest, "invalid_upload")
	}
	nothing("half a body")
	for _, kind := range []string{"application/json", "", "multipart/form-data", "multipart/mixed; boundary=b"} {
		r := c.request(http.MethodPost, "/uploads", strings.NewReader("x"))
		r.Header.Set("Content-Type", kind)
		c.send(r).want(http.StatusUnsupportedMediaType, "invalid_content_type")
	}
	nothing("another type")

	large := part{"a", "", repeated(workspace.MaxFileBytes)}
	c.uploadAll(large, large).want(http.StatusCreated)
	if len(f.onDisk()) != 2 {
		t.Fatalf("the disk has %v", f.onDisk())
	}
	c.uploadAll(part{"b", "", repeated(9 << 20)}, part{"c", "", repeated(2 << 20)}).want(http.StatusRequestEntityTooLarge, "upload_quota_exceeded")
	f.as("bob").uploadAll(part{"b", "", repeated(21 << 20)}).want(http.StatusRequestEntityTooLarge, "upload_quota_exceeded")
	if len(f.onDisk()) != 2 || c.get("/files").num("total") != 2 {
		t.Errorf("beyond the quota the disk has %v", f.onDisk())
	}
	if strings.Contains(f.log.String(), "left bytes") {
		t.Errorf("the log tells of bytes that were left: %s", f.log)
	}
}

// Ensures that an upload whose client leaves in its middle leaves nothing.
func TestUpload_ClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	reader, writer := io.Pipe()
	r := c.request(http.MethodPost, "/uploads", reader)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	left := make(chan struct{})
	go func() {
		defer close(left)
		response, err := c.http.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
	}()
	if _, err := io.WriteString(writer, "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n"+repeated(1<<20)); err != nil {
		t.Fatal(err)
	}
	_ = writer.CloseWithError(io.ErrUnexpectedEOF)
	<-left
	f.server.Close() // waits for the handler
	if left := f.onDisk(); len(left) != 0 {
		t.Errorf("the disk has %v", left)
	}
}

// Ensures what is said of a file whose bytes are gone, became a link or changed.
func TestDelivery_UnsafeBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	for what, harm := range map[string]func(path string) error{
		"404 file_missing":  os.Remove,
		"409 unsafe_upload": func(path string) error { return os.WriteFile(path, []byte("other bytes"), 0o600) },
	} {
		before := f.onDisk()
		id := c.file("a.txt", "text/plain", "x")
		for _, path := range f.onDisk() {
			if !contains(before, path) {
				if err := harm(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		a := c.get("/files/" + id + "/download")
		if got := fmt.Sprint(a.status, " ", a.json["code"]); got != what {
			t.Errorf("the answer is %s, want %s", a.body, what)
		}
	}
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}
