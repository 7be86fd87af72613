package main

import (
	"bytes"
	"net/http"
	"strings"
)

// pathCases judge everything but the two routes (sections 1 and 6). Paths go out
// as they stand, because a client library would clean them.
func pathCases() []testCase {
	return []testCase{
		{
			name:  "path/data-is-403",
			wants: "Anything under data/ is 403 however it is spelled, section 1.",
			judge: judgeDataSpellings,
		},
		{
			name:  "path/data-is-never-served",
			wants: "No twist of a path, of those whose status the contract does not name, serves what is under data/, section 1.",
			judge: judgeDataTwists,
		},
		{
			name:  "path/data-by-any-method",
			wants: "Anything under data/ is 403 by any method, section 1.",
			judge: judgeDataMethods,
		},
		{
			name:  "path/data-tells-nothing",
			wants: "Existing and missing files under data/ look the same, section 1.",
			judge: judgeDataTellsNothing,
		},
		{
			name:  "path/unknown-is-404",
			wants: "An unknown path under the space is 404 not_found as JSON, and nothing is listed, section 6.",
			judge: judgeUnknownPaths,
		},
		{
			name:  "path/never-redirects",
			wants: "No path under the space is ever redirected, section 6.",
			judge: judgeNoRedirect,
		},
		{
			name:  "path/retired-is-410",
			wants: "The retired /api/debug/agent-replies.php is 410 gone by any method, with pointer /api/chat/post.php, section 1.",
			judge: judgeRetired,
		},
	}
}

// dataPaths returns spellings of a thread file's path.
func (t *trial) dataPaths(thread string) []string {
	file := "data/chat/" + thread + ".json"
	paths := []string{
		t.under("data/"),
		t.under("data/chat"),
		t.under("data/chat/"),
		t.under("data/other"),
		t.under("data/..%2f..%2fdata/"),
		t.under("/" + file),
		t.under("./" + file),
		t.under("%64ata/chat/" + thread + ".json"),
		t.under("data%2fchat%2f" + thread + ".json"),
		t.under("data//chat//" + thread + ".json"),
		t.under("data/./chat/../chat/" + thread + ".json"),
		t.under("api/../" + file),
		t.under("api/chat/../../" + file),
		t.under("api/%2e%2e/" + file),
		t.under("api/%2E./" + file),
		t.under("api/..%2f" + file),
		t.under("api/chat/post.php/../../../" + file),
		t.under(file + "?since=1"),
		t.under(file + "/"),
		"/" + t.under(file),
		"/./" + t.under(file)[1:],
		"/other/.." + t.under(file),
		"/../.." + t.under(file),
		"//other/.." + t.under(file),
		"/spaces/other/../" + t.space + "/" + file,
		"/spaces//" + t.space + "/" + file,
		"/%73paces/" + t.space + "/" + file,
		t.base.String() + t.under(file),
	}
	return paths
}

func judgeDataSpellings(t *trial) {
	token := t.token()
	secret := "secret " + randomHex(8)
	t.post(token, secret)
	for _, thread := range []string{threadOf(token), threadOf(randomToken())} {
		for _, path := range t.dataPaths(thread) {
			a := t.doRaw(call{method: http.MethodGet, path: path})
			if bytes.Contains(a.body, []byte(secret)) {
				t.errorf("%s: the thread file is served", a.asked)
			}
			if a.status != http.StatusForbidden {
				t.errorf("%s: %d instead of 403", a.asked, a.status)
				continue
			}
			t.wantRefusal(a, http.StatusForbidden)
		}
	}
}

func judgeDataTwists(t *trial) {
	token := t.token()
	secret := "secret " + randomHex(8)
	t.post(token, secret)
	file := "chat/" + threadOf(token) + ".json"
	for _, path := range []string{
		t.under("api/%252e%252e/data/" + file),
		t.under("%2564ata/" + file),
		t.under("DATA/" + file),
		t.under("api\\..\\data\\" + file),
		t.under("api/..%5cdata%5c" + file),
		t.under("api/..;/data/" + file),
		t.under("data;x/" + file),
		t.under("api/%c0%ae%c0%ae/data/" + file),
		t.under("api/chat/post.php%00/../../../data/" + file),
		t.under("data/" + file + "%00"),
		"/data/" + file,
		"/" + file,
	} {
		a := t.doRaw(call{method: http.MethodGet, path: path})
		if a.status/100 != 4 || bytes.Contains(a.body, []byte(secret)) {
			t.errorf("%s: %d %s", a.asked, a.status, clip(a.body))
		}
	}
}

func judgeDataMethods(t *trial) {
	token := t.token()
	t.post(token, "hello")
	for _, path := range []string{t.under("data/"), t.under("data/chat/" + threadOf(token) + ".json"), t.under("api/../data/chat/")} {
		for _, method := range []string{"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			a := t.doRaw(call{method: method, path: path, tokens: []string{token}})
			if a.status != http.StatusForbidden {
				t.errorf("%s: %d instead of 403", a.asked, a.status)
			}
		}
	}
	t.wantTexts(token, "hello")
}

func judgeDataTellsNothing(t *trial) {
	token := t.token()
	t.post(token, "hello")
	standing, missing := t.dataPaths(threadOf(token)), t.dataPaths(threadOf(randomToken()))
	for i := range standing {
		one := t.doRaw(call{method: http.MethodGet, path: standing[i]})
		other := t.doRaw(call{method: http.MethodGet, path: missing[i]})
		if one.status != other.status || !bytes.Equal(one.body, other.body) {
			t.errorf("%s: %d %s, of a missing file %d %s", one.asked, one.status, clip(one.body), other.status, clip(other.body))
		}
	}
}

func judgeUnknownPaths(t *trial) {
	t.judgeFrontPage()
	for _, path := range []string{
		"index.html", "api", "api/", "api/chat", "api/chat/", "api/chat/list.php", "api/chat/post", "api/chat/poll.php/",
		"api/chat/post.php/", "api/chat/poll.php/x", "api/chat/poll.php%00", "api/chat/POLL.php", "database/", "dat",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := t.doRaw(call{method: method, path: t.under(path), tokens: []string{randomToken()}})
			if a.status != http.StatusNotFound {
				t.errorf("%s: %d instead of 404", a.asked, a.status)
				continue
			}
			t.wantError(a, http.StatusNotFound, "not_found")
		}
	}
}

// judgeFrontPage allows a page for people at the prefix of the space. Without
// one it is an unknown path, and a list it never is.
func (t *trial) judgeFrontPage() {
	token := t.token()
	t.post(token, "hello")
	asked := t.signed(call{method: http.MethodGet, path: t.under("")})
	a, err := t.sendRaw(t.ctx, asked)
	if bytes.Contains(a.body, []byte(threadOf(token))) {
		t.errorf("%s: the threads are listed", a.asked)
	}
	if err == nil && a.status == http.StatusOK {
		return
	}
	t.wantError(t.checked(asked, a, err), http.StatusNotFound, "not_found")
}

// judgeNoRedirect leaves the check to what is checked of every answer.
func judgeNoRedirect(t *trial) {
	for _, path := range []string{
		"/" + t.pollPath(),
		t.under("/api/chat/poll.php"),
		t.under("api//chat/poll.php"),
		t.under("api/./chat/poll.php"),
		t.under("api/chat/../chat/poll.php"),
		t.under("api/chat/%2e%2e/chat/poll.php"),
		t.under("api/chat/poll.php/."),
		t.under("api/chat/poll.php/.."),
		t.under("api/chat/"),
		t.under("api/chat"),
		t.under("data/../api/chat/poll.php"),
	} {
		t.doRaw(call{method: http.MethodGet, path: path, tokens: []string{t.token()}})
		t.doRaw(call{method: http.MethodPost, path: strings.Replace(path, "poll", "post", 1), tokens: []string{"none"}})
	}
}

func judgeRetired(t *trial) {
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"} {
		a := t.doRaw(call{method: method, path: "/api/debug/agent-replies.php"})
		if method == http.MethodHead {
			t.wantStatus(a, http.StatusGone)
			continue
		}
		o := t.wantError(a, http.StatusGone, "gone")
		if pointer, _ := member[string](o, "pointer"); pointer != "/api/chat/post.php" {
			t.errorf("%s: the pointer is %q", a.asked, pointer)
		}
	}
}
