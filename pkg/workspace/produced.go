package workspace

import (
	"path"
	"regexp"
	"strings"
)

// MaxProduced is how many files of one reply are fetched (section 7.6).
const MaxProduced = 8

// Where a reply names a file that its agent made: a media marker, the target of a
// Markdown link, or the value of a key that is called like a path.
var (
	mediaMarker  = regexp.MustCompile("(?m)\\bMEDIA:[ \t]*[`\"']?([~/][^\\s`\"'<>]*)")
	linkTarget   = regexp.MustCompile(`\]\(\s*(?:<([~/][^<>\n]*)>|([~/][^\s()<>]*))(?:\s+"[^"\n]*")?\s*\)`)
	pathLikeKey  = regexp.MustCompile(`(?i)"(?:path|file|file_?path|file_?name|output_?(?:path|file)|saved_?to|destination|image_?path)"\s*:\s*"([~/](?:[^"\\\n]|\\.)*)"`)
	producedFrom = []*regexp.Regexp{mediaMarker, linkTarget, pathLikeKey}
)

// ProducedPaths returns the absolute and home paths that a reply and its tools
// name as files, in their order, each once, at most [MaxProduced] (section 7.6).
// They are strings as they stand there, which clients look for in the text.
func ProducedPaths(text string, tools []Tool) []string {
	sources := []string{text}
	for _, tool := range tools {
		sources = append(sources, string(tool))
	}
	paths := []string{}
	for _, source := range sources {
		for _, pattern := range producedFrom {
			for _, found := range pattern.FindAllStringSubmatch(source, -1) {
				paths = append(paths, strings.TrimRight(strings.Join(found[1:], ""), ".,;:"))
			}
		}
	}
	paths = keep(unique(paths), isFilePath)
	return paths[:min(len(paths), MaxProduced)]
}

// isFilePath reports whether a path may name a file: not a folder, not the root,
// not the server's own links, and not a web address without its scheme.
func isFilePath(p string) bool {
	rest, home := strings.CutPrefix(p, "~/")
	if !home && (!strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.HasPrefix(p, "/api/app/")) {
		return false
	}
	return rest != "" && !strings.HasSuffix(p, "/") && path.Base(p) != "." && path.Base(p) != ".."
}
