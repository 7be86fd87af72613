package workspace_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that a file is stored under a harmless base name (section 9.5).
func TestCleanFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"报告.pdf":                          "报告.pdf",
		"../../etc/passwd":                "passwd",
		`C:\Users\me\a.txt`:               "a.txt",
		"a\x00b\r\n.txt":                  "ab.txt",
		"  ":                              "attachment",
		"..":                              "attachment",
		"dir/":                            "attachment",
		strings.Repeat("长", 300) + ".txt": strings.Repeat("长", 240),
		"bad\xffutf8.txt":                 "badutf8.txt",
	} {
		if got := workspace.CleanFileName(name); got != want {
			t.Errorf("CleanFileName(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzCleanFileName holds for any name: what is stored is a base name without
// control characters, within its bound.
func FuzzCleanFileName(f *testing.F) {
	f.Add("../a\x00b")
	f.Add("\xff/..")
	f.Fuzz(func(t *testing.T, name string) {
		got := workspace.CleanFileName(name)
		if got == "" || got == "." || got == ".." || strings.ContainsAny(got, `/\`) || !utf8.ValidString(got) ||
			strings.ContainsFunc(got, unicode.IsControl) || utf8.RuneCountInString(got) > workspace.MaxFileName {
			t.Fatalf("CleanFileName(%q) = %q", name, got)
		}
	})
}

// Ensure that only a plain type is kept (section 9.5).
func TestCleanMIMEType(t *testing.T) {
	t.Parallel()
	const neutral = workspace.NeutralMIMEType
	for declared, want := range map[string]string{
		"text/plain":                    "text/plain",
		"Image/PNG":                     "image/png",
		"text/html; charset=utf-8":      "text/html",
		"application/vnd.x+json":        "application/vnd.x+json",
		"":                              neutral,
		"text":                          neutral,
		"text/":                         neutral,
		"text/pl ain":                   neutral,
		"text/plain\r\nX: y":            neutral,
		"a/b/c":                         neutral,
		"text/纯":                        neutral,
		"a/" + strings.Repeat("x", 126): neutral,
		"a/" + strings.Repeat("x", 125): "a/" + strings.Repeat("x", 125),
	} {
		if got := workspace.CleanMIMEType(declared); got != want {
			t.Errorf("CleanMIMEType(%q) = %q, want %q", declared, got, want)
		}
	}
}

// Ensure that kind and activity follow from type and name (sections 2.12 and
// 9.6, scenario 30).
func TestFileKindAndActivity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file   workspace.File
		kind   workspace.FileKind
		active bool
	}{
		{workspace.File{Name: "a.png", MIMEType: "image/png"}, workspace.KindImage, false},
		{workspace.File{Name: "a.svg", MIMEType: "image/png"}, workspace.KindImage, true},
		{workspace.File{Name: "a.png", MIMEType: "image/svg+xml"}, workspace.KindImage, true},
		{workspace.File{Name: "a.mp4", MIMEType: "video/mp4"}, workspace.KindVideo, false},
		{workspace.File{Name: "a.txt", MIMEType: "text/plain"}, workspace.KindText, false},
		{workspace.File{Name: "a.txt", MIMEType: "text/HTML"}, workspace.KindText, true},
		{workspace.File{Name: "A.HTM", MIMEType: "text/plain"}, workspace.KindText, true},
		{workspace.File{Name: "a.mjs", MIMEType: "application/octet-stream"}, workspace.KindFile, true},
		{workspace.File{Name: "a", MIMEType: "application/xhtml+xml"}, workspace.KindFile, true},
		{workspace.File{Name: "a.pdf", MIMEType: "application/pdf"}, workspace.KindFile, false},
	} {
		if tt.file.Kind() != tt.kind || tt.file.IsActive() != tt.active {
			t.Errorf("%+v: kind %s, active %v", tt.file, tt.file.Kind(), tt.file.IsActive())
		}
	}
}
