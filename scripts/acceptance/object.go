package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// object is a JSON object whose members are not decoded yet.
type object map[string]json.RawMessage

// decodeObject reads exactly one JSON object and refuses a member that stands
// twice, over which two readers could disagree.
func decodeObject(data []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	o := object{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a name: %w", err)
		}
		name, _ := token.(string)
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("the member %q stands twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("reading %q: %w", name, err)
		}
		o[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("reading the end: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return o, nil
}

// decodeExactly decodes a JSON object into v. The object must have the named
// members and no others, and none of them may be null.
func decodeExactly(data []byte, v any, names ...string) error {
	o, err := decodeObject(data)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(o)); !slices.Equal(got, names) {
		return fmt.Errorf("the members are %v instead of %v", got, names)
	}
	for name, value := range o {
		if string(value) == "null" {
			return fmt.Errorf("the member %q is null", name)
		}
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

// member decodes one member, which must be there and be of type T.
func member[T any](o object, name string) (T, error) {
	var value T
	raw, ok := o[name]
	if !ok {
		return value, fmt.Errorf("the member %q is missing", name)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, fmt.Errorf("the member %q: %w", name, err)
	}
	return value, nil
}
