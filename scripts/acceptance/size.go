package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// sizeCases judge the two limits of a post's size (sections 2 and 3).
func sizeCases() []testCase {
	var cases []testCase
	for name, char := range map[string]string{"ascii": "a", "two-byte": "é", "three-byte": "界", "astral": "😀"} {
		cases = append(cases, testCase{
			name:  "post/accepts-4000-" + name,
			wants: "A text of exactly 4000 code points is accepted, however many bytes each has, section 3.",
			judge: func(t *trial) {
				token, text := t.token(), strings.Repeat(char, textLimit)
				t.post(token, text)
				t.wantTexts(token, text)
			},
		}, testCase{
			name:  "post/too-long-4001-" + name,
			wants: "A text of 4001 code points is 413 too_long and not shortened, sections 2 and 3.",
			judge: func(t *trial) { t.wantTooLong(strings.Repeat(char, textLimit+1)) },
		})
	}
	cases = append(cases, testCase{
		name:  "post/counts-scalar-values",
		wants: "A code point is a scalar value: combining marks and joined emoji count each of theirs, section 3.",
		judge: judgeScalarValues,
	})
	return append(sorted(cases), bodySizeCases()...)
}

func (t *trial) wantTooLong(text string) {
	token := t.token()
	t.wantError(t.postBody(token, textBody(text)), http.StatusRequestEntityTooLarge, "too_long")
	t.stayedEmpty(token)
}

func judgeScalarValues(t *trial) {
	family := "👨\u200d👩\u200d👧\u200d👦" // seven scalar values
	marked := "e\u0301"                // two
	for _, unit := range []string{family, marked} {
		n := textLimit / len([]rune(unit))
		full := strings.Repeat(unit, n)
		full += strings.Repeat("x", textLimit-len([]rune(full)))
		token := t.token()
		t.post(token, full)
		t.wantTexts(token, full)
		t.wantTooLong(full + "x")
	}
}

// bodySizeCases judge the limit of the body, however it is framed.
func bodySizeCases() []testCase {
	return []testCase{
		{
			name:  "post/accepts-32768-bytes",
			wants: "A body of exactly 32 KB is accepted, section 2.",
			judge: func(t *trial) {
				token := t.token()
				t.receipt(token, t.postBody(token, paddedBody(bodyLimit)))
			},
		},
		{
			name:  "post/accepts-chunked",
			wants: "A body may be chunked as long as it is within 32 KB, section 2.",
			judge: func(t *trial) {
				token := t.token()
				t.receipt(token, t.do(t.postCall(token, io.MultiReader(strings.NewReader(paddedBody(bodyLimit))))))
			},
		},
		{
			name:  "post/too-large-32769-bytes",
			wants: "A body of one byte over 32 KB is 413 too_large, section 2.",
			judge: func(t *trial) {
				token := t.token()
				t.wantTooLarge(token, t.postBody(token, paddedBody(bodyLimit+1)))
			},
		},
		{
			name:  "post/too-large-chunked",
			wants: "A chunked body over 32 KB is 413 too_large, section 2.",
			judge: func(t *trial) {
				token := t.token()
				body := io.MultiReader(strings.NewReader(paddedBody(bodyLimit + 1)))
				t.wantTooLarge(token, t.do(t.postCall(token, body)))
			},
		},
		{
			name:  "post/too-large-chunked-without-end",
			wants: "A chunked body is refused as soon as it is over 32 KB, without reading on, section 2.",
			judge: judgeChunkedWithoutEnd,
		},
		{
			name:  "post/too-large-declared",
			wants: "A body of a declared 10 GB is 413 too_large without a byte of it being read, section 2.",
			judge: func(t *trial) { t.wantTooLargeUnread(nil) },
		},
		{
			name:  "post/too-large-expect-continue",
			wants: "A client that asks before it sends 10 GB is told 413 too_large, not to continue, section 2.",
			judge: func(t *trial) { t.wantTooLargeUnread([]string{"100-continue"}) },
		},
		{
			name:  "post/too-large-is-heard",
			wants: "A client in the middle of a large upload still reads the 413, section 2.",
			judge: judgeTooLargeIsHeard,
		},
	}
}

// paddedBody returns a good body of n bytes.
func paddedBody(n int) string {
	const head, tail = `{"text":"a","padding":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func (t *trial) wantTooLarge(token string, a answer) {
	t.wantError(a, http.StatusRequestEntityTooLarge, "too_large")
	t.stayedEmpty(token)
}

// wantTooLargeUnread declares a huge body and sends nothing of it.
func (t *trial) wantTooLargeUnread(expect []string) {
	token := t.token()
	c := t.postCall(token, nil)
	c.header.Set("Content-Length", strconv.Itoa(10<<30))
	if expect != nil {
		c.header["Expect"] = expect
	}
	t.wantTooLarge(token, t.doRaw(c))
}

// judgeChunkedWithoutEnd sends the chunks of a body that is too large, but not
// the one that ends it.
func judgeChunkedWithoutEnd(t *trial) {
	token := t.token()
	size := bodyLimit + 1
	c := t.postCall(token, strings.NewReader(strconv.FormatInt(int64(size), 16)+"\r\n"+paddedBody(size)+"\r\n"))
	c.header.Set("Transfer-Encoding", "chunked")
	t.wantTooLarge(token, t.doRaw(c))
}

func judgeTooLargeIsHeard(t *trial) {
	const size = 8 << 20
	for range 5 {
		token := t.token()
		c := t.postCall(token, io.LimitReader(endless('x'), size))
		c.header.Set("Content-Length", strconv.Itoa(size))
		t.wantTooLarge(token, t.doRaw(c))
	}
}

// endless is a reader of one byte without end.
type endless byte

// Read fills p.
func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}
