package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// elsewhere returns the URL of the plain host for a server of this machine.
func elsewhere(url string) string { return strings.Replace(url, "127.0.0.1", plainHost, 1) }

// Ensures that the page works without TLS on a host that is not the browser's
// own, where browsers offer neither digests nor locks.
func TestPage_PlainHTTP(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	p := newBrowser(t).open(t, elsewhere(r.url), tabOptions{})
	if eval[bool](p, `isSecureContext || crypto.subtle !== undefined`) {
		t.Fatal("the browser takes the page for a secure one")
	}
	p.write("hello")
	p.waitForText(".operator:not(.pending) .text", "hello")
	r.reply(t, "hi")
	p.poll()
	p.waitForText(".hermes .text", "hi")
	p.reload()
	p.waitForText(".hermes .text", "hi")
}

// Ensures that a page of another host whose origin the operator allowed can
// import the module and talk, and that one that he did not cannot.
func TestModule_OnAPageOfAnotherHost(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	t.Cleanup(host.Close)
	const talk = `const { createChat } = await import(base + '/hermes-chat.js');
		const chat = createChat({ base });
		await chat.send('from afar');
		return (await chat.poll()).messages.map((m) => m.text);`
	for _, row := range []struct {
		origin string
		want   []string
	}{
		{host.URL, []string{"from afar"}},
		{"https://other.example", []string{"network"}},
	} {
		r := startRelayd(t, "RELAYD_HTTP_ALLOWED_ORIGINS="+row.origin)
		p := newBrowser(t).open(t, host.URL, tabOptions{bare: true, refusals: true})
		got := eval[[]string](p, `(async (base) => { try { `+talk+` } catch (error) { return [error.code]; } })('`+r.url+`')`)
		if !slices.Equal(got, row.want) {
			t.Errorf("with %s allowed a page of %s gets %q, want %q", row.origin, host.URL, got, row.want)
		}
	}
}
