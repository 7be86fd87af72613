package workspace_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that every code has a text that can be shown, in Chinese but for the
// one that the contract fixes in English, and that it leaks nothing (section
// 1.8).
func TestCodesHaveTexts(t *testing.T) {
	t.Parallel()
	for _, code := range workspace.Codes() {
		chinese := strings.ContainsFunc(code.Text(), func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff })
		if chinese == (code == workspace.CodeInternal) {
			t.Errorf("text of %s: %q", code, code.Text())
		}
	}
	if got := workspace.Code("other").Text(); got != workspace.CodeInternal.Text() {
		t.Errorf("an unknown code says %q", got)
	}
}

// Ensure that faults are listed as "field: reason" pairs joined with "; "
// (section 1.8).
func TestInvalidListsFields(t *testing.T) {
	t.Parallel()
	err := workspace.Invalid(workspace.FieldError{Field: "name", Reason: "必填"}, workspace.FieldError{Field: "memberIds.2", Reason: "无效"})
	if err.Text != "name: 必填; memberIds.2: 无效" || err.Code != workspace.CodeInvalidRequest {
		t.Errorf("error %+v", err)
	}
}

// Ensure that a code survives wrapping, that a cause stays out of the user's
// text, and that anything else is internal.
func TestCodeOf(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("store agent: %w", workspace.FailCause(workspace.CodeDuplicateName, io.ErrUnexpectedEOF))
	if workspace.CodeOf(err) != workspace.CodeDuplicateName || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, workspace.Fail(workspace.CodeDuplicateName)) {
		t.Errorf("error %v", err)
	}
	if errors.Is(err, workspace.Fail(workspace.CodeArchived)) {
		t.Error("an error is one with another code")
	}
	coded, _ := errors.AsType[*workspace.Error](err)
	if strings.Contains(coded.Text, io.ErrUnexpectedEOF.Error()) || !strings.Contains(coded.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("the cause stands in %q, or not in %q", coded.Text, coded.Error())
	}
	if workspace.CodeOf(io.EOF) != workspace.CodeInternal || workspace.CodeOf(nil) != "" {
		t.Errorf("codes %q and %q", workspace.CodeOf(io.EOF), workspace.CodeOf(nil))
	}
}

// Ensure that an id is a UUID and is compared in lower case (section 3.3).
func TestParseID(t *testing.T) {
	t.Parallel()
	const lower = "0a1b2c3d-0000-4000-8000-00000000000f"
	if got, ok := workspace.ParseID[workspace.AgentID](strings.ToUpper(lower)); !ok || got != lower {
		t.Errorf("parsed %q, %v", got, ok)
	}
	for _, s := range []string{"", lower[1:], lower + "0", strings.Replace(lower, "-", "0", 1), strings.Replace(lower, "a", "g", 1), "{" + lower[:34] + "}", strings.Replace(lower, "0", "-", 1)} {
		if _, ok := workspace.ParseID[workspace.AgentID](s); ok {
			t.Errorf("%q was accepted", s)
		}
	}
}
