package sandbox

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// Ensures that a frame is read as it was written.
func TestFrameRoundTrip(t *testing.T) {
	t.Parallel()
	var pipe bytes.Buffer
	want := request{ID: 7, Op: opSearch, Path: "docs/日本語", Pattern: "\"\\\n<>", Regexp: true, BudgetMS: 5000}
	for range 2 {
		if err := writeFrame(&pipe, want); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		var got request
		if err := readFrame(&pipe, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if err := readFrame(&pipe, new(request)); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last frame: %v, want EOF", err)
	}
}

// Ensures that what is not a frame is an error, and that a length is not
// believed before it is checked.
func TestFrameRefusals(t *testing.T) {
	t.Parallel()
	frame := func(body string) string { return string([]byte{0, 0, 0, byte(len(body))}) + body }
	for name, stream := range map[string]string{
		"cut length":     "\x00\x00",
		"cut body":       "\x00\x00\x00\x09{}",
		"huge length":    "\xff\xff\xff\xff{}",
		"no JSON":        frame("hello"),
		"empty":          frame(""),
		"two values":     frame("{}{}"),
		"unknown member": frame(`{"idd":1}`),
		"twice":          frame(`{"id":1,"id":2}`),
		"other case":     frame(`{"ID":1}`),
		"wrong type":     frame(`{"id":"1"}`),
		"negative":       frame(`{"id":-1}`),
		"invalid UTF-8":  frame("{\"op\":\"\xff\"}"),
		"lone surrogate": frame(`{"op":"\ud800"}`),
	} {
		if err := readFrame(strings.NewReader(stream), new(request)); err == nil || errors.Is(err, io.EOF) && name != "cut length" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := writeFrame(io.Discard, strings.Repeat("x", maxFrame)); err == nil {
		t.Error("a frame over the limit is written")
	}
}

// Ensures that no bytes from a child make the parent panic.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\x00\x00\x00\x24{\"id\":1,\"listing\":{\"entries\":[null]}}"))
	f.Fuzz(func(_ *testing.T, stream []byte) {
		var resp response
		if readFrame(bytes.NewReader(stream), &resp) != nil {
			return
		}
		limits, err := Limits{}.withDefaults()
		if err != nil {
			panic(err)
		}
		for _, op := range []string{opList, opRead, opSearch} {
			_ = vet(limits, []rootSetup{{Name: "docs"}}, request{ID: resp.ID, Op: op, Path: "docs/a"}, resp)
		}
	})
}
