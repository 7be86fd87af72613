package main

import (
	"net/http"
	"strings"
)

// refusedBodyCases judge the bodies that are 400 bad_request (section 3).
func refusedBodyCases() []testCase {
	var cases []testCase
	for name, row := range refusedBodies() {
		cases = append(cases, testCase{
			name:  "post/refuses-" + name,
			wants: row.wants,
			judge: func(t *trial) {
				token := t.token()
				o := t.wantError(t.postBody(token, row.body), http.StatusBadRequest, "bad_request")
				t.wantNamed(o, row.field)
				t.stayedEmpty(token)
			},
		})
	}
	for name, value := range map[string]string{
		"text-plain": "text/plain",
		"form":       "application/x-www-form-urlencoded",
		"multipart":  "multipart/form-data; boundary=x",
		"json-like":  "application/jsonx",
		"malformed":  "application",
	} {
		cases = append(cases, testCase{
			name:  "post/refuses-content-type-" + name,
			wants: "A Content-Type other than application/json is 400 bad_request and named, section 3.",
			judge: func(t *trial) { t.wantContentTypeRefused(value) },
		})
	}
	return sorted(cases)
}

func (t *trial) wantContentTypeRefused(value string) {
	token := t.token()
	c := t.postCall(token, strings.NewReader(textBody("hello")))
	c.header = http.Header{"Content-Type": {value}}
	o := t.wantError(t.do(c), http.StatusBadRequest, "bad_request")
	t.wantNamed(o, "content-type")
	t.stayedEmpty(token)
}

// wantNamed checks that the error names the field that it is about.
func (t *trial) wantNamed(o object, field string) {
	text, _ := member[string](o, "error")
	if !strings.Contains(strings.ToLower(text), field) {
		t.errorf("the error %q does not name %s", text, field)
	}
}

// refusedBody is a body that is refused, and the field that the error names, if
// it is about one.
type refusedBody struct{ body, field, wants string }

// refusedBodies returns bodies that are refused, by name.
func refusedBodies() map[string]refusedBody {
	rows := map[string]refusedBody{}
	add := func(field, wants string, bodies map[string]string) {
		for name, body := range bodies {
			rows[name] = refusedBody{body, field, wants}
		}
	}
	add("", "A body that is not one JSON object is 400 bad_request, section 3.", map[string]string{
		"nothing":           "",
		"blank":             " \n",
		"not-json":          "hello",
		"half-json":         `{"text":"a"`,
		"single-quotes":     `{'text':'a'}`,
		"comment":           `{"text":"a"/**/}`,
		"trailing-comma":    `{"text":"a",}`,
		"form":              "text=a",
		"array":             `[{"text":"a"}]`,
		"string":            `"a"`,
		"number":            "1",
		"true":              "true",
		"null":              "null",
		"deep-array":        strings.Repeat("[", 16000) + strings.Repeat("]", 16000),
		"second-object":     `{"text":"a"}{"text":"b"}`,
		"trailing-word":     `{"text":"a"} junk`,
		"trailing-brace":    `{"text":"a"}}`,
		"raw-line-break":    "{\"text\":\"a\nb\"}",
		"raw-control":       "{\"text\":\"a\x01b\"}",
		"unknown-escape":    `{"text":"\x41"}`,
		"invalid-elsewhere": "{\"text\":\"a\",\"x\":\"\xff\"}",
	})
	add("text", "A text that is missing, not a string, empty or only white space is 400 bad_request and named, section 3.", map[string]string{
		"no-text":         `{}`,
		"only-kind":       `{"kind":"agent"}`,
		"text-null":       `{"text":null}`,
		"text-number":     `{"text":5}`,
		"text-bool":       `{"text":true}`,
		"text-array":      `{"text":["a"]}`,
		"text-object":     `{"text":{"text":"a"}}`,
		"text-empty":      `{"text":""}`,
		"text-blank":      `{"text":" \t\r\n"}`,
		"text-wide-blank": textBody("\u3000\u00a0\u2003\u2028"),
	})
	add("text", "A text that stands twice is 400 bad_request and named, section 3.", map[string]string{
		"text-twice":           `{"text":"a","text":"b"}`,
		"text-twice-same":      `{"text":"a","kind":"agent","text":"a"}`,
		"text-twice-by-escape": `{"text":"a","te\u0078t":"b"}`,
	})
	add("", "Unpaired surrogates and invalid UTF-8 are 400 bad_request, never replaced, section 3.", map[string]string{
		"high-surrogate":      `{"text":"a\ud83d"}`,
		"low-surrogate":       `{"text":"\ude00a"}`,
		"turned-surrogates":   `{"text":"\ude00\ud83d"}`,
		"two-high-surrogates": `{"text":"\ud83d\ud83d\ude00"}`,
		"surrogate-then-text": `{"text":"\ud83dx"}`,
		"byte-ff":             "{\"text\":\"a\xff\"}",
		"lone-continuation":   "{\"text\":\"\x80\"}",
		"cut-sequence":        "{\"text\":\"\xf0\x9f\x98\"}",
		"overlong":            "{\"text\":\"\xc0\xaf\"}",
		"encoded-surrogate":   "{\"text\":\"\xed\xa0\xbd\xed\xb8\x80\"}",
		"beyond-unicode":      "{\"text\":\"\xf4\x90\x80\x80\"}",
	})
	add("kind", "A kind other than operator and agent is 400 bad_request and named, section 3.", map[string]string{
		"kind-hermes":     `{"text":"a","kind":"hermes"}`,
		"kind-empty":      `{"text":"a","kind":""}`,
		"kind-upper-case": `{"text":"a","kind":"Operator"}`,
		"kind-spaced":     `{"text":"a","kind":" agent"}`,
		"kind-unknown":    `{"text":"a","kind":"system"}`,
		"kind-null":       `{"text":"a","kind":null}`,
		"kind-number":     `{"text":"a","kind":1}`,
		"kind-array":      `{"text":"a","kind":["agent"]}`,
	})
	return rows
}
