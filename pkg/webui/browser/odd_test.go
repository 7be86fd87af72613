package browser_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// holds is a fault that hands the request on once gate is closed.
func holds(route string, gate <-chan struct{}) fault {
	return fault{route: route, answer: func(w http.ResponseWriter, relayd func(http.ResponseWriter)) {
		<-gate
		relayd(w)
	}}
}

// Ensures that a message which is written before the server has answered for the
// first time is sent all the same.
func TestPage_WriteBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	f := startFront(t, r)
	gate := make(chan struct{})
	f.fail(holds("poll.php", gate), holds("poll.php", gate)) // of the display, and of the message
	p := newBrowser(t).open(t, f.url, tabOptions{bare: true})
	p.waitFor(`document.getElementById('text').placeholder !== ''`)
	p.write("early")
	p.waitForText(".pending .text", "early")
	p.waitForText("#connection", "connecting")
	close(gate)
	p.waitForText(".operator:not(.pending) .text", "early")
	if n := strings.Count(r.stored(t), "early"); n != 1 {
		t.Errorf("the message stands %d times", n)
	}
}

// Ensures that no field of an answer acts, whatever stands in it, and that
// broken answers leave a page that goes on.
func TestPage_HostileFields(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	f := startFront(t, r)
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	const evil = `"><img src=x onerror=hacked=1><script>hacked=1</script>` + "\u202e\x1b[2J"
	messages := make([]map[string]any, 0, 4)
	for _, epoch := range []int{1, -5, 9007199254740991, 1 << 45} {
		messages = append(messages, map[string]any{"id": evil + string(rune('a'+len(messages))), "epoch": epoch, "ts": evil, "author": evil, "text": evil})
	}
	body, err := json.Marshal(map[string]any{
		"success": true, "thread": r.thread(t), "messages": messages, "awaiting": evil, "truncated": evil, "cursor": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	const ok = "application/json"
	f.fail(answers("poll.php", 200, ok, string(body)))
	p.poll()
	p.waitFor(`document.querySelectorAll('.other').length === 4`)
	p.picture("hostile fields")
	p.mustBeAccessible("hostile fields")
	if got := eval[string](p, `String(window.hacked) + document.querySelectorAll('#log img, #log script').length`); got != "undefined0" {
		t.Errorf("a field acted: %s", got)
	}
	for _, body := range []string{"<html>", `{"success":true,"thr`, `[]`, `{"success":true,"thread":5,"messages":[],"cursor":0}`} {
		f.fail(answers("poll.php", 200, ok, body))
		p.poll()
		p.waitForText("#trouble", "Something other than the chat answered")
		p.poll()
		p.waitFor(`document.getElementById('trouble').hidden`)
	}
}

// Ensures that an address in a text ends where a reader sees its end, and that
// what only looks like an address is none.
func TestPage_Links(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url, tabOptions{})
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	r.reply(t, strings.Join([]string{
		"(see https://a.example/x_(y)), https://b.example/z).", "*https://c.example/*", "见https://d.example/议程。", "HTTPS://E.example!?",
		"data:text/html,x javascript:alert(1) file:///etc/passwd //f.example http:// https://[bad", "https://good.example@g.example/",
		"https://h.example\u2028/x", "https://good.example\u3002i.example/",
	}, "\n"))
	p.poll()
	p.waitForText(".hermes .text", "see")
	want := []string{
		"https://a.example/x_(y)", "https://b.example/z", "https://c.example/", "https://d.example/", "HTTPS://E.example",
		"https://good.example@g.example/", "https://h.example", "https://good.example",
	}
	if got := eval[[]string](p, `[...document.querySelectorAll('.link')].map((e) => e.textContent)`); !slices.Equal(got, want) {
		t.Errorf("the links are %q, want %q", got, want)
	}
	p.run(`document.querySelectorAll('.link')[5].click()`)
	p.waitForText("#dialog-title", "Open g.example?") // and not the name before the sign
}

// Ensures that a page which stays open for weeks stays small and quick, and that
// a text of 100000 characters can be pasted and is counted.
func TestPage_ManyMessagesAndMuchText(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url, tabOptions{})
	took := eval[float64](p, `(async () => {
		const { Transcript } = await import('./transcript.js');
		const { Words } = await import('./words.js');
		const transcript = new Transcript(document.getElementById('log'), new Words(), () => {});
		const start = performance.now();
		for (let page = 0; page < 200; page++) {
			transcript.add(Array.from({ length: 50 }, (_, i) => {
				const n = page * 50 + i;
				return { id: 'm' + n, epoch: 1e12 + n * 6e5, ts: '', author: 'hermes', text: 'message ' + n };
			}));
		}
		return performance.now() - start;
	})()`)
	t.Logf("10000 messages take %.0f ms", took)
	if got := eval[[]string](p, `(() => { const all = [...document.querySelectorAll('#log .text')];
		return [String(all.length), all[0].textContent, all.at(-1).textContent, String(document.querySelector('#log > :first-child > .day') !== null)]; })()`); !slices.Equal(got, []string{"1000", "message 9000", "message 9999", "true"}) {
		t.Errorf("the page holds %q", got)
	}
	p.fill(strings.Repeat("字", 100_000))
	p.waitForText("#count", "100000 / 4000 · 96000 too many")
}

// Ensures that the commands and the tool work in a terminal of another page of
// the host, as newOS4 has one: what is typed, printed and asked is plain text.
func TestModule_InATerminal(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url+"/favicon.svg", tabOptions{bare: true, refusals: true})
	p.run(`window.terminal = {
		commands: {}, lines: [], asked: [], answer: false,
		command({ name, help, run }) { if (this.commands[name] || !help) throw new Error(name); this.commands[name] = run; },
		print(text) { this.lines.push(text); },
		confirm(question) { this.asked.push(question); return this.answer; },
		async type(line) { const [, name, rest] = /^(\S+) ?(.*)$/s.exec(line); await this.commands[name](rest); return this.lines.splice(0); },
	}`)
	names := eval[[]string](p, `import('/spaces/newos4/hermes-chat.js').then((m) => {
		window.chat = m.createChat();
		window.chat.register(terminal)();
		return Object.keys(terminal.commands).sort();
	})`)
	if want := []string{"feedback", "feedback-inbox", "hermes", "hermes-poll", "hermes-reset"}; !slices.Equal(names, want) {
		t.Fatalf("the commands are %q, want %q", names, want)
	}
	expect := func(line string, want ...string) {
		t.Helper()
		got := eval[[]string](p, `terminal.type(`+quote(line)+`)`)
		ok := slices.EqualFunc(got, want, strings.HasPrefix)
		if !ok {
			t.Errorf("%s prints %q, want %q", line, got, want)
		}
	}
	expect("hermes", "usage: hermes MESSAGE")
	expect("hermes  two blanks 中文 😀", "sent, MSG-")
	if !strings.Contains(r.stored(t), `" two blanks 中文 😀"`) {
		t.Errorf("what was typed is stored as %s", r.stored(t))
	}
	old := r.thread(t)
	r.reply(t, "<b>hi</b>\x1b[2J")
	expect("hermes-poll", "operator:  two blanks", "hermes: <b>hi</b>⟦U+001B⟧[2J")
	expect("feedback-inbox", "no new messages")
	read := eval[[]string](p, `chat.tool().handle({ action: 'read' }).then((a) => a.messages.map((m) => m.author))`)
	if !slices.Equal(read, []string{"operator", "hermes"}) {
		t.Errorf("the tool reads messages of %q", read)
	}
	expect("feedback again", "sent, MSG-")
	expect("hermes-poll", "operator: again")
	expect("hermes-poll", "Hermes has not answered yet")
	expect("hermes "+strings.Repeat("x", 4001), "The message is 1 characters too long")
	expect("hermes-reset", "nothing was changed")
	p.run(`terminal.answer = true`)
	expect("hermes-reset", "a new conversation has begun")
	expect("hermes-poll", "no new messages")
	r.chat(t, "reply", old, "too late")
	expect("hermes-poll", "no new messages")
	if asked := eval[[]string](p, `terminal.asked`); len(asked) != 2 || !strings.Contains(asked[0], "becomes unreachable") {
		t.Errorf("was asked %q", asked)
	}
}

// Ensures that a redirect on the way, such as to a sign-in of the network, is
// not followed with the token and is said in words.
func TestPage_Redirect(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	f := startFront(t, r)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("the browser followed to %s with %v", req.URL, req.Header)
	}))
	t.Cleanup(elsewhere.Close)
	p := newBrowser(t).open(t, f.url, tabOptions{refusals: true})
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	f.fail(fault{route: "post.php", answer: func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}})
	p.write("not to be led away")
	p.waitForText(".pending.failed .state", "The request was led elsewhere")
}
