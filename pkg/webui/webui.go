// Package webui serves the browser's side of the newOS4 contract: the module
// hermes-chat.js, which any page can import, and a page on which a person can
// use the chat (section 9).
//
// The files are served as they stand in the directory assets, without a build
// step, at the root and below the prefix of the space, so that a front end
// needs one location only. They hold nothing of anybody, set no cookie and load
// nothing from elsewhere.
package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

//go:embed assets/*.css assets/*.html assets/*.js assets/*.svg
var assets embed.FS

const (
	indexName  = "index.html"
	moduleName = "hermes-chat.js"
)

// policy lets the page load its own files and talk to its own host, and nothing
// else: no inline code, no markup made of text, no frame in another origin's
// page. newOS4 is of the same origin and may show it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Options configure a Site.
type Options struct {
	// Space is the name in the routes.
	Space string
	// Text is the limit of a message in code points, which the page shows.
	Text int
}

// Site serves the page and the module. It implements [http.Handler].
type Site struct {
	space string
	next  http.Handler
	files map[string]*file // by the path of the request, but for the page
	pages map[string]bool  // the paths of the page
	page  atomic.Pointer[file]
}

// New returns a site that leaves every path but its own to next.
func New(opts Options, next http.Handler) *Site {
	s := &Site{space: opts.Space, next: next, files: make(map[string]*file), pages: make(map[string]bool)}
	bases := []string{"/", "/spaces/" + opts.Space + "/"}
	for _, base := range bases {
		s.pages[base] = true
	}
	entries, err := assets.ReadDir("assets")
	mustHold(err)
	for _, entry := range entries {
		if entry.Name() == indexName {
			continue
		}
		f := newFile(entry.Name(), read(entry.Name()))
		for _, base := range bases {
			s.files[base+f.name] = f
		}
	}
	s.SetText(opts.Text)
	return s
}

// SetText changes the limit of a message that the page shows to those who load
// it from now on, in code points.
func (s *Site) SetText(limit int) {
	// The file itself has the defaults.
	told := strings.NewReplacer(
		`data-space="newos4"`, `data-space="`+html.EscapeString(s.space)+`"`,
		`data-max-text="4000"`, `data-max-text="`+strconv.Itoa(limit)+`"`,
	).Replace(string(read(indexName)))
	s.page.Store(newFile(indexName, []byte(told)))
}

// ServeHTTP answers one request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := s.files[r.URL.Path]
	if s.pages[r.URL.Path] {
		f = s.page.Load()
	}
	if f == nil {
		s.next.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		methodNotAllowed(w)
		return
	}
	f.serve(w, r)
}

// methodNotAllowed refuses in the form of the contract (section 6).
func methodNotAllowed(w http.ResponseWriter) {
	const body = `{"success":false,"code":"method","error":"the method is not allowed here; use GET, HEAD"}`
	h := w.Header()
	h.Set("Allow", "GET, HEAD")
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusMethodNotAllowed)
	_, _ = w.Write([]byte(body)) // an error here is the client's, who has gone
}

// file is one file of the site in the two encodings in which it is sent.
type file struct {
	name        string
	contentType string
	plain, gzip encoded
}

// encoded is a body with its entity tag, which differs by encoding because it
// is a strong one.
type encoded struct {
	body []byte
	etag string
}

// read returns a file of the site as it stands.
func read(name string) []byte {
	body, err := assets.ReadFile("assets/" + name)
	mustHold(err)
	return body
}

// mustHold panics on what cannot fail, because it works on what is compiled in.
func mustHold(err error) {
	if err != nil {
		panic(fmt.Sprintf("webui: %v", err))
	}
}

// newFile prepares all that is sent of a file.
func newFile(name string, body []byte) *file {
	sum := sha256.Sum256(body)
	tag := hex.EncodeToString(sum[:12])
	return &file{
		name: name, contentType: contentType(name),
		plain: encoded{body: body, etag: `"` + tag + `"`},
		gzip:  encoded{body: compress(body), etag: `"` + tag + `-gzip"`},
	}
}

// contentType names the type of a file itself, because the tables that
// mime.TypeByExtension reads differ between machines.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	default:
		return "image/svg+xml"
	}
}

func compress(body []byte) []byte {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	mustHold(err)
	_, err = w.Write(body)
	mustHold(errors.Join(err, w.Close()))
	return packed.Bytes()
}

// serve sends the file, or says that the client's copy is still good.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	// Asking each time costs a header, and no page ever runs with a module of
	// another version.
	h.Set("Cache-Control", "no-cache")
	if f.name == moduleName {
		// A page of another host may import it, if the operator lets that host in.
		h.Set("Access-Control-Allow-Origin", "*")
	}
	chosen := f.plain
	if acceptsGzip(r.Header) {
		chosen = f.gzip
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(chosen.body))) // ServeContent sets it for plain bodies alone
	}
	h.Set("ETag", chosen.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(chosen.body))
}

// acceptsGzip reports whether a request names gzip, or everything, and does not
// refuse it with a weight of 0.
func acceptsGzip(h http.Header) bool {
	accepted := false
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "gzip" && name != "*" {
			continue
		}
		accepted = !isZero(weight)
		if name == "gzip" {
			return accepted
		}
	}
	return accepted
}

// isZero reports whether a weight such as "q=0.0" is nothing.
func isZero(weight string) bool {
	_, value, found := strings.Cut(strings.ToLower(weight), "q=")
	if !found {
		return false
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && q == 0
}
