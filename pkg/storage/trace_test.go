package storage

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Ensures that the kernel itself is asked for each step, in the order that makes
// a message durable before it is acknowledged: the data to the new file, its
// sync, its rename over the old one, the sync of the directory, and only then
// the word to whoever posted (tailscale/tailscale#538, npm/write-file-atomic#64).
func TestAppend_SystemCalls(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	mustPost(t, Open(testOptions(root)), testThread, "before")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-o", trace, "-e", "trace=write,fsync,rename,renameat,renameat2", exe)
	cmd.Env = append(os.Environ(), childMode+"=append", "GORACE=atexit_sleep_ms=0")
	job, err := json.Marshal(childJob{Root: root, Thread: testThread, Text: "acknowledged", Count: 1, Threads: 500})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(string(job))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"write temporary file", "fsync temporary file", "rename", "fsync directory", "acknowledge"}
	if got := stepsIn(string(lines)); !slices.Equal(got, want) {
		t.Errorf("steps = %v, want %v\n%s", got, want, lines)
	}
}

// stepsIn names the system calls of a trace that matter to a message.
func stepsIn(trace string) []string {
	var steps []string
	for _, step := range []struct {
		name string
		call *regexp.Regexp
	}{
		{"write temporary file", regexp.MustCompile(`write\(\d+<[^>]*\.tmp>`)},
		{"fsync temporary file", regexp.MustCompile(`fsync\(\d+<[^>]*\.tmp>`)},
		{"rename", regexp.MustCompile(`rename(at2?)?\(.*\.tmp"`)},
		{"fsync directory", regexp.MustCompile(`fsync\(\d+<[^>]*/chat>`)},
		{"acknowledge", regexp.MustCompile(`write\(1<.*"acknowledged 0\\n"`)},
	} {
		for number, line := range strings.Split(trace, "\n") {
			if step.call.MatchString(line) {
				steps = append(steps, step.name)
				trace = strings.Join(strings.Split(trace, "\n")[number+1:], "\n")
				break
			}
		}
	}
	return steps
}
