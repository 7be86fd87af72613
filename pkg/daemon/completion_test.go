package daemon_test

import (
	"strings"
	"testing"
)

// Ensures that a shell proposes paths where relayd takes one and commands where
// one may stand, and no file anywhere else, whatever the configuration says.
func TestCompletion_ProposesWhatRelaydTakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"se":               "serve\tServe browsers until SIGTERM or SIGINT\n:4\n",
		"config ":          "print\tPrint the effective value of every key\n:4\n",
		"serve ":           ":4\n",
		"agent test ":      ":4\n",
		"--listen ":        ":4\n",
		"serve --config ":  ":0\n",
		"serve --root ":    ":16\n",
		"completion fis":   "fish\tGenerate the autocompletion script for fish\n:4\n",
		"config print --s": "--space\tserve the space `NAME`\n:4\n",
	} {
		code, stdout, stderr := run(t, []string{"RELAYD_NO_SUCH=1"}, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code != 0 || stdout != want || strings.Count(stderr, "\n") != 1 {
			t.Errorf("relayd %s: exits %d with\n%s%s", args, code, stdout, stderr)
		}
	}
}
