package chatapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/chat"
)

// Ensures that newos4-chat(7) lists the error table and nothing else but the
// front end's 503 (section 6).
func TestErrorTable_IsInTheManual(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../man/newos4-chat.7")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"503 ": true}
	for code, row := range errorTable() {
		name := string(code)
		if code == chat.CodeCorrupt {
			name = `"` + name + `"`
		}
		want[fmt.Sprintf("%d Ta Li %s", row.status, name)] = true
	}
	for line := range strings.Lines(string(data)) {
		row, ok := strings.CutPrefix(line, ".It ")
		if !ok || row[0] < '4' || row[0] > '5' || strings.Count(row, " Ta ")+strings.Count(row, " Ta Ta") < 2 {
			continue
		}
		row = row[:strings.LastIndex(row, "Ta ")-1]
		row = strings.TrimSuffix(row, "Ta")
		if !want[row] {
			t.Errorf("newos4-chat(7) has the row %q, which is not in the table", row)
		}
		delete(want, row)
	}
	for row := range want {
		t.Errorf("newos4-chat(7) lacks the row %q", row)
	}
}
