package runtime

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/hermes/defuse"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// draft collects a reply while it streams.
type draft struct {
	text, reasoning []byte
	tools           []workspace.Tool
	places          map[string]int // of tools by their ids
	dirty           bool
	scheduled       bool
	saved           time.Time
}

// restore begins with what an earlier execution stored.
func (d *draft) restore(row workspace.Message) {
	d.text, d.reasoning = []byte(row.Content), []byte(row.Reasoning)
	for _, tool := range row.Tools {
		var known toolState
		if json.Unmarshal(tool, &known) == nil {
			d.put(known)
		}
	}
	d.dirty = false
}

// take adds an event and reports whether it was a part of the reply.
func (d *draft) take(event hermes.Event) bool {
	switch e := event.(type) {
	case hermes.Delta:
		d.text = append(d.text, e.Text...)
	case hermes.Preview:
		d.text = append(d.text[:0], e.Text...)
	case hermes.Reasoning:
		d.reasoning = append(d.reasoning, e.Text...)
	case hermes.Break:
		if len(d.text) == 0 {
			return true
		}
		d.text = append(d.text, "\n\n"...)
	case hermes.Tool:
		d.put(stateOf(e))
	default:
		return false
	}
	d.dirty = true
	return true
}

// toolState is how a tool call is stored (section 2.5).
type toolState struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Status   string  `json:"status"`
	Summary  string  `json:"summary,omitzero"`
	Duration float64 `json:"durationSeconds,omitzero"`
}

func stateOf(tool hermes.Tool) toolState {
	status := "tool.start"
	if tool.Done {
		status = "tool.complete"
	}
	return toolState{ID: tool.ID, Name: tool.Name, Status: status, Summary: tool.Summary, Duration: tool.Duration.Seconds()}
}

// put adds a tool call or brings it up to date.
func (d *draft) put(state toolState) {
	if d.places == nil {
		d.places = make(map[string]int)
	}
	text, err := json.Marshal(state, json.Deterministic(true))
	if err != nil {
		return // text that is no UTF-8 is shown nowhere
	}
	if at, ok := d.places[state.ID]; ok && state.ID != "" {
		d.tools[at] = text
		return
	}
	d.places[state.ID] = len(d.tools)
	d.tools = append(d.tools, text)
}

// stored returns the draft for the store, without what the prompt was made inert
// with and agents copy from it: names would not be mentions, and the token of
// silence would be a text.
func (d *draft) stored() store.Draft {
	return store.Draft{Text: restored(d.text), Reasoning: restored(d.reasoning), Tools: d.tools}
}

func restored(text []byte) string {
	return strings.ReplaceAll(defuse.Restore(string(text)), "[\u2060", "[")
}

const (
	// saveInterval is the shortest time between two writes of a reply that streams,
	// and saveGrowth how much longer it is for each saveUnit bytes of the reply: a
	// long reply is written less often, so that what is written grows with the time
	// that it streams and not with the square of its length (section 6.14).
	saveInterval = 100 * time.Millisecond
	saveGrowth   = 250 * time.Millisecond
	saveUnit     = 64 << 10
	// saveBurst is how long the first write waits for what comes with its event.
	saveBurst = time.Millisecond
)

// pause returns how long after the last write the next one is due.
func (d *draft) pause() time.Duration {
	size := len(d.text) + len(d.reasoning)
	return max(saveInterval, saveGrowth*time.Duration(size)/saveUnit)
}
