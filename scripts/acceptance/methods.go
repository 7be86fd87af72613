package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// methodCases judge the methods of the two routes and the order in which a post
// is checked (sections 2 and 6).
func methodCases() []testCase {
	var cases []testCase
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
		cases = append(cases, testCase{
			name:  "method/post-by-" + strings.ToLower(method),
			wants: "Any method but POST is 405 method with Allow: POST, whatever the token, sections 2 and 6.",
			judge: func(t *trial) { t.wantMethodRefused(method, t.postPath(), "POST") },
		})
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
		cases = append(cases, testCase{
			name:  "method/poll-by-" + strings.ToLower(method),
			wants: "Any method but GET and HEAD is 405 method with Allow: GET, HEAD, whatever the token, sections 2 and 6.",
			judge: func(t *trial) { t.wantMethodRefused(method, t.pollPath(), "GET", "HEAD") },
		})
	}
	return append(cases, testCase{
		name:  "method/foreign-origin",
		wants: "A page of an origin that is not allowed gets no Access-Control-Allow-Origin, section 6.",
		judge: judgeForeignOrigin,
	})
}

// wantMethodRefused calls with a good token and without one.
func (t *trial) wantMethodRefused(method, path string, allowed ...string) {
	for _, tokens := range [][]string{{randomToken()}, nil} {
		a := t.do(call{method: method, path: path, tokens: tokens})
		if method == http.MethodHead {
			t.wantStatus(a, http.StatusMethodNotAllowed)
		} else {
			t.wantError(a, http.StatusMethodNotAllowed, "method")
		}
		if got := allowedMethods(a); !slices.Equal(got, allowed) {
			t.errorf("%s: Allow is %q instead of %q", a.asked, got, allowed)
		}
	}
}

// allowedMethods returns what Allow lists, in alphabetical order.
func allowedMethods(a answer) []string {
	var methods []string
	for name := range strings.SplitSeq(strings.Join(a.header.Values("Allow"), ","), ",") {
		methods = append(methods, strings.TrimSpace(name))
	}
	slices.Sort(methods)
	return methods
}

func judgeForeignOrigin(t *trial) {
	c := t.pollCall(t.token(), "")
	c.header = http.Header{"Origin": {"https://foreign.example"}}
	a := t.do(c)
	t.wantStatus(a, http.StatusOK)
	if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
		t.errorf("a foreign origin got Access-Control-Allow-Origin %q", got)
	}
}

// orderCases judge which refusal comes first when two would do.
func orderCases() []testCase {
	return []testCase{
		{
			name:  "order/token-before-size",
			wants: "A bad token is 401 even with a body that is too large, section 2.",
			judge: func(t *trial) {
				c := t.postCall("", strings.NewReader(strings.Repeat("x", bodyLimit+1)))
				t.wantError(t.do(c), http.StatusUnauthorized, "bad_token")
			},
		},
		{
			name:  "order/token-before-json",
			wants: "A bad token is 401 even with a body that is not JSON, section 2.",
			judge: func(t *trial) { t.wantError(t.postBody("", "{"), http.StatusUnauthorized, "bad_token") },
		},
		{
			name:  "order/size-before-json",
			wants: "A body that is too large is 413 too_large even when it is not JSON, section 2.",
			judge: func(t *trial) {
				a := t.postBody(t.token(), strings.Repeat("x", bodyLimit+1))
				t.wantError(a, http.StatusRequestEntityTooLarge, "too_large")
			},
		},
		{
			name:  "order/size-before-length",
			wants: "A body that is too large is 413 too_large even when its text is too long as well, section 2.",
			judge: func(t *trial) {
				a := t.postBody(t.token(), textBody(strings.Repeat("x", bodyLimit)))
				t.wantError(a, http.StatusRequestEntityTooLarge, "too_large")
			},
		},
		{
			name:  "order/body-before-limits",
			wants: "A body that is refused is so even when a window is full, section 2.",
			judge: judgeBodyBeforeLimits,
		},
	}
}

func judgeBodyBeforeLimits(t *trial) {
	token := t.token()
	t.postMany(token, threadPosts)
	t.wantError(t.postBody(token, "{"), http.StatusBadRequest, "bad_request")
	t.wantError(t.postBody(token, textBody(strings.Repeat("x", textLimit+1))), http.StatusRequestEntityTooLarge, "too_long")
	t.wantError(t.do(t.postCall(token, io.LimitReader(endless('x'), bodyLimit+1))), http.StatusRequestEntityTooLarge, "too_large")
	t.wantError(t.postBody(token, textBody("one more")), http.StatusTooManyRequests, "rate_limited")
}
