package config_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sampleFile = "../../etc/relayd.yaml"

var update = flag.Bool("update", false, "write etc/relayd.yaml anew")

const sampleHead = `# The configuration of relayd and chat, read from /etc/relayd/relayd.yaml.
#
# Every line that begins with "#" and a key shows that key's default; take the
# "#" away to change it. A flag and the environment come before this file. See
# relayd.yaml(5), and relayd config print for what is in effect.
#
# [reload]: a change takes effect with SIGHUP. All others need a restart.
`

// sample returns the text of etc/relayd.yaml: all keys with their documentation
// and default, commented out in sections that are not.
func sample(t *testing.T) string {
	t.Helper()
	c, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(sampleHead)
	var open []string // the sections that the lines now stand in
	for _, o := range c.Options() {
		parts := strings.Split(o.Key, ".")
		sections := parts[:len(parts)-1]
		b.WriteString("\n")
		for depth, section := range sections {
			if depth < len(open) && open[depth] == section {
				continue
			}
			open = open[:depth]
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", depth), section)
			open = append(open, section)
		}
		open = open[:len(sections)]
		indent, doc := strings.Repeat("  ", len(sections)), o.Doc
		if o.Reloads {
			doc += " [reload]"
		}
		for _, line := range wrap(doc, 76-len(indent)) {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
		fmt.Fprintf(&b, "%s#%s: %s\n", indent, parts[len(parts)-1], o.YAML())
	}
	return b.String()
}

// wrap breaks text into lines of at most width bytes where words allow it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// Ensures that the file that is installed documents every key as the code does.
func TestSampleFile_IsTheCodes(t *testing.T) {
	t.Parallel()
	want := sample(t)
	if *update {
		if err := os.WriteFile(sampleFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("etc/relayd.yaml differs from the code; write it anew with: go test ./pkg/config -run SampleFile -update\n(-code +file):\n%s", diff)
	}
}

// Ensures that the file means the defaults, as it is and with every key
// uncommented.
func TestSampleFile_MeansTheDefaults(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	uncommented := regexp.MustCompile(`(?m)^( *)#([a-z])`).ReplaceAllString(string(data), "$1$2")
	if keys := strings.Count(string(data), "#") - strings.Count(uncommented, "#"); keys != len(want.Options()) {
		t.Errorf("%d keys are commented out, want %d", keys, len(want.Options()))
	}
	for name, text := range map[string]string{"as it is": string(data), "uncommented": uncommented} {
		got, err := load(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, o := range got.Options() {
			if w := want.Options()[i]; o.Value() != w.Value() {
				t.Errorf("%s: %s = %q, want %q", name, o.Key, o.Value(), w.Value())
			}
		}
	}
}
