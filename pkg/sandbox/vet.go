package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/newos4/relay/pkg/untrusted"
)

// maxDetail is the most code points of a child's words that an error repeats.
const maxDetail = 300

// vet checks that a response is one that an honest child could have given: the
// answer to this request, within every limit, of text that is safe to pass on.
// Anything else comes from a child that is broken or was taken over.
func vet(limits Limits, roots []rootSetup, req request, resp response) error {
	if err := vetShape(req, resp); err != nil {
		return fmt.Errorf("%w: %w", ErrChild, err)
	}
	v := vetter{limits: limits, room: limits.ResultBytes, roots: roots}
	switch {
	case resp.Listing != nil:
		v.listing(*resp.Listing)
	case resp.Excerpt != nil:
		v.excerpt(req, *resp.Excerpt)
	case resp.Matches != nil:
		v.matches(*resp.Matches)
	}
	if v.err != nil {
		return fmt.Errorf("%w: %w", ErrChild, v.err)
	}
	return nil
}

// vetShape checks that there is one answer and that it is to this request.
func vetShape(req request, resp response) error {
	if resp.ID != req.ID {
		return errors.New("it answered another request")
	}
	if resp.Code != "" {
		if _, ok := refusals()[resp.Code]; !ok {
			return errors.New("it gave an unknown code")
		}
	}
	got := []bool{resp.Code != "", resp.Listing != nil, resp.Excerpt != nil, resp.Matches != nil}
	want := []bool{false, req.Op == opList, req.Op == opRead, req.Op == opSearch}
	refusal := []bool{true, false, false, false}
	if !slices.Equal(got, want) && !slices.Equal(got, refusal) {
		return errors.New("it gave another kind of result")
	}
	return nil
}

// vetter keeps the first thing that is wrong with a result.
type vetter struct {
	limits Limits
	roots  []rootSetup
	room   int // bytes of names and text that may still come
	err    error
}

func (v *vetter) require(ok bool, what string) {
	if !ok && v.err == nil {
		v.err = errors.New(what)
	}
}

func (v *vetter) listing(l Listing) {
	v.require(len(l.Entries) <= v.limits.Entries, "it listed too many entries")
	for _, entry := range l.Entries {
		v.path(entry.Path)
		v.require(entry.Size >= 0 && (!entry.Dir || entry.Size == 0), "it gave a size that cannot be")
	}
}

func (v *vetter) excerpt(req request, e Excerpt) {
	asked, err := parsePath(req.Path)
	v.require(err == nil && e.Path == asked.String(), "it read another file")
	v.require(e.FirstLine == max(1, req.FirstLine), "it read other lines")
	count := e.LastLine - e.FirstLine + 1
	v.require(count >= 0 && count <= v.limits.Lines, "it read another number of lines")
	v.require(e.TotalLines >= 0 && (count == 0 || e.LastLine <= e.TotalLines), "it counted the lines wrong")
	v.require(strings.Count(e.Text, "\n") == max(0, count-1), "it gave another number of lines")
	v.text(e.Text)
}

func (v *vetter) matches(m Matches) {
	v.require(len(m.Matches) <= v.limits.Matches, "it gave too many matches")
	v.require(m.Files >= 0 && m.Files <= v.limits.SearchFiles, "it searched too many files")
	for _, match := range m.Matches {
		v.path(match.Path)
		v.require(match.Line > 0, "it gave a line number that cannot be")
		v.require(!strings.Contains(match.Text, "\n"), "it gave several lines for one")
		v.text(match.Text)
	}
}

// path accepts what a request could name.
func (v *vetter) path(path string) {
	at, err := parsePath(path)
	isRoot := func(r rootSetup) bool { return r.Name == at.root }
	v.require(err == nil && at.String() == path && slices.ContainsFunc(v.roots, isRoot), "it gave a path that cannot be")
	v.spend(len(path))
}

// text accepts what untrusted.Visible leaves as it is.
func (v *vetter) text(text string) {
	v.spend(len(text))
	v.require(v.room < 0 || untrusted.Visible(text) == text, "it gave text that is not safe to show")
}

func (v *vetter) spend(bytes int) {
	v.room -= bytes
	v.require(v.room >= 0, "it gave more bytes than it may")
}
