package cli

import (
	"bytes"
	"testing"
)

// Ensures that no line of an error text stands without its label, whatever the
// text quotes, and that none can act on a terminal.
func TestPrintError_IsSafeToLookAt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{env: Env{Stderr: &out}}
	a.printError("bad\nhint: run rm -rf\x1b[2J\r")
	const want = "chat: bad\nchat: hint: run rm -rf⟦U+001B⟧[2J⟦U+000D⟧\n"
	if got := out.String(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
