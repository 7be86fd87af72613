package store

import (
	"strings"

	"github.com/go-json-experiment/json"
)

// Lists of ids are stored as JSON arrays. No id holds anything that JSON escapes,
// so that they are read without a parser, which would cost more than the row.

func encodeIDs[ID ~string](ids []ID) string {
	if len(ids) == 0 {
		return "[]"
	}
	var b strings.Builder
	for i, id := range ids {
		if i == 0 {
			b.WriteString(`["`)
		} else {
			b.WriteString(`","`)
		}
		b.WriteString(string(id))
	}
	b.WriteString(`"]`)
	return b.String()
}

// decodeIDs returns the ids of a list that encodeIDs wrote. It is never nil.
func decodeIDs[ID ~string](text string) []ID {
	if len(text) <= len("[]") {
		return []ID{}
	}
	parts := strings.Split(text[len(`["`):len(text)-len(`"]`)], `","`)
	ids := make([]ID, len(parts))
	for i, part := range parts {
		ids[i] = ID(part)
	}
	return ids
}

// encode returns a value as JSON that is the same whenever the value is.
func encode(value any) (string, error) {
	text, err := json.Marshal(value, json.Deterministic(true))
	return string(text), err
}

// decode reads what encode wrote. An empty text leaves the value as it is.
func decode[T any](text string, into *T) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

// decodeMap reads a map that encode wrote. It is never nil.
func decodeMap[K comparable, V any](text string) (map[K]V, error) {
	m := make(map[K]V)
	if text == "{}" {
		return m, nil
	}
	return m, decode(text, &m)
}

// decodeList reads a list that encode wrote. It is never nil.
func decodeList[T any](text string) ([]T, error) {
	list := []T{}
	if text == "[]" {
		return list, nil
	}
	return list, decode(text, &list)
}
