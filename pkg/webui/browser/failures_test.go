package browser_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// offline cuts the tab off from the network, or ends that.
func (p *tab) offline(off bool) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: off, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	p.check("cutting the network", err)
	_, err = chromedp.Call(p.ctx, network.OverrideNetworkState, network.OverrideNetworkStateParams{
		Offline: off, DownloadThroughput: -1, UploadThroughput: -1,
	})
	p.check("telling the browser", err)
}

// Ensures that a page without network says so, keeps what is written, looks for
// it when the network is back before it offers to send it again, and that it
// then stands once.
func TestPage_OfflineAndBack(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	url := nginx(t, r)
	p := newBrowser(t).open(t, url, tabOptions{refusals: true})
	p.write("before")
	p.waitForText(".operator:not(.pending) .text", "before")
	p.offline(true)
	p.waitForText("#connection", "no connection")
	p.write("meanwhile")
	p.waitForText(".pending .state", "looking whether it arrived")
	p.picture("offline")
	p.offline(false)
	p.waitForText(".pending .state", "It can be sent again")
	p.waitForText("#connection", "connected")
	p.click(".pending .state button")
	p.waitForText(".operator:not(.pending) .text", "meanwhile")
	if n := strings.Count(r.stored(t), "meanwhile"); n != 1 {
		t.Errorf("the message stands %d times", n)
	}
}

// Ensures that a message whose answer was lost on the way is found in the
// conversation and stands once, without anything to be done.
func TestPage_LostAnswer(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	f := startFront(t, r)
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.write("twice?")
	p.waitForText(".operator:not(.pending) .text", "twice?")
	f.fail(loses("post.php"))
	p.write("twice?")
	p.waitFor(`document.querySelectorAll('.operator:not(.pending)').length === 2 && !document.querySelector('.pending')`)
	f.fail(fault{route: "post.php", answer: func(w http.ResponseWriter, relayd func(http.ResponseWriter)) {
		relayd(httptest.NewRecorder())
		w.WriteHeader(http.StatusBadGateway)
	}})
	p.write("and by a 502?")
	p.waitForText(".operator:not(.pending) .text", "502")
	if n := f.postsSeen(); n != 3 {
		t.Errorf("%d posts were made, want 3", n)
	}
	if n := strings.Count(r.stored(t), "twice?"); n != 2 {
		t.Errorf("the message stands %d times, want as often as it was sent", n)
	}
}

// Ensures that the front end's 503, which is HTML, delays a message and a poll
// and loses neither.
func TestPage_Busy(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	f := startFront(t, r)
	f.fail(busy("poll.php"))
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.waitForText("#connection", "connected")
	f.fail(busy("post.php"), busy("post.php"))
	p.write("patience")
	p.waitForText(".pending .state", "The server is busy. Sending again in")
	p.waitForText(".operator:not(.pending) .text", "patience")
	if n := f.postsSeen(); n != 3 {
		t.Errorf("%d posts were made, want 3", n)
	}
}

// Ensures that a full window is waited for, as long as the server says, and that
// a message can be taken back meanwhile.
func TestPage_RateLimited(t *testing.T) {
	t.Parallel()
	r := startRelayd(t, "RELAYD_LIMITS_THREAD_POSTS=2")
	f := startFront(t, r)
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.write("one")
	p.waitForText(".operator:not(.pending) .text", "one")
	f.fail(answers("post.php", 429, "application/json",
		`{"success":false,"code":"rate_limited","error":"x","retry_after_ms":1500,"scope":"thread","limit":20,"window_s":600}`))
	p.write("two")
	p.waitForText(".pending .state", "Too many messages for now. This one is sent in 2 s")
	p.waitForText(".operator:not(.pending) .text", "two")
	p.write("three") // relayd's own limit
	p.waitForText(".pending .state", "This one is sent in 10 min")
	p.run(`document.querySelector('.pending .state button').focus()`)
	p.do("pressing Enter", enter)
	p.waitForText(".pending .state", "Given up")
	p.waitFor(`document.activeElement.matches('.pending .state button')`) // whoever uses keys keeps the place
	p.click(".pending.failed .state button:last-child")
	p.waitFor(`document.getElementById('text').value === 'three' && !document.querySelector('.pending')`)
	if got, want := p.messages(), []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("the page shows %q, want %q", got, want)
	}
	if n := f.postsSeen(); n != 4 {
		t.Errorf("%d posts were made, want 4", n)
	}
}

// Ensures that each permanent refusal is said in words, once, and that what was
// written can be taken back and changed.
func TestPage_Refusals(t *testing.T) {
	t.Parallel()
	const json = "application/json; charset=utf-8"
	r := startRelayd(t)
	f := startFront(t, r)
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	for _, row := range []struct {
		fault fault
		want  string
	}{
		{answers("post.php", 401, json, `{"success":false,"code":"bad_token","error":"x"}`), "Run hermes-reset"},
		{answers("post.php", 413, json, `{"success":false,"code":"too_long","error":"x"}`), "too long for this server"},
		{answers("post.php", 413, json, `{"success":false,"code":"too_large","error":"x"}`), "too many bytes"},
		{answers("post.php", 413, "text/html", `<html>`), "Something other than the chat answered (status 413)"},
		{answers("post.php", 507, json, `{"success":false,"code":"thread_limit","error":"x"}`), "no new conversations"},
		{answers("post.php", 500, json, `{"success":false,"code":"thread file is corrupt","error":"x"}`), "damaged on the server"},
		{answers("post.php", 500, json, `{"success":false,"code":"storage","error":"x"}`), "could not read or write"},
		{answers("post.php", 500, json, `{"success":false,"code":"internal","error":"x"}`), "The server failed"},
		{answers("post.php", 400, json, `{"success":false,"code":"bad_request","error":"text is odd"}`), "text is odd"},
	} {
		posts := f.postsSeen()
		f.fail(row.fault)
		p.write("refused")
		p.waitForText(".pending.failed .state", row.want)
		p.picture("refused " + row.want)
		if n := f.postsSeen() - posts; n != 1 {
			t.Errorf("%q: %d posts, want 1", row.want, n)
		}
		p.click(".pending.failed .state button:last-child")
		p.waitFor(`document.getElementById('text').value === 'refused' && !document.querySelector('.pending')`)
	}
	if strings.Contains(r.stored(t), "refused") {
		t.Error("a refused message stands in the thread")
	}
}

// Ensures that the true refusals of relayd are said in words: a damaged thread,
// a server that is full, and a body that is too large.
func TestPage_RefusalsOfRelayd(t *testing.T) {
	t.Parallel()
	r := startRelayd(t, "RELAYD_LIMITS_THREADS=1", "RELAYD_LIMITS_BODY=64")
	url := nginx(t, r)
	p := newBrowser(t).open(t, url, tabOptions{refusals: true})
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	p.write(strings.Repeat("large ", 20))
	p.waitForText(".pending.failed .state", "too many bytes")
	other := newBrowser(t).open(t, url, tabOptions{refusals: true})
	other.write("one too many")
	other.waitForText(".pending.failed .state", "no new conversations")
	if err := os.WriteFile(r.threadFile(t), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.reload()
	p.waitForText("#trouble", "damaged on the server")
	p.picture("corrupt")
	p.mustBeAccessible("a damaged thread")
	r.chat(t, "reset", r.thread(t), "--yes")
	p.poll()
	p.waitForText("#connection", "connected")
	p.waitFor(`document.getElementById('trouble').hidden`)
}

// Ensures that a refused token leads to a new conversation by one button.
func TestPage_RefusedToken(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	f := startFront(t, r)
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.waitForText("#connection", "connected")
	const refused = `{"success":false,"code":"bad_token","error":"x"}`
	f.fail(answers("post.php", 401, "application/json", refused), answers("poll.php", 401, "application/json", refused))
	p.write("keep these words")
	p.waitForText(".pending.failed .state", "Run hermes-reset")
	p.poll()
	p.waitForText("#trouble", "does not accept the key")
	p.picture("bad token")
	p.mustBeAccessible("a refused token")
	p.click("#trouble-action")
	p.waitForText("#dialog", "unreachable")
	p.click("#dialog-yes")
	p.waitForText("#connection", "connected")
	p.waitFor(`document.getElementById('trouble').hidden`)
	p.waitFor(`document.getElementById('text').value === 'keep these words' && !document.querySelector('.message')`)
	p.write("anew")
	p.waitForText(".operator:not(.pending) .text", "anew")
}

// Ensures that a browser that stores nothing can use the chat, and that the page
// says how long that lasts.
func TestPage_StorageDisabled(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowserWith(t, noStorage).open(t, r.url, tabOptions{})
	if got := eval[string](p, `(() => { try { localStorage; return 'allowed'; } catch (e) { return e.name; } })()`); got != "SecurityError" {
		t.Fatalf("storage is %s", got)
	}
	p.waitForText("#storage", "stores nothing")
	p.picture("storage disabled")
	p.write("one")
	p.waitForText(".operator:not(.pending) .text", "one")
	p.write("two")
	p.waitForText(".operator:not(.pending) .text", "two")
	r.reply(t, "three")
	p.poll()
	p.waitForText(".hermes .text", "three")
	p.click("#language")
	p.waitForText("#storage", "不为本页保存")
}
