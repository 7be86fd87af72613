package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
)

// The hidden arguments of the test binary's own children.
const (
	attackArg = "test-attacker"
	ownerArg  = "test-owner"
	eaterArg  = "test-eater"
	writerArg = "test-writer"
	lieArg    = "test-liar-" // followed by the name of a lie
)

// runTestChildIfAsked is RunChildIfAsked for children that misbehave. They end
// the process without a word where something goes wrong: that is noticed.
func runTestChildIfAsked(args []string) {
	if len(args) != 2 {
		return
	}
	switch {
	case args[1] == attackArg:
		attackFromWithin()
	case args[1] == ownerArg:
		own()
	case args[1] == eaterArg:
		eat()
	case args[1] == writerArg:
		write()
	case strings.HasPrefix(args[1], lieArg):
		lie(strings.TrimPrefix(args[1], lieArg))
	default:
		return
	}
	os.Exit(0)
}

// attackFromWithin confines the process just as a reader's child is, and then
// runs the attacker.
func attackFromWithin() {
	if _, err := enter(os.Stdin, os.Stdout); err != nil {
		return
	}
	var plan target
	if err := readFrame(os.Stdin, &plan); err != nil {
		return
	}
	a := attacker{target: plan}
	_ = writeFrame(os.Stdout, a.attack())
	// What stays open may not be closed before the parent has looked.
	_ = readFrame(os.Stdin, &plan)
}

// eat confines the process and lets the Go runtime have all the memory there is
// for the first request.
func eat() {
	if _, err := enter(os.Stdin, os.Stdout); err != nil {
		return
	}
	var req request
	if err := readFrame(os.Stdin, &req); err != nil {
		return
	}
	var kept [][]byte
	for range 1024 {
		kept = append(kept, bytes.Repeat([]byte("x"), mib))
	}
	_ = writeFrame(os.Stdout, response{ID: req.ID, Listing: &Listing{Entries: []Entry{{Size: int64(len(kept))}}}})
}

// write sets the limits alone and writes to what it has for standard output.
func write() {
	var s setup
	if err := readFrame(os.Stdin, &s); err != nil {
		return
	}
	if err := limitResources(s); err != nil {
		return
	}
	if _, err := fmt.Print("more than nothing"); err != nil {
		os.Exit(1)
	}
}

// lies are what a child may answer to a request for "docs/a.md" or "docs" with
// the id 1 instead of the truth.
func lies() map[string]string {
	long := strings.Repeat("x", maxResult)
	excerpt := func(members string) string { return `{"id":1,"excerpt":{"path":"docs/a.md",` + members + `}}` }
	return map[string]string{
		"garbage":        "this is not a frame at all",
		"huge":           "\xff\xff\xff\xff",
		"cut":            "\x00\x00\x00\x20{",
		"silence":        "",
		"no JSON":        framed("hello"),
		"wrong id":       framed(`{"id":2,"code":"not_readable"}`),
		"nothing":        framed(`{"id":1}`),
		"two results":    framed(`{"id":1,"listing":{"entries":[]},"excerpt":{"path":"docs/a.md","first_line":1,"last_line":0,"total_lines":0,"text":""}}`),
		"code, result":   framed(`{"id":1,"code":"not_readable","listing":{"entries":[]}}`),
		"another result": framed(`{"id":1,"matches":{"matches":[],"files":0}}`),
		"unknown code":   framed(`{"id":1,"code":"root"}`),
		"unknown member": framed(`{"id":1,"code":"not_readable","shell":"sh"}`),
		"another file":   framed(`{"id":1,"excerpt":{"path":"docs/b.md","first_line":1,"last_line":1,"total_lines":1,"text":"x"}}`),
		"other lines":    framed(excerpt(`"first_line":2,"last_line":2,"total_lines":2,"text":"x"`)),
		"line count":     framed(excerpt(`"first_line":1,"last_line":1,"total_lines":1,"text":"x\ny"`)),
		"escape":         framed(excerpt(`"first_line":1,"last_line":1,"total_lines":1,"text":"\u001b[2J"`)),
		"hidden":         framed(excerpt(`"first_line":1,"last_line":1,"total_lines":1,"text":"\u202e"`)),
		"invalid UTF-8":  framed(excerpt("\"first_line\":1,\"last_line\":1,\"total_lines\":1,\"text\":\"\xff\"")),
		"too long":       framed(excerpt(`"first_line":1,"last_line":1,"total_lines":1,"text":"` + long + `x"`)),
		"negative":       framed(excerpt(`"first_line":1,"last_line":0,"total_lines":-1,"text":""`)),
	}
}

// listLies are the same for a listing.
func listLies() map[string]string {
	listing := func(entries string) string { return framed(`{"id":1,"listing":{"entries":[` + entries + `]}}`) }
	return map[string]string{
		"path outside":   listing(`{"path":"../../etc/passwd"}`),
		"absolute path":  listing(`{"path":"/etc/passwd"}`),
		"unknown root":   listing(`{"path":"etc/passwd"}`),
		"closed name":    listing(`{"path":"docs/.env"}`),
		"hidden name":    listing(`{"path":"docs/a\u202eb"}`),
		"negative size":  listing(`{"path":"docs/a.md","size":-1}`),
		"sized dir":      listing(`{"path":"docs/a","dir":true,"size":1}`),
		"too many":       listing(strings.TrimSuffix(strings.Repeat(`{"path":"docs/a.md"},`, 501), ",")),
		"too many bytes": listing(strings.TrimSuffix(strings.Repeat(`{"path":"docs/`+strings.Repeat("a", 200)+`"},`, 400), ",")),
	}
}

func framed(body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

// lie says that all is well, reads one request and lies.
func lie(name string) {
	var s setup
	if err := readFrame(os.Stdin, &s); err != nil {
		return
	}
	switch name {
	case "broken":
		_ = writeFrame(os.Stdout, ready{Broken: []string{promiseExec}})
		return
	case "failed":
		_ = writeFrame(os.Stdout, ready{Error: "no \x1b[2Jluck"})
		return
	}
	_ = writeFrame(os.Stdout, ready{})
	var req request
	if err := readFrame(os.Stdin, &req); err != nil {
		return
	}
	if name == "hang" {
		_ = readFrame(os.Stdin, &req)
		return
	}
	answer, ok := lies()[name]
	if !ok {
		answer = listLies()[name]
	}
	fmt.Print(answer)
}
