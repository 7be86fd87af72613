package workspace

import (
	"path"
	"strings"
	"unicode"
)

const (
	neutralName = "attachment"
	// NeutralMIMEType is the type of a file whose own is not known or not safe.
	NeutralMIMEType = "application/octet-stream"
)

// CleanFileName returns the name that a file is stored under: its base name
// without control characters, at most [MaxFileName] code points, else
// "attachment" (section 9.5).
func CleanFileName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	name = firstRunes(trim(name), MaxFileName)
	if name == "" || name == "." || name == ".." {
		return neutralName
	}
	return name
}

// CleanMIMEType returns the declared type in lower case when it is a plain
// "type/subtype" of at most [MaxMIMEType] bytes, else [NeutralMIMEType]
// (section 9.5). Parameters are dropped.
func CleanMIMEType(declared string) string {
	bare, _, _ := strings.Cut(declared, ";")
	bare = strings.ToLower(strings.Trim(bare, " \t"))
	kind, sub, ok := strings.Cut(bare, "/")
	if !ok || len(bare) > MaxMIMEType || !isToken(kind) || !isToken(sub) {
		return NeutralMIMEType
	}
	return bare
}

// isToken reports whether s is a token as RFC 9110 defines it.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= unicode.MaxASCII || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// Kind returns the file's rough kind.
func (f File) Kind() FileKind {
	switch kind, _, _ := strings.Cut(f.MIMEType, "/"); kind {
	case "image":
		return KindImage
	case "video":
		return KindVideo
	case "text":
		return KindText
	}
	return KindFile
}

// Extension returns the file's extension in lower case without its dot.
func (f File) Extension() string { return strings.ToLower(strings.TrimPrefix(path.Ext(f.Name), ".")) }

// activeWords are the words of a MIME type, activeExtensions the extensions of
// files that a browser would execute (section 9.6).
var (
	activeWords      = []string{"html", "svg", "javascript", "ecmascript", "xml"}
	activeExtensions = map[string]bool{"html": true, "htm": true, "svg": true, "js": true, "mjs": true, "xml": true, "xhtml": true}
)

// IsActive reports whether a browser might execute the file. Such a file is
// delivered as an attachment of a neutral type only (section 9.6).
func (f File) IsActive() bool {
	for _, word := range activeWords {
		if strings.Contains(strings.ToLower(f.MIMEType), word) {
			return true
		}
	}
	return activeExtensions[f.Extension()]
}
