package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a test waits for what must happen: a bound for what never
// comes, and no measure of speed, so that a machine that is overwhelmed passes.
const patience = 3 * time.Minute

// browser is a profile of a Chromium: tabs that share a storage.
type browser struct {
	ctx context.Context
}

// chromium is the process that all tests share, for one takes seconds to start.
// TestMain ends it.
var chromium = sync.OnceValues(func() (*process, error) { return startChromium("") })

// plainHost is a host without TLS.
const plainHost = "plain.example"

// process is a running Chromium.
type process struct {
	ctx  context.Context
	stop func()
}

// startChromium runs Chromium with a fresh profile, until it is stopped.
func startChromium(profile string) (*process, error) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.IgnoreCertErrors, chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en-US"),
		// A name that is not this machine's own, for what browsers allow to those alone.
		chromedp.Flag("host-resolver-rules", "MAP "+plainHost+" 127.0.0.1"),
	)
	if profile != "" {
		opts = append(opts, chromedp.UserDataDir(profile))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(allocator)
	p := &process{ctx: ctx, stop: func() { cancel(); stop() }}
	if err := chromedp.Do(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("starting Chromium: %w\nhint: make setup installs it", err)
	}
	return p, nil
}

// newBrowser returns a fresh profile of the shared Chromium.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	shared, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(shared.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("making a profile: %v", err)
	}
	return &browser{ctx: ctx}
}

// newBrowserWith starts a Chromium whose profile has these preferences.
func newBrowserWith(t *testing.T, preferences string) *browser {
	t.Helper()
	profile := t.TempDir()
	writeFile(t, filepath.Join(profile, "Default", "Preferences"), preferences)
	own, err := startChromium(profile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.stop)
	return &browser{ctx: own.ctx}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tab is one tab. Whatever a page writes to the console as an error fails the
// test, and so does a violation of its policy.
type tab struct {
	t   *testing.T
	ctx context.Context
	// refusals allows the browser's own lines on answers of 4xx and 5xx and on
	// a network that is gone, in tests that are about them.
	refusals bool
}

// tabOptions say how a tab differs from any other.
type tabOptions struct {
	refusals bool
	script   string // runs before those of the page
	phone    bool
	small    bool // the narrowest screen, and a low one: a phone on its side, or a page enlarged to 400 %
	forced   bool // colours of the system's own choice
	light    bool
	lang     string
	bare     bool // it is no page of ours
}

// open opens a page in a new tab and waits until the chat is connected or says
// why not.
func (b *browser) open(t *testing.T, url string, opts tabOptions) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	p := &tab{t: t, ctx: ctx, refusals: opts.refusals}
	p.watchConsole(cancel)
	p.emulate(opts)
	p.do("opening "+url, chromedp.Navigate(url))
	if opts.bare {
		return p
	}
	p.waitFor(`document.getElementById('connection')?.dataset.state !== 'connecting'`)
	return p
}

// lastLine is what a test writes to the console at its end, so that nothing is
// still on its way when the console is judged.
const lastLine = "this is the last line"

// watchConsole collects what is wrong until the test ends, and closes the tab.
func (p *tab) watchConsole(closeTab func()) {
	messages := chromedp.Console(p.ctx)
	var reading sync.WaitGroup
	var wrong []string
	read := make(chan struct{}) // closed after the last line
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Text == lastLine {
				close(read)
				return
			}
			if m.Type != chromedp.ConsoleError && !m.IsException() && m.Source != "security" && m.Source != "violation" {
				continue
			}
			if p.refusals && (m.Source == "network" || strings.Contains(m.Text, "blocked by CORS policy")) {
				continue
			}
			wrong = append(wrong, fmt.Sprintf("%s %s: %s", m.Type, m.Source, m.Text))
		}
	})
	p.t.Cleanup(func() {
		p.run(`console.debug('` + lastLine + `')`)
		select {
		case <-read:
		case <-time.After(patience):
			p.t.Error("the console has no end")
		}
		closeTab()
		reading.Wait()
		for _, line := range wrong {
			p.t.Errorf("the console: %s", line)
		}
	})
	// The policy's violations, for those that no console tells of.
	p.beforePage(`addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.blockedURI))`)
}

func (p *tab) beforePage(script string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	p.check("preparing the page", err)
}

func (p *tab) emulate(opts tabOptions) {
	p.t.Helper()
	if opts.script != "" {
		p.beforePage(opts.script)
	}
	if opts.lang != "" {
		p.beforePage(`Object.defineProperty(navigator, 'languages', { get: () => ['` + opts.lang + `'] })`)
	}
	if opts.small {
		p.do("becoming small", chromedp.EmulateViewport(320, 256))
	} else if opts.phone {
		p.do("becoming a phone", chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2), chromedp.EmulateMobile))
	} else {
		p.do("becoming a desktop", chromedp.EmulateViewport(1280, 800))
	}
	scheme := "dark"
	if opts.light {
		scheme = "light"
	}
	forced := "none"
	if opts.forced {
		forced = "active"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "forced-colors", Value: forced}},
	})
	p.check("choosing colours", err)
}

func (p *tab) check(doing string, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", doing, err)
	}
}

func (p *tab) do(doing string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	err := p.bounded(func(ctx context.Context) error { return chromedp.Do(ctx, steps...) })
	p.check(doing, err)
}

func (p *tab) bounded(run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return run(ctx)
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	var value T
	err := p.bounded(func(ctx context.Context) (err error) {
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		return err
	})
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", expression, err, p.text())
	}
	return value
}

// waitFor waits until an expression is true, looking at each change of the page.
func (p *tab) waitFor(expression string) {
	p.t.Helper()
	eval[bool](p, `new Promise((done) => {
		const observer = new MutationObserver(look);
		function look() {
			if (!(`+expression+`)) return;
			observer.disconnect();
			done(true);
		}
		observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		look();
	})`)
}

// waitForText waits until a text stands in an element.
func (p *tab) waitForText(selector, text string) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.textContent.includes(%s))`, quote(selector), quote(text)))
}

// poll makes the page ask the server now, as it does when the network returns.
func (p *tab) poll() {
	p.t.Helper()
	p.run(`window.dispatchEvent(new Event('online'))`)
}

// text returns what the page shows, for a report.
func (p *tab) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// write puts a text into the field and sends it by the Enter key.
func (p *tab) write(text string) {
	p.t.Helper()
	p.fill(text)
	p.do("pressing Enter", enter)
}

// fill replaces what stands in the field.
func (p *tab) fill(text string) {
	p.t.Helper()
	p.run(`const field = document.getElementById('text'); field.focus(); field.select()`)
	if text == "" {
		p.press(kb.Backspace)
		return
	}
	p.do("writing", insert(text))
}

func (p *tab) press(keys string) {
	p.t.Helper()
	p.do("pressing a key", chromedp.KeyEvent(keys))
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.do("clicking "+selector, chromedp.Click(selector, chromedp.NodeVisible))
}

// messages returns the texts of the transcript, in their order, without those
// that are not acknowledged.
func (p *tab) messages() []string {
	p.t.Helper()
	return eval[[]string](p, `[...document.querySelectorAll('.message:not(.pending) .text')].map((e) => e.textContent)`)
}

// picture writes a screenshot into the directory of RELAY_PICTURES, if it is set.
func (p *tab) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("RELAY_PICTURES")
	if dir == "" {
		return
	}
	var png []byte
	err := p.bounded(func(ctx context.Context) (err error) {
		png, err = chromedp.Run(ctx, chromedp.CaptureScreenshot())
		return err
	})
	p.check("taking a picture", err)
	writeFile(p.t, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"), string(png))
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a form in JSON
	}
	return string(quoted)
}

// reload loads the page again and waits as open does.
func (p *tab) reload() {
	p.t.Helper()
	p.do("reloading", chromedp.Reload())
	p.waitFor(`document.getElementById('connection')?.dataset.state !== 'connecting'`)
}

// run runs a statement in the page.
func (p *tab) run(statement string) {
	p.t.Helper()
	eval[bool](p, `(() => { `+statement+`; return true; })()`)
}

// insert enters a text as an input method or the clipboard does, all at once.
func insert(text string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	}
}

// enter presses the key in one event, as a keyboard does, so that a page that
// takes the key keeps the character out of the field.
func enter(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
	if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, key); err != nil {
		return chromedp.Void{}, err
	}
	key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
	_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, key)
	return chromedp.Void{}, err
}

// noStorage are the preferences of a profile that forbids sites to store
// anything.
const noStorage = `{"profile":{"default_content_setting_values":{"cookies":2}}}`
