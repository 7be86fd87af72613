package tools

import "github.com/go-json-experiment/json/jsontext"

// The names of the tools.
const (
	ListFiles   = "list_files"
	ReadFile    = "read_file"
	SearchFiles = "search_files"
)

// Definition describes a tool to a model.
type Definition struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of the arguments, which are an object.
	Parameters jsontext.Value
}

// Definitions returns the tools, always the same three in the same order. The
// schemas use no keyword that a grammar-based server is known not to take.
func Definitions() []Definition {
	return []Definition{
		{
			Name:        ListFiles,
			Description: "List the public files and directories at a path. Start without a path.",
			Parameters: jsontext.Value(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"A directory from an earlier list, or empty for the top."}` +
				`},"additionalProperties":false}`),
		},
		{
			Name:        ReadFile,
			Description: "Read a public text file, or some of its lines.",
			Parameters: jsontext.Value(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"A file from an earlier list or search."},` +
				`"first_line":{"type":"integer","description":"The first line to read, counted from 1."},` +
				`"last_line":{"type":"integer","description":"The last line to read."}` +
				`},"required":["path"],"additionalProperties":false}`),
		},
		{
			Name:        SearchFiles,
			Description: "Find the lines of public text files that contain a pattern.",
			Parameters: jsontext.Value(`{"type":"object","properties":{` +
				`"pattern":{"type":"string","description":"The words to find, exactly as they are written in one line."},` +
				`"regexp":{"type":"boolean","description":"Whether the pattern is a regular expression (RE2)."},` +
				`"path":{"type":"string","description":"A file or directory to search in, or empty for all."}` +
				`},"required":["pattern"],"additionalProperties":false}`),
		},
	}
}
