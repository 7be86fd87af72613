package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
)

// token returns a fresh token and has its thread's file removed after the case.
func (t *trial) token() string {
	token := randomToken()
	t.forget(threadOf(token))
	return token
}

// do makes a call the usual way and checks what every answer promises.
func (t *trial) do(c call) answer {
	a, err := t.send(t.ctx, t.signed(c))
	return t.checked(c, a, err)
}

// doRaw makes a call with its bytes as they stand; see [target.sendRaw].
func (t *trial) doRaw(c call) answer {
	a, err := t.sendRaw(t.ctx, t.signed(c))
	return t.checked(c, a, err)
}

// signed gives a call the address of the case unless it has one.
func (t *trial) signed(c call) call {
	if c.from == nil {
		c.from = []string{t.from}
	}
	return c
}

// checked ends the case on an error, and otherwise checks the headers that
// section 6 wants on every answer.
func (t *trial) checked(c call, a answer, err error) answer {
	if err != nil {
		t.fatalf("%s %s: %v", c.method, c.path, err)
	}
	for name, want := range map[string]string{
		"Content-Type":           "application/json; charset=utf-8",
		"Cache-Control":          "no-store",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.errorf("%s: %d has %s %q instead of %q", a.asked, a.status, name, got, want)
		}
	}
	if a.status/100 == 3 || a.header.Get("Location") != "" {
		t.errorf("%s: %d redirects to %q", a.asked, a.status, a.header.Get("Location"))
	}
	if a.method == http.MethodHead && len(a.body) > 0 {
		t.errorf("%s: %d has a body", a.asked, a.status)
	}
	return a
}

// wantStatus ends the case unless the answer has the status.
func (t *trial) wantStatus(a answer, status int) {
	if a.status != status {
		t.fatalf("%s: %d instead of %d; body %s", a.asked, a.status, status, clip(a.body))
	}
}

// wantError ends the case unless the answer is the error of section 6, and
// returns its body.
func (t *trial) wantError(a answer, status int, code string) object {
	o := t.wantRefusal(a, status)
	if got, _ := member[string](o, "code"); got != code {
		t.errorf("%s: the code is %q instead of %q", a.asked, got, code)
	}
	return o
}

// wantRefusal is wantError for a status whose code the contract does not name.
func (t *trial) wantRefusal(a answer, status int) object {
	t.wantStatus(a, status)
	o, err := decodeObject(a.body)
	if err != nil {
		t.fatalf("%s: %d: %v; body %s", a.asked, a.status, err, clip(a.body))
	}
	if success, err := member[bool](o, "success"); err != nil || success {
		t.errorf("%s: %d has success %s instead of false", a.asked, a.status, o["success"])
	}
	for _, name := range []string{"code", "error"} {
		if text, err := member[string](o, name); err != nil || text == "" {
			t.errorf("%s: %d has no text in %q", a.asked, a.status, name)
		}
	}
	if t.root != "" && strings.Contains(string(a.body), t.root) {
		t.errorf("%s: %d tells where the files lie: %s", a.asked, a.status, clip(a.body))
	}
	return o
}

// postCall is a POST of a body as it stands.
func (t *trial) postCall(token string, body io.Reader) call {
	return call{
		method: http.MethodPost,
		path:   t.postPath(),
		tokens: []string{token},
		header: http.Header{"Content-Type": {"application/json"}},
		body:   body,
	}
}

// postBody posts a body as it stands.
func (t *trial) postBody(token, body string) answer {
	return t.do(t.postCall(token, strings.NewReader(body)))
}

// textBody returns the body of a POST with a text and nothing else.
func textBody(text string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return `{"text":` + string(quoted) + `}`
}

// receipt is the body of a 201.
type receipt struct {
	Success bool   `json:"success"`
	ID      string `json:"id"`
	Epoch   int64  `json:"epoch"`
	TS      string `json:"ts"`
	Thread  string `json:"thread"`
}

// post posts a text, which must be accepted.
func (t *trial) post(token, text string) receipt {
	return t.receipt(token, t.postBody(token, textBody(text)))
}

// receipt ends the case unless the answer is a 201 for the token, and checks all
// that section 4 says of its body.
func (t *trial) receipt(token string, a answer) receipt {
	t.wantStatus(a, http.StatusCreated)
	var r receipt
	if err := decodeExactly(a.body, &r, "success", "id", "epoch", "ts", "thread"); err != nil {
		t.fatalf("%s: %v; body %s", a.asked, err, clip(a.body))
	}
	if !r.Success {
		t.errorf("%s: success is false in a 201", a.asked)
	}
	if want := threadOf(token); r.Thread != want {
		t.errorf("%s: the thread is %q instead of %q", a.asked, r.Thread, want)
	}
	if err := checkStamps(r.ID, r.TS, r.Epoch); err != nil {
		t.errorf("%s: %v", a.asked, err)
	}
	return r
}

// stayedEmpty checks that nothing came of the token's posts, on disk neither.
func (t *trial) stayedEmpty(token string) {
	if p := t.poll(token, 0); len(p.Messages) > 0 {
		t.errorf("a refused post left %d messages behind", len(p.Messages))
	}
	if t.root == "" {
		return
	}
	if _, err := os.Lstat(t.tree().threadFile(threadOf(token))); err == nil {
		t.errorf("a refused post left a thread file behind")
	}
}

// clip shortens a body for a message.
func clip(body []byte) string {
	const most = 300
	if len(body) > most {
		return string(body[:most]) + "…"
	}
	return string(body)
}
