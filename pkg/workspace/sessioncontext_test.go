package workspace_test

import (
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that an older snapshot does not replace a newer one (section 3.10,
// scenario 34).
func TestSnapshotReplaces(t *testing.T) {
	t.Parallel()
	at := func(observed float64) workspace.SessionContext {
		return workspace.SessionContext{ObservedAt: workspace.Some(observed)}
	}
	for given, want := range map[float64]bool{10: false, 20: true, 20.5: true} {
		if got := at(given).Replaces(at(20)); got != want {
			t.Errorf("observed at %v replaces one of 20: %v", given, got)
		}
	}
}

// Ensure the bounds of section 2.16, and that null is allowed where it says so.
func TestCheckSessionContext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*workspace.SessionContext)
		want   workspace.Code
	}{
		"least": {func(*workspace.SessionContext) {}, ""},
		"nulls": {func(c *workspace.SessionContext) {
			c.LimitTokens, c.Model = workspace.Null[int64](), workspace.Null[string]()
		}, ""},
		"no used tokens":        {func(c *workspace.SessionContext) { c.UsedTokens = workspace.Optional[int64]{} }, workspace.CodeInvalidRequest},
		"null used tokens":      {func(c *workspace.SessionContext) { c.UsedTokens = workspace.Null[int64]() }, workspace.CodeInvalidRequest},
		"negative tokens":       {func(c *workspace.SessionContext) { c.UsedTokens = workspace.Some[int64](-1) }, workspace.CodeInvalidRequest},
		"limit of 0":            {func(c *workspace.SessionContext) { c.LimitTokens = workspace.Some[int64](0) }, workspace.CodeInvalidRequest},
		"negative percent":      {func(c *workspace.SessionContext) { c.Percent = workspace.Some(-0.1) }, workspace.CodeInvalidRequest},
		"model of 512":          {func(c *workspace.SessionContext) { c.Model = workspace.Some(strings.Repeat("m", 512)) }, ""},
		"model of 513":          {func(c *workspace.SessionContext) { c.Model = workspace.Some(strings.Repeat("m", 513)) }, workspace.CodeInvalidRequest},
		"provider of 257":       {func(c *workspace.SessionContext) { c.Provider = workspace.Some(strings.Repeat("m", 257)) }, workspace.CodeInvalidRequest},
		"not observed":          {func(c *workspace.SessionContext) { c.ObservedAt = workspace.Optional[float64]{} }, workspace.CodeInvalidRequest},
		"negative compressions": {func(c *workspace.SessionContext) { c.Compressions = workspace.Some[int64](-1) }, workspace.CodeInvalidRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workspace.SessionContext{UsedTokens: workspace.Some[int64](0), ObservedAt: workspace.Some(0.5)}
			tt.change(&c)
			wantCode(t, workspace.CheckSessionContext(c), tt.want)
		})
	}
}

// Ensure that the query wins over the header, and that empty means missing
// (section 11 item 15).
func TestProfileOf(t *testing.T) {
	t.Parallel()
	for want, given := range map[string][2]string{"q": {"q", "h"}, "h": {"", "h"}, "default": {"", ""}} {
		if got := workspace.ProfileOf(given[0], given[1]); got != want {
			t.Errorf("profile of %q is %q, want %q", given, got, want)
		}
	}
}
