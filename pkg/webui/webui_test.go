package webui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/webui"
)

// newSite returns a site before a handler that answers 418.
func newSite(opts webui.Options) *webui.Site {
	return webui.New(opts, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
}

func defaults() webui.Options { return webui.Options{Space: "newos4", Text: 4000} }

// answer is what the site answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask makes one request; headers are pairs of name and value.
func ask(t *testing.T, site http.Handler, method, target string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// sources returns the files of the page by name.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("assets/*")
	if err != nil || len(names) < 5 {
		t.Fatalf("assets: %q, %v", names, err)
	}
	files := make(map[string][]byte)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = text
	}
	return files
}

// target returns the path of a file below a base.
func target(base, name string) string { return base + strings.TrimSuffix(name, "index.html") }

// Ensures that each file is served as it stands, at the root and below the
// prefix of the space, with its type and the headers that keep it harmless.
func TestSite_ServesEveryFile(t *testing.T) {
	t.Parallel()
	site := newSite(defaults())
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	}
	for name, want := range sources(t) {
		for _, base := range []string{"/", "/spaces/newos4/"} {
			resp := ask(t, site, http.MethodGet, target(base, name))
			if got := resp.body; resp.status != http.StatusOK || !bytes.Equal(got, want) {
				t.Errorf("%s%s: %d, %d bytes, want %d", base, name, resp.status, len(got), len(want))
			}
			for header, want := range map[string]string{
				"Content-Type": types[path.Ext(name)], "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Set-Cookie": "", "Content-Encoding": "",
			} {
				if got := resp.header.Get(header); got != want {
					t.Errorf("%s%s: %s is %q, want %q", base, name, header, got, want)
				}
			}
		}
	}
}

// Ensures that the policy allows the site's own files and connections, and no
// inline code, no other host and no frame of another origin.
func TestSite_Policy(t *testing.T) {
	t.Parallel()
	got := ask(t, newSite(defaults()), http.MethodGet, "/").header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'", "require-trusted-types-for 'script'",
	} {
		if !strings.Contains("; "+got+";", "; "+want+";") {
			t.Errorf("the policy lacks %q: %s", want, got)
		}
	}
	if strings.Contains(got, "unsafe") || strings.Contains(got, "http") || strings.Contains(got, "*") {
		t.Errorf("the policy allows too much: %s", got)
	}
}

// Ensures that a client that takes gzip gets it, that what it unpacks is the
// file, and that one that refuses it gets the plain file.
func TestSite_Compresses(t *testing.T) {
	t.Parallel()
	site := newSite(defaults())
	want := sources(t)["hermes-chat.js"]
	for accept, packed := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "*": true, "deflate": false, "": false,
		"gzip;q=0": false, "gzip; q=0.000, *": false, "*;q=0": false, "*;q=0, gzip": true, "xgzip": false,
	} {
		resp := ask(t, site, http.MethodGet, "/hermes-chat.js", "Accept-Encoding", accept)
		got := resp.body
		if length := resp.header.Get("Content-Length"); length != strconv.Itoa(len(got)) {
			t.Errorf("%q: the length is %s, want %d", accept, length, len(got))
		}
		if resp.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: caches are not told", accept)
		}
		if (resp.header.Get("Content-Encoding") == "gzip") != packed {
			t.Errorf("%q: the encoding is %q", accept, resp.header.Get("Content-Encoding"))
			continue
		}
		if packed {
			unpack, err := gzip.NewReader(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if got, err = io.ReadAll(unpack); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%q: another file", accept)
		}
	}
}

// Ensures that a copy which is still good costs no body, that each encoding has
// a strong tag of its own, and that HEAD answers like GET.
func TestSite_ConditionalAndHead(t *testing.T) {
	t.Parallel()
	site := newSite(defaults())
	tags := make(map[string]bool)
	for _, accept := range []string{"gzip", "identity"} {
		first := ask(t, site, http.MethodGet, "/page.js", "Accept-Encoding", accept)
		tag := first.header.Get("ETag")
		if !regexp.MustCompile(`^"[0-9a-f]{24}(-gzip)?"$`).MatchString(tag) || tags[tag] {
			t.Errorf("%s: the tag is %s", accept, tag)
		}
		tags[tag] = true
		for _, condition := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			resp := ask(t, site, http.MethodGet, "/page.js", "Accept-Encoding", accept, "If-None-Match", condition)
			if got := resp.body; resp.status != http.StatusNotModified || len(got) != 0 || resp.header.Get("ETag") != tag {
				t.Errorf("%s, If-None-Match %s: %d with %d bytes", accept, condition, resp.status, len(got))
			}
		}
		if resp := ask(t, site, http.MethodGet, "/page.js", "Accept-Encoding", accept, "If-None-Match", `"x"`); resp.status != http.StatusOK {
			t.Errorf("%s: another tag gets %d", accept, resp.status)
		}
		head := ask(t, site, http.MethodHead, "/page.js", "Accept-Encoding", accept)
		if length := first.header.Get("Content-Length"); len(head.body) != 0 || head.status != http.StatusOK || head.header.Get("ETag") != tag || head.header.Get("Content-Length") != length {
			t.Errorf("%s: HEAD is %d with %d bytes, length %s of %s", accept, head.status, len(head.body), head.header.Get("Content-Length"), length)
		}
	}
}

// Ensures that a part of a file is a part of what is sent, packed or not, and as
// long as its header says, and that a part beyond the end is refused.
func TestSite_Ranges(t *testing.T) {
	t.Parallel()
	site := newSite(defaults())
	for _, accept := range []string{"gzip", "identity"} {
		whole := ask(t, site, http.MethodGet, "/page.css", "Accept-Encoding", accept)
		part := ask(t, site, http.MethodGet, "/page.css", "Accept-Encoding", accept, "Range", "bytes=10-19", "If-Range", whole.header.Get("ETag"))
		if part.status != http.StatusPartialContent || !bytes.Equal(part.body, whole.body[10:20]) || part.header.Get("Content-Length") != "10" {
			t.Errorf("%s: %d, %d bytes, length %s", accept, part.status, len(part.body), part.header.Get("Content-Length"))
		}
		other := ask(t, site, http.MethodGet, "/page.css", "Accept-Encoding", accept, "Range", "bytes=10-19", "If-Range", `"other"`)
		if other.status != http.StatusOK || !bytes.Equal(other.body, whole.body) {
			t.Errorf("%s: of another version: %d, %d bytes", accept, other.status, len(other.body))
		}
		beyond := ask(t, site, http.MethodGet, "/page.css", "Accept-Encoding", accept, "Range", "bytes=9999999-")
		if beyond.status != http.StatusRequestedRangeNotSatisfiable || beyond.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: beyond the end: %d %v", accept, beyond.status, beyond.header)
		}
	}
}

// Ensures that other methods are refused in the form of the contract, and that
// every other path is left to the API.
func TestSite_LeavesTheRest(t *testing.T) {
	t.Parallel()
	site := newSite(defaults())
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		resp := ask(t, site, method, "/spaces/newos4/")
		if got := string(resp.body); resp.status != http.StatusMethodNotAllowed || resp.header.Get("Allow") != "GET, HEAD" ||
			!strings.Contains(got, `"success":false,"code":"method"`) || resp.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", method, resp.status, resp.header, got)
		}
	}
	for _, target := range []string{
		"/index.html", "/spaces/newos4", "/spaces/newos4/index.html", "/spaces/other/", "/spaces/newos4/api/chat/post.php",
		"/spaces/newos4/data/", "/assets/page.js", "/page.js/", "//", "/./", "/..", "/package.json", "/Page.js",
	} {
		if resp := ask(t, site, http.MethodGet, target); resp.status != http.StatusTeapot {
			t.Errorf("%s: %d", target, resp.status)
		}
	}
}

// Ensures that the page learns the name of the space and the limit of a text,
// and that its tag differs for it.
func TestSite_TellsThePageItsConfiguration(t *testing.T) {
	t.Parallel()
	site := newSite(webui.Options{Space: "lab", Text: 5})
	resp := ask(t, site, http.MethodGet, "/spaces/lab/")
	if got := string(resp.body); !strings.Contains(got, `data-space="lab"`) || !strings.Contains(got, `data-max-text="5"`) {
		t.Errorf("the page says %s", got)
	}
	if resp.header.Get("ETag") == ask(t, newSite(defaults()), http.MethodGet, "/").header.Get("ETag") {
		t.Error("two pages have one tag")
	}
	site.SetText(6)
	if got := ask(t, site, http.MethodGet, "/"); !strings.Contains(string(got.body), `data-max-text="6"`) || got.header.Get("ETag") == resp.header.Get("ETag") {
		t.Errorf("after a change the page says %s", got.body)
	}
}

// Ensures that a page of another host may import the module, and nothing else.
func TestSite_OnlyTheModuleIsForOthers(t *testing.T) {
	t.Parallel()
	site := newSite(defaults())
	for name := range sources(t) {
		want := ""
		if name == "hermes-chat.js" {
			want = "*"
		}
		if got := ask(t, site, http.MethodGet, target("/", name)).header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Ensures that all that a first visit loads is under 60 KB as it is sent.
func TestSite_FirstLoadIsSmall(t *testing.T) {
	t.Parallel()
	const most = 60_000
	site := newSite(defaults())
	total := 0
	for name := range sources(t) {
		total += len(ask(t, site, http.MethodGet, target("/", name), "Accept-Encoding", "gzip").body)
	}
	t.Logf("the first load is %d bytes", total)
	if total >= most {
		t.Errorf("the first load is %d bytes, want less than %d", total, most)
	}
}

// Ensures that the page names no other host, no file that is not served, and no
// code or style of its own, which the policy would block.
func TestPage_LoadsItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	files := sources(t)
	for name, text := range files {
		for _, found := range regexp.MustCompile(`(?:https?:)?//[a-zA-Z0-9][^\s'"]*`).FindAllString(string(text), -1) {
			if found != "http://www.w3.org/2000/svg" {
				t.Errorf("%s names %s", name, found)
			}
		}
		for _, m := range regexp.MustCompile(`(?:src="|href="|from '\./)([^"']+)["']`).FindAllStringSubmatch(string(text), -1) {
			if name != "hermes-chat.js" && files[m[1]] == nil {
				t.Errorf("%s loads %s, which is not served", name, m[1])
			}
		}
	}
	for _, bad := range []string{"<style", "style=", "onclick=", "javascript:", "<script>"} {
		if bytes.Contains(files["index.html"], []byte(bad)) {
			t.Errorf("the page holds %s", bad)
		}
	}
	for name, text := range files {
		if found := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|document\.cookie`).Find(text); found != nil {
			t.Errorf("%s uses %s", name, found)
		}
	}
}

// tools is where make setup installs what checks the browser's side.
const tools = "../../.tools/web/node_modules"

// Ensures that the module does what the contract wants of a client: its tests
// run in node, with a server, a clock and a storage that do as they are told.
func TestModule_InNode(t *testing.T) {
	t.Parallel()
	tests, err := filepath.Glob("testdata/*.test.js")
	if err != nil || len(tests) < 4 {
		t.Fatalf("the tests are %q, %v", tests, err)
	}
	run(t, "node", append([]string{"--test"}, tests...)...)
}

// Ensures that the types which the comments of the browser's files declare are
// kept, by the strict rules of TypeScript.
func TestModule_Types(t *testing.T) {
	t.Parallel()
	tsc := filepath.Join(tools, ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		t.Fatalf("%v\nhint: make setup installs it", err)
	}
	run(t, tsc, "-p", "../../scripts/web")
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %q: %v\n%s", name, args, err, out)
	}
}
