package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/sandbox"
	"github.com/newos4/relay/pkg/untrusted"
)

const (
	// maxStrikes is how many calls may make no sense before all tools are gone.
	maxStrikes = 3
	// minBytes is the least rest of the budget that is worth another look.
	minBytes = 256
	// maxShown bounds, in code points, what an error and the operator's list
	// repeat of a call.
	maxShown = 200
)

const (
	errSpent    mistake = "nothing more can be looked at; answer from what you have"
	errParallel mistake = "too many calls at once; this one was not made"
	errBytes    mistake = "the result is larger than what may still be read; ask for fewer lines or a narrower search"
	errAbsent   mistake = "the files cannot be looked at just now"
)

// Call is a call as it stands in a model's reply.
type Call struct {
	Name string
	// Arguments is the JSON value of the arguments, of whatever kind, or empty.
	Arguments jsontext.Value
}

// Result is what became of a [Call].
type Result struct {
	// Name is the call's name if it is one of the tools, else "unknown_tool".
	Name string
	// Arguments are the arguments as they were understood: a JSON object, empty
	// for a call that was not.
	Arguments jsontext.Value
	// Document is what to tell the model: a JSON object on one line.
	Document jsontext.Value
}

// Limits bound a [Run].
type Limits struct {
	// Calls is how many calls may be made, good or bad.
	Calls int
	// Parallel is how many of the calls of one reply are made.
	Parallel int
	// Bytes is how much of files may be shown in all, as JSON. Less than 256 is
	// as good as none.
	Bytes int
}

// Run makes the calls of one answer. It is not for concurrent use.
type Run struct {
	files    Files
	calls    int // left
	parallel int
	bytes    int // left
	strikes  int
	failed   map[string]bool // calls that failed, with how
	broken   error           // why the files must be left alone
	uses     []autoreply.ToolUse
}

// NewRun returns a Run on the files.
func NewRun(files Files, limits Limits) *Run {
	return &Run{
		files:    files,
		calls:    limits.Calls,
		parallel: limits.Parallel,
		bytes:    limits.Bytes,
		failed:   make(map[string]bool),
	}
}

// Spent reports whether a limit was reached or too many calls made no sense.
// Every further call is refused, so a model is better offered none.
func (r *Run) Spent() bool {
	return r.broken != nil || r.calls <= 0 || r.bytes < minBytes || r.strikes >= maxStrikes
}

// Uses returns what was looked at, in order.
func (r *Run) Uses() []autoreply.ToolUse { return slices.Clone(r.uses) }

// Round makes the calls of one reply, one after the other, and returns a result
// for each, in their order. It fails where the run should end instead: with
// [sandbox.ErrNotConfined] or [sandbox.ErrClosed].
func (r *Run) Round(ctx context.Context, calls []Call) ([]Result, error) {
	results := make([]Result, 0, len(calls))
	for i, call := range calls {
		if i < r.parallel {
			results = append(results, r.attempt(ctx, call))
			continue
		}
		if i == r.parallel {
			r.strikes++
		}
		results = append(results, r.refuse(call, errParallel))
	}
	return results, r.broken
}

// attempt makes one call.
func (r *Run) attempt(ctx context.Context, call Call) Result {
	if r.Spent() {
		return r.refuse(call, errSpent)
	}
	r.calls--
	look, err := parse(call)
	if err != nil {
		r.strikes++
		return r.refuse(call, err)
	}
	arguments, err := json.Marshal(look)
	if err != nil {
		return r.refuse(call, errAbsent)
	}
	document, err := r.show(ctx, look)
	if err != nil {
		r.countRepeat(call.Name + string(arguments) + err.Error())
		document = failure(err)
	}
	r.note(call.Name, look.target(), err)
	return Result{Name: call.Name, Arguments: arguments, Document: document}
}

// show looks and takes what was found from the budget. Its error is fit for the
// model.
func (r *Run) show(ctx context.Context, l look) (jsontext.Value, error) {
	found, err := l.do(ctx, r.files)
	if errors.Is(err, sandbox.ErrNotConfined) || errors.Is(err, sandbox.ErrClosed) {
		r.broken = err
	}
	if err != nil {
		return nil, told(err)
	}
	document, err := json.Marshal(found)
	if err != nil {
		return nil, errAbsent
	}
	if len(document) > r.bytes {
		return nil, errBytes
	}
	r.bytes -= len(document)
	return document, nil
}

// countRepeat makes a strike of a call that failed in the same way before.
func (r *Run) countRepeat(failure string) {
	if r.failed[failure] {
		r.strikes++
	}
	r.failed[failure] = true
}

// refuse answers a call that is not made.
func (r *Run) refuse(call Call, err error) Result {
	name, target := call.Name, ""
	if !isTool(name) {
		name, target = "unknown_tool", call.Name
	}
	r.note(name, target, err)
	return Result{Name: name, Arguments: jsontext.Value("{}"), Document: failure(err)}
}

// note remembers a call for the operator.
func (r *Run) note(name, target string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = err.Error()
	}
	r.uses = append(r.uses, autoreply.ToolUse{Name: name, Target: cut(target), Outcome: outcome})
}

func isTool(name string) bool {
	return name == ListFiles || name == ReadFile || name == SearchFiles
}

// told returns what the model may know of an error of the files.
func told(err error) error {
	for _, known := range []error{sandbox.ErrNotReadable, sandbox.ErrTooLarge, sandbox.ErrBinary, sandbox.ErrTimeout} {
		if errors.Is(err, known) {
			return known
		}
	}
	if errors.Is(err, sandbox.ErrInvalid) {
		// Its text says what is wrong with the pattern, and repeats some of it.
		return errors.New(untrusted.FirstLine(err.Error(), maxShown))
	}
	return errAbsent
}

// failure returns the document that tells the model of an error.
func failure(err error) jsontext.Value {
	document, encodingErr := json.Marshal(map[string]string{"error": err.Error()})
	if encodingErr != nil {
		return jsontext.Value(`{"error":"` + errAbsent.Error() + `"}`)
	}
	return document
}

// cut returns the beginning of text.
func cut(text string) string {
	n := 0
	for i := range text {
		if n == maxShown {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
