package jsonbody_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/jsonbody"
)

type role struct {
	Name string `json:"name"`
}

type body struct {
	Name  jsonbody.Optional[string]          `json:"name"`
	On    jsonbody.Optional[bool]            `json:"on"`
	Count jsonbody.Optional[int]             `json:"count"`
	IDs   jsonbody.Optional[[]string]        `json:"ids"`
	Roles jsonbody.Optional[map[string]role] `json:"roles"`
}

// Ensures that only one well-formed JSON value is taken for JSON: nothing behind
// it, no member twice, no half of a character.
func TestIsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, " \r\n\t": true, `{}`: true, ` {"a":1} `: true, `[]`: true, `null`: true, `"x"`: true,
		`{`: false, `{}{}`: false, `{} x`: false, `{"a":1,"a":2}`: false, `{"a":{"b":1,"b":1}}`: false,
		"{\"a\":\"\xff\"}": false, `{"a":"\ud83d"}`: false, `{'a':1}`: false, `{"a":01}`: false, `{"a":NaN}`: false,
		"\xef\xbb\xbf{}": false, strings.Repeat("[", 20000): false,
	} {
		if got := jsonbody.IsJSON([]byte(text)); got != want {
			t.Errorf("IsJSON(%.40q) = %v", text, got)
		}
	}
}

// Ensures that an absent member is told from an empty one (section 3).
func TestDecode_AbsentIsNotEmpty(t *testing.T) {
	t.Parallel()
	var got body
	if err := jsonbody.Decode([]byte(`{"name":"","on":false,"ids":[]}`), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Name.Set || !got.On.Set || !got.IDs.Set || got.Count.Set || got.Roles.Set {
		t.Errorf("decoded %+v", got)
	}
	var empty body
	if err := jsonbody.Decode([]byte(" "), &empty); err != nil || empty.Name.Set {
		t.Errorf("an empty body gives %+v, %v", empty, err)
	}
}

// Ensures that each violation names its field and says why (section 1.8).
func TestDecode_Violations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                             "body: 须为对象",
		`null`:                           "body: 须为对象",
		`"x"`:                            "body: 须为对象",
		`{"name":null}`:                  "name: 不能为 null",
		`{"name":5}`:                     "name: 须为字符串",
		`{"on":"true"}`:                  "on: 须为布尔值",
		`{"count":1.5}`:                  "count: 须为整数",
		`{"count":"1"}`:                  "count: 须为整数",
		`{"ids":"x"}`:                    "ids: 须为数组",
		`{"ids":[1]}`:                    "ids.0: 须为字符串",
		`{"roles":[]}`:                   "roles: 须为对象",
		`{"ids":["x",null]}`:             "ids.1: 不能为 null",
		`{"roles":{"a":{"name":null}}}`:  "roles.a.name: 不能为 null",
		`{"roles":{"a":{"name":1}}}`:     "roles.a.name: 须为字符串",
		`{"roles":{"a":{"other":1}}}`:    "roles.a.other: 不支持的字段",
		`{"nodeId":"x"}`:                 "nodeId: 不支持的字段",
		`{"Name":"x"}`:                   "Name: 不支持的字段",
		`{"name":"x","NAME":"y"}`:        "NAME: 不支持的字段",
		`{"count":99999999999999999999}`: "count: 须为整数",
	} {
		err := jsonbody.Decode([]byte(text), new(body))
		if err == nil || err.Error() != want {
			t.Errorf("%s gives %v, want %s", text, err, want)
		}
	}
}

// Ensures that a name that a client made up is not said back at any length.
func TestDecode_CutsLongNames(t *testing.T) {
	t.Parallel()
	err := jsonbody.Decode([]byte(`{"`+strings.Repeat("界", 5000)+`":1}`), new(body))
	if err == nil || len(err.Error()) > 200 || !utf8.ValidString(err.Error()) {
		t.Errorf("the error is %v", err)
	}
}

// Ensures that violations are listed in order, and that none is no error.
func TestViolations(t *testing.T) {
	t.Parallel()
	var v jsonbody.Violations
	v.Require("there", true)
	if err := v.Err(); err != nil {
		t.Errorf("no violation is the error %v", err)
	}
	v.Require("name", false)
	v.Add("count", "须为 1–8")
	if diff := cmp.Diff("name: 必填; count: 须为 1–8", v.Err().Error()); diff != "" {
		t.Error(diff)
	}
}

// Ensures that no body makes the decoder panic or fail in another way.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":"x"}`, `{"roles":{"a":{"name":"b"}}}`, `{"ids":[null]}`, `[`, `{"name":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !jsonbody.IsJSON(data) {
			return
		}
		err := jsonbody.Decode(data, new(body))
		var v jsonbody.Violations
		if err != nil && (!errors.As(err, &v) || len(v) != 1 || v[0].Field == "" || v[0].Reason == "") {
			t.Errorf("%q gives %v", data, err)
		}
	})
}
