// Package pkg_test holds what the project says of itself to its code.
package pkg_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/newos4/relay/pkg/"

// rooms returns the floor of every package in the table of pkg/README.md.
func rooms(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	floors := make(map[string]int)
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]+) \\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		floor, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		floors[row[2]] = floor
	}
	return floors
}

// imports returns what each package below this directory imports of the others,
// tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(path))
		found[room] = append(found[room], "")
		for _, spec := range file.Imports {
			if name, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok {
				found[room] = append(found[room], name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Ensures that every package has its room in the table, and imports only from
// floors below its own.
func TestRooms(t *testing.T) {
	t.Parallel()
	floors := rooms(t)
	for room, imported := range imports(t) {
		if floors[room] == 0 {
			t.Errorf("%s has no room in pkg/README.md", room)
		}
		for _, other := range imported {
			if other != "" && floors[other] >= floors[room] {
				t.Errorf("%s on floor %d imports %s on floor %d", room, floors[room], other, floors[other])
			}
		}
	}
	for room := range floors {
		if _, err := os.Stat(room); err != nil {
			t.Errorf("pkg/README.md has a room for %s: %v", room, err)
		}
	}
}

// Ensures that each test and file that the README names as proof exists.
func TestREADME_NamesProofsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := allTests(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 10 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, name := range named {
		if !tests[name[1]] {
			t.Errorf("the README names %s, which does not exist", name[1])
		}
	}
	for _, path := range regexp.MustCompile("`((?:pkg|scripts|man|etc|cmd)/[^` ]+)`").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("..", path[1])); err != nil {
			t.Errorf("the README names %s: %v", path[1], err)
		}
	}
}

// allTests returns the names of all tests and fuzz targets of the project.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	for _, dir := range []string{".", "../etc", "../man", "../scripts"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range function.FindAllSubmatch(source, -1) {
				names[string(match[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
