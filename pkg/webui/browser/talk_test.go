package browser_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Ensures the walk of a first visit: the page says what it is, a message goes to
// disk, `chat reply` answers on the host, and the page shows the answer without
// being asked to; also below the prefix of the space, and after a reload.
func TestPage_FirstVisitToAnswer(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"direct": "/", "direct prefix": "/spaces/newos4/", "nginx": "/", "nginx prefix": "/spaces/newos4/"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRelayd(t)
			url := r.url
			if strings.HasPrefix(name, "nginx") {
				url = nginx(t, r)
			}
			firstVisit(t, r, url+path)
		})
	}
}

func firstVisit(t *testing.T, r *relayd, url string) {
	t.Helper()
	p := newBrowser(t).open(t, url, tabOptions{})
	p.waitForText("#empty", "Anyone who can reach this page can write")
	p.waitForText("#connection", "connected")
	if got := r.threads(t); len(got) != 0 {
		t.Errorf("a visit made the threads %q", got)
	}
	p.write("When is the meeting?")
	p.waitForText(".operator:not(.pending) .text", "When is the meeting?")
	p.waitForText("#awaiting", "Waiting for Hermes")
	r.reply(t, "At noon.") // and the page asks by itself
	p.waitForText(".hermes .text", "At noon.")
	p.waitFor(`document.getElementById('awaiting').hidden && document.getElementById('empty').hidden`)
	p.waitFor(`document.getElementById('log').ariaLive === 'polite'`) // a reader of the screen is told of answers
	p.reload()
	p.waitForText(".hermes .text", "At noon.")
	if got, want := p.messages(), []string{"When is the meeting?", "At noon."}; !slices.Equal(got, want) {
		t.Errorf("after a reload the page shows %q, want %q", got, want)
	}
}

// Ensures that two tabs which open at the same moment are one conversation, and
// that each shows what is written in the other and what Hermes answers.
func TestPage_TwoTabs(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	url := nginx(t, r)
	b := newBrowser(t)
	tabs := []*tab{b.open(t, url, tabOptions{}), b.open(t, url, tabOptions{})}
	// Forget the token and open both anew, at once, as a restored window does.
	tabs[0].run(`localStorage.clear()`)
	tabs[0].run(`location.reload()`)
	tabs[1].run(`location.reload()`)
	for _, p := range tabs {
		p.waitFor(`document.getElementById('connection')?.dataset.state === 'connected'`)
	}
	tabs[0].write("from the first")
	tabs[0].waitForText(".operator:not(.pending) .text", "from the first")
	tabs[1].waitForText(".operator .text", "from the first")
	tabs[1].write("from the second")
	tabs[1].waitForText(".operator:not(.pending) .text", "from the second")
	r.reply(t, "to both")
	for _, p := range tabs {
		p.poll()
		p.waitForText(".hermes .text", "to both")
		p.waitForText(".operator .text", "from the second")
		if got, want := p.messages(), []string{"from the first", "from the second", "to both"}; !slices.Equal(got, want) {
			t.Errorf("a tab shows %q, want %q", got, want)
		}
	}
}

// Ensures that a reset asks, keeps everything on Escape, and otherwise leaves the
// old conversation behind in every tab.
func TestPage_Reset(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	url := nginx(t, r)
	b := newBrowser(t)
	first, second := b.open(t, url, tabOptions{}), b.open(t, url, tabOptions{})
	first.write("old")
	second.waitForText(".operator .text", "old")
	old := r.thread(t)
	first.click("#reset")
	first.waitForText("#dialog", "The old one becomes unreachable")
	first.press(kb.Escape)
	first.waitFor(`!document.getElementById('dialog').open`)
	if got := first.messages(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("after Escape the page shows %q", got)
	}
	first.click("#reset")
	first.click("#dialog-yes")
	for _, p := range []*tab{first, second} {
		p.waitFor(`document.querySelectorAll('.message').length === 0 && !document.getElementById('empty').hidden`)
	}
	second.write("new")
	first.waitForText(".operator .text", "new")
	if threads := r.threads(t); len(threads) != 2 {
		t.Errorf("there are the threads %q, want two", threads)
	}
	r.chat(t, "reply", old, "too late")
	first.poll()
	first.reload()
	if got := first.messages(); !slices.Equal(got, []string{"new"}) {
		t.Errorf("the new conversation shows %q", got)
	}
}

// Ensures that a message of 4000 emoji is sent whole, and that one more is
// refused by the page, which says by how much and sends nothing.
func TestPage_FourThousandEmoji(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	url := nginx(t, r)
	p := newBrowser(t).open(t, url, tabOptions{})
	p.fill(strings.Repeat("😀", 4001))
	p.waitForText("#count", "4001 / 4000 · 1 too many")
	p.do("pressing Enter", enter)
	p.waitForText("#trouble", "1 characters too long")
	p.poll()
	p.waitForText("#trouble", "1 characters too long") // a poll that succeeds is no answer to it
	if threads := r.threads(t); len(threads) != 0 {
		t.Errorf("the threads %q were made", threads)
	}
	p.fill(strings.Repeat("😀", 4000))
	p.waitForText("#count", "4000 / 4000")
	p.waitFor(`document.getElementById('trouble').hidden`)
	p.do("pressing Enter", enter)
	p.waitForText(".operator:not(.pending) .text", "😀")
	if got := p.messages(); len(got) != 1 || got[0] != strings.Repeat("😀", 4000) {
		t.Errorf("the page shows %d messages of %d bytes", len(got), len(got[0]))
	}
	if n := strings.Count(r.stored(t), "😀"); n != 4000 {
		t.Errorf("%d emoji are stored", n)
	}
	p.mustBeAccessible("4000 emoji")
}

// Ensures that a hostile reply does nothing: no markup, no script, no request, no
// turned or hidden text, no link that is followed by a click alone, and nothing
// off the screen.
func TestPage_HostileReply(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url, tabOptions{phone: true})
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	replies := []string{
		`<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg/onload=window.hacked=1>`,
		`<a href="javascript:window.hacked=1">x</a> javascript:window.hacked=1 ![x](https://evil.example/p?d=1)`,
		"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[1A\u009b31m\u0085", "abc\u202egnp.exe\u202c \u2066x\u2069 \u200f",
		strings.Repeat("\u200b", 4000), strings.Repeat("\u200d", 3999) + "x", "a" + strings.Repeat("\u0301", 3999),
		strings.Repeat("W", 4000), strings.Repeat("\u2003", 3999) + "x", strings.Repeat("\n", 200) + "end",
		"\U000e0072\U000e0065ad", "https://user:pass@evil.example@good.example/\u202e", "https://еxample.org/",
	}
	for _, reply := range replies {
		r.reply(t, reply)
	}
	p.poll()
	p.waitFor(fmt.Sprintf(`document.querySelectorAll('.hermes').length === %d`, len(replies)))
	p.picture("hostile")
	p.mustBeAccessible("hostile replies")
	if got := eval[string](p, `String(window.hacked)`); got != "undefined" {
		t.Error("a reply ran code")
	}
	if got := eval[[]string](p, `[...document.querySelectorAll('.text *')].filter((e) => e.className !== 'spelled' && e.className !== 'link').map((e) => e.outerHTML)`); len(got) != 0 {
		t.Errorf("replies made the elements %q", got)
	}
	if got := eval[[]string](p, `performance.getEntriesByType('resource').map((e) => e.name).filter((n) => new URL(n).origin !== location.origin)`); len(got) != 0 {
		t.Errorf("the page loaded %q", got)
	}
	shown := strings.Join(p.messages(), "")
	for _, r := range shown {
		if r < ' ' && r != '\n' || r == 0x7f || r == 0x9b || r == 0x202e || r == 0x200b || r >= 0xe0000 && r < 0xe0080 {
			t.Fatalf("the page shows %U", r)
		}
	}
	for _, want := range []string{"⟦U+001B⟧", "⟦U+202E⟧", "⟦U+200B⟧⟦U+200B⟧⟦U+200B⟧⟦U+200B⟧⟦+3996⟧", "⟦U+E0072⟧", "<script>"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	p.run(`[...document.querySelectorAll('.link')].at(-1).focus()`)
	p.do("pressing Enter", enter)
	p.waitForText("#dialog-title", "xn--")
	p.picture("link")
	p.click("#dialog-no")
	if n := eval[int](p, `history.length`); n > 2 {
		t.Errorf("a link was followed: %d entries", n)
	}
}

// Ensures that a clock of the browser that is wrong by a year changes nothing:
// messages pass, in order, with the time of the server.
func TestPage_WrongClock(t *testing.T) {
	t.Parallel()
	for _, shift := range []string{"-1", "1"} {
		r := startRelayd(t)
		p := newBrowser(t).open(t, r.url, tabOptions{script: `{
			const shift = ` + shift + ` * 366 * 86400e3, Real = Date;
			globalThis.Date = class extends Real {
				constructor(...args) { if (args.length) super(...args); else super(Real.now() + shift); }
				static now() { return Real.now() + shift; }
			};
		}`})
		year := time.Now().Year()
		if got := eval[int](p, `new Date().getFullYear()`); got == year {
			t.Fatalf("the clock says %d", got)
		}
		p.write("first")
		p.waitForText(".operator:not(.pending) .text", "first")
		r.reply(t, "second")
		p.waitForText(".hermes .text", "second") // the page asks by itself
		p.write("third")
		p.waitForText(".operator:not(.pending) .text", "third")
		if got, want := p.messages(), []string{"first", "second", "third"}; !slices.Equal(got, want) {
			t.Errorf("the page shows %q, want %q", got, want)
		}
		p.waitForText(".day", strconv.Itoa(time.Now().Year()))
	}
}

// Ensures that the module's two readers, in a page of their own, both get the
// same message, whoever reads first, also after a reload.
func TestModule_TwoReadersGetTheSameMessage(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url+"/favicon.svg", tabOptions{bare: true, refusals: true})
	p.run(`window.chat = import('/hermes-chat.js').then((m) => m.createChat())`)
	eval[string](p, `window.chat.then((c) => c.tool().handle({ action: 'send', text: 'from the agent' })).then((a) => a.id)`)
	r.reply(t, "to both")
	const (
		poll = `window.chat.then((c) => c.poll()).then((page) => page.messages.map((m) => m.author + ' ' + m.text))`
		read = `window.chat.then((c) => c.tool().handle({ action: 'read' })).then((a) => a.messages.map((m) => m.author + ' ' + m.text))`
	)
	want := []string{"agent from the agent", "hermes to both"}
	for _, expression := range []string{poll, read} {
		if got := eval[[]string](p, expression); !slices.Equal(got, want) {
			t.Errorf("%s = %q, want %q", expression, got, want)
		}
	}
	r.reply(t, "again")
	p.do("reloading", chromedp.Reload())
	p.run(`window.chat = import('/hermes-chat.js').then((m) => m.createChat())`)
	for _, expression := range []string{read, poll} {
		if got := eval[[]string](p, expression); !slices.Equal(got, []string{"hermes again"}) {
			t.Errorf("%s = %q after a reload", expression, got)
		}
		if got := eval[[]string](p, expression); len(got) != 0 {
			t.Errorf("%s gives %q twice", expression, got)
		}
	}
}

// Ensures that a reply which arrives while nobody looks stands in the title until
// somebody does.
func TestPage_NoticeInTheTitle(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url, tabOptions{})
	p.write("hello")
	p.waitForText("#awaiting", "Waiting")
	const change = `new Promise((done) => document.addEventListener('visibilitychange', () => done(document.visibilityState), { once: true }))`
	if got := eval[string](p, `(() => { const changed = `+change+`; window.other = window.open('hermes-chat.js'); return changed; })()`); got != "hidden" {
		t.Fatalf("behind another tab the page is %s", got)
	}
	r.reply(t, "here I am")
	p.poll()
	p.waitFor(`document.title === '(1) Hermes'`)
	if got := eval[string](p, `(() => { const changed = `+change+`; window.other.close(); return changed; })()`); got != "visible" {
		t.Fatalf("in front again the page is %s", got)
	}
	p.waitFor(`document.title === 'Hermes'`)
}

// Ensures that a first visit costs little, comes from one host and leaves no
// cookie.
func TestPage_FirstLoad(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url, tabOptions{})
	const most = 60_000
	size := eval[int](p, `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].reduce((sum, e) => sum + e.transferSize, 0)`)
	t.Logf("the first visit transfers %d bytes", size)
	if size == 0 || size >= most {
		t.Errorf("the first visit transfers %d bytes, want less than %d", size, most)
	}
	if got := eval[string](p, `document.cookie`); got != "" {
		t.Errorf("the cookie is %q", got)
	}
}

// Ensures that the page can be used by its keys: Enter sends, with Shift it makes
// a line, while an input method composes it does neither, and the arrows bring
// back what was sent and what was being written.
func TestPage_Keyboard(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, r.url, tabOptions{})
	p.fill("one")
	p.do("pressing Enter", enter)
	p.waitForText(".operator:not(.pending) .text", "one")
	p.fill("two, line one")
	p.run(`const f = document.getElementById('text');
		f.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, cancelable: true, bubbles: true }));
		f.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, cancelable: true, bubbles: true }));
		f.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', shiftKey: true, cancelable: true, bubbles: true }))`)
	p.do("writing a second line", insert("\nline two"), enter)
	p.waitForText(".operator:not(.pending) .text", "two, line one\nline two")
	p.fill("a draft")
	for _, step := range []struct{ key, want string }{
		{kb.ArrowUp, "two, line one\nline two"}, {kb.ArrowUp, "two, line one\nline two"}, // the first moves in the text
	} {
		p.press(step.key)
		if got := eval[string](p, `document.getElementById('text').value`); got != step.want {
			t.Errorf("after the arrow the field holds %q, want %q", got, step.want)
		}
	}
	p.press(kb.ArrowUp)
	p.waitFor(`document.getElementById('text').value === 'one'`)
	p.press(kb.ArrowDown)
	p.press(kb.ArrowDown)
	p.press(kb.ArrowDown)
	p.waitFor(`document.getElementById('text').value === 'a draft'`)
	var order []string
	p.run(`document.getElementById('language').focus()`)
	for range 4 {
		order = append(order, eval[string](p, `document.activeElement.id`))
		p.press(kb.Tab)
	}
	if want := []string{"language", "reset", "scroller", "text"}; !slices.Equal(order, want) {
		t.Errorf("the Tab key goes %q, want %q", order, want)
	}
}
