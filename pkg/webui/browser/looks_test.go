package browser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// axe returns the source of the accessibility checker.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "..", ".tools", "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v\nhint: make setup installs it", err)
	}
	return string(source)
}

// mustBeAccessible fails the test for every serious finding of axe, contrast
// among them, and when the page is wider than the screen.
func (p *tab) mustBeAccessible(state string) {
	p.t.Helper()
	findings := eval[[]string](p, axe(p.t)+`;
		axe.run(document).then(({ violations }) => violations
			.filter((v) => v.impact === 'serious' || v.impact === 'critical')
			.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join(' | ')))`)
	for _, finding := range findings {
		p.t.Errorf("%s: %s", state, finding)
	}
	if wide := eval[[]string](p, `[...document.querySelectorAll('body *:not(.unseen, .unseen *)')]
		.filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('pre'))
		.map((e) => e.tagName + '.' + e.className + '#' + e.id)`); len(wide) > 0 {
		p.t.Errorf("%s: these reach out of the screen: %q", state, wide)
	}
}

// Ensures that the page can be used in both languages, in dark and in light, on
// a desktop and on a phone: no serious finding of axe and nothing off the screen
// when it is empty, in a conversation and when something is wrong.
func TestPage_Looks(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]tabOptions{
		"desktop dark en":  {},
		"desktop light zh": {light: true, lang: "zh-CN"},
		"phone dark zh":    {phone: true, lang: "zh-CN"},
		"phone light en":   {phone: true, light: true},
		"small dark en":    {small: true, forced: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look.refusals = true
			judgeLook(t, name, look)
		})
	}
}

func judgeLook(t *testing.T, name string, look tabOptions) {
	t.Helper()
	r := startRelayd(t, "RELAYD_LIMITS_THREAD_POSTS=3")
	p := newBrowser(t).open(t, r.url, look)
	p.see(name + " empty")
	p.converse(r)
	p.see(name + " conversation")
	p.run(`document.getElementById('scroller').scrollTop = 0`)
	p.see(name + " top")
	p.fill(strings.Repeat("0123456789", 401))
	p.click("#send")
	p.waitFor(`!document.getElementById('trouble').hidden`)
	p.see(name + " too long")
	p.fill("")
	p.write("One more, which is one too many.")
	p.waitFor(`document.querySelector('.pending .state button')`)
	p.see(name + " limited")
	p.click("#reset")
	p.waitFor(`document.getElementById('dialog').open`)
	p.see(name + " dialog")
	if low := eval[float64](p, `document.getElementById('scroller').clientHeight`); low < 100 {
		t.Errorf("the conversation is %v pixels high", low)
	}
	p.click("#dialog-no")
}

// see judges a state of the page and takes its picture.
func (p *tab) see(state string) {
	p.t.Helper()
	p.picture(state)
	p.mustBeAccessible(state)
}

// converse fills the transcript with all kinds of messages.
func (p *tab) converse(r *relayd) {
	p.t.Helper()
	p.write("Hello Hermes, when is the meeting?")
	p.waitForText(".operator:not(.pending) .text", "meeting")
	r.reply(p.t, "At noon, in the large room.\n\nThe agenda is at https://example.org/agenda/2026?room=large. Bring:\n  - the figures of October\n  - a pen\n\nSee also https://xn--80ak6aa92e.com/ (not ours).")
	p.write("谢谢！请问会议要开多久？\n第二行。")
	p.waitForText(".operator:not(.pending) .text", "第二行")
	r.reply(p.t, "大约一个小时。议程见 https://example.org/议程。若有变动，我会在这里通知您。")
	r.reply(p.t, "Evil: \x1b[31mred\x1b[0m, a turned \u202eword\u202c, a hidden one \u200b\u200b\u200b\u200b\u200b\u200b, "+
		"<b>bold</b>, family 👨‍👩‍👧‍👦 and "+strings.Repeat("averylongwordwithoutanyblank", 8)+".")
	r.reply(p.t, strings.Repeat("A longer paragraph, as answers have them, which fills more than one line of the screen. ", 8))
	p.write("And the one after that?")
	p.waitForText(".operator:not(.pending) .text", "after that")
	p.waitForText(".hermes .text", "longer paragraph")
	p.waitForText("#awaiting", "Hermes")
}
