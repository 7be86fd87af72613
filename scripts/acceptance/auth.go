package main

import (
	"net/http"
	"os"
	"strings"
)

// authCases judge the token and what is derived from it (section 1).
func authCases() []testCase {
	cases := []testCase{
		{
			name:  "auth/thread-vectors",
			wants: "A thread id is the first 16 hex digits of SHA-256 over the token's 64 characters, section 1.",
			judge: judgeThreadVectors,
		},
		{
			name:  "auth/token-in-query",
			wants: "The token counts in its header only, never in a URL, section 1.",
			judge: func(t *trial) {
				query := "?token=" + randomToken() + "&X-Chat-Token=" + randomToken()
				t.wantError(t.do(call{method: http.MethodGet, path: t.pollPath() + query}), http.StatusUnauthorized, "bad_token")
			},
		},
		{
			name:  "auth/no-file",
			wants: "A refused token leaves no trace on disk, section 2.",
			needs: needRoot,
			judge: judgeRefusedTokenLeavesNothing,
		},
	}
	for name, tokens := range badTokens() {
		cases = append(cases, testCase{
			name:  "auth/" + name,
			wants: "Anything but one header of exactly 64 lower-case hex digits is 401 bad_token, section 1.",
			judge: func(t *trial) { t.wantBadToken(tokens) },
		})
	}
	return sorted(cases)
}

// badTokens returns values of the token header that are refused, by name.
func badTokens() map[string][]string {
	good := randomToken()
	return map[string][]string{
		"missing":         nil,
		"empty":           {""},
		"too-short":       {good[1:]},
		"too-long":        {good + "0"},
		"upper-case":      {strings.Repeat("ABCDEF0123456789", 4)},
		"one-upper-case":  {good[:63] + "A"},
		"not-hex":         {good[:63] + "g"},
		"thread-id":       {threadOf(good)},
		"repeated":        {good, randomToken()},
		"repeated-same":   {good, good},
		"repeated-empty":  {good, ""},
		"two-in-one-line": {good + ", " + good},
		"quoted":          {`"` + good + `"`},
	}
}

func (t *trial) wantBadToken(tokens []string) {
	poll := call{method: http.MethodGet, path: t.pollPath(), tokens: tokens}
	t.wantError(t.do(poll), http.StatusUnauthorized, "bad_token")
	post := t.postCall("", strings.NewReader(textBody("hello")))
	post.tokens = tokens
	t.wantError(t.do(post), http.StatusUnauthorized, "bad_token")
}

func judgeThreadVectors(t *trial) {
	for token, thread := range map[string]string{
		strings.Repeat("0", 64):                               "60e05bd1b195af2f",
		strings.Repeat("f", 64):                               "df0790f236013511",
		strings.Repeat("00112233445566778899aabbccddeeff", 2): "2a8abfa8cb990629",
	} {
		a := t.do(t.pollCall(token, ""))
		t.wantStatus(a, http.StatusOK)
		if got := t.decoded(a.asked, a.body).Thread; got != thread {
			t.errorf("the token %s… has the thread %q instead of %q", token[:8], got, thread)
		}
	}
}

func judgeRefusedTokenLeavesNothing(t *trial) {
	before := t.listing()
	for _, tokens := range badTokens() {
		t.wantBadToken(tokens)
	}
	t.sameListing(before)
}

// listing returns the names in the server's thread directory.
func (t *trial) listing() []string {
	entries, err := os.ReadDir(t.tree().chatDir())
	t.must(err)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// sameListing checks that the thread directory holds the same names as before.
func (t *trial) sameListing(before []string) {
	if now := t.listing(); strings.Join(now, "\n") != strings.Join(before, "\n") {
		t.errorf("the thread directory held %d names and now holds %d", len(before), len(now))
	}
}
