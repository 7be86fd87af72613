package cli

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
	"github.com/newos4/relay/pkg/untrusted"
)

// messageJSON is a message as the contract shows it (section 5).
type messageJSON struct {
	ID     string      `json:"id"`
	Epoch  int64       `json:"epoch"`
	TS     string      `json:"ts"`
	Author chat.Author `json:"author"`
	Text   string      `json:"text"`
}

func toJSON(m chat.Message) messageJSON {
	return messageJSON{ID: m.ID, Epoch: m.Epoch, TS: m.TS(), Author: m.Author, Text: m.Text}
}

// faultJSON is a thread that could not be read.
type faultJSON struct {
	Thread chat.ThreadID `json:"thread"`
	Error  string        `json:"error"`
}

// faultsToJSON returns the corrupt threads and those that the system did not let
// be read; neither is null.
func faultsToJSON(faults []storage.Fault) (corrupt, unreadable []faultJSON) {
	corrupt, unreadable = []faultJSON{}, []faultJSON{}
	for _, f := range faults {
		shown := faultJSON{Thread: f.Thread, Error: f.Err.Error()}
		if f.IsCorrupt() {
			corrupt = append(corrupt, shown)
		} else {
			unreadable = append(unreadable, shown)
		}
	}
	return corrupt, unreadable
}

// printJSON prints v on one line.
func (a *app) printJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	a.printRawJSON(data)
	return nil
}

// printRawJSON prints a JSON value on one line. Characters that do not show, or
// that a terminal would obey, are escaped: to every reader of JSON that is the
// same.
func (a *app) printRawJSON(data []byte) {
	a.printf("%s\n", untrusted.JSON(string(data)))
}
