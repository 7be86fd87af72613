package passage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/autoreply/passage"
	"github.com/newos4/relay/pkg/sandbox"
)

// TestMain lets the test binary also be the confined reader.
func TestMain(m *testing.M) {
	sandbox.RunChildIfAsked(os.Args)
	os.Exit(m.Run())
}

// Ensures that the files of a real reader are indexed, and nothing that it
// keeps closed.
func TestSearch_ConfinedReader(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "docs")
	for name, text := range map[string]string{
		"guide/manual.md": english,
		"secret.env":      "The daemon listens to zebras.\n",
		"手册.md":           chinese,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := sandbox.Start(t.Context(), sandbox.Options{Roots: []string{root}, Mode: sandbox.BestEffort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}()
	x := newIndex(t, passage.Options{Files: reader})
	for question, want := range map[string]string{
		"Which address does the daemon listen on?": "docs/guide/manual.md:5-8",
		"如何修改监听端口？":                                "docs/手册.md:1-5",
		"zebras":                                   "",
	} {
		got := append(MustSearch(t, x, question), "")
		if got[0] != want {
			t.Errorf("%q found %q, want %q first", question, got, want)
		}
	}
}

// Ensures that a passage that must not be quoted is passed over, and the others
// of its file are not.
func TestSearch_ClosedPassages(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "docs")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "# Zebras\n\nZebras are kept in the north.\n\n# Keepers\n\nThe keeper of the zebras is called CLOSED.\n"
	if err := os.WriteFile(filepath.Join(root, "zoo.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	reader, err := sandbox.Start(t.Context(), sandbox.Options{Roots: []string{root}, Mode: sandbox.BestEffort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	x := newIndex(t, passage.Options{Files: reader, Closed: func(text string) bool { return strings.Contains(text, "CLOSED") }})
	found, err := x.Search(t.Context(), "Where are the zebras and their keeper?", 5)
	if err != nil || len(found) != 1 || strings.Contains(found[0].Text, "CLOSED") {
		t.Errorf("found %+v, %v", found, err)
	}
}
