package hermesapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/untrusted"
)

// maxNameShown is how many code points of a name from the server are shown.
const maxNameShown = 80

// Probe asks the server what it is and which tools it has, and fails unless it
// is a Hermes API server without any that is not allowed.
func (b *Backend) Probe(ctx context.Context) error { return b.prove(ctx, true) }

// prove looks at the tools, unless they were harmless a short time ago and that
// will do.
func (b *Backend) prove(ctx context.Context, anew bool) error {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return transportFailure(ctx.Err())
	}
	now := b.now()
	if !anew && !b.provedAt.IsZero() && now.Sub(b.provedAt) < b.every {
		return nil
	}
	b.provedAt = time.Time{}
	if err := b.checkTools(ctx); err != nil {
		return err
	}
	b.provedAt = now
	return nil
}

// capabilities is what the server says of itself.
type capabilities struct {
	Object string `json:"object"`
}

// toolsets is the server's list of tools.
type toolsets struct {
	Data []toolset `json:"data"`
}

// toolset is a group of tools. Each tool is its name, or an object with it.
type toolset struct {
	Name    string           `json:"name"`
	Enabled *bool            `json:"enabled"`
	Tools   []jsontext.Value `json:"tools"`
}

func (b *Backend) checkTools(ctx context.Context) error {
	var self capabilities
	if err := b.get(ctx, "/v1/capabilities", &self); err != nil {
		return err
	}
	if !strings.HasPrefix(self.Object, "hermes.") {
		return unsafe("the server is not a Hermes API server, so its tools cannot be known")
	}
	var list toolsets
	if err := b.get(ctx, "/v1/toolsets", &list); err != nil {
		return err
	}
	if list.Data == nil {
		return unsafe("the server's list of tools is missing")
	}
	for _, set := range list.Data {
		if err := b.checkToolset(set); err != nil {
			return err
		}
	}
	return nil
}

// checkToolset takes a toolset that does not say whether it is enabled for
// enabled.
func (b *Backend) checkToolset(set toolset) error {
	if set.Enabled != nil && !*set.Enabled {
		return nil
	}
	if set.Tools == nil {
		return unsafe("the toolset %s is enabled and does not say what it holds", shown(set.Name))
	}
	for _, tool := range set.Tools {
		name, ok := toolName(tool)
		if !ok {
			return unsafe("the toolset %s holds a tool without a name", shown(set.Name))
		}
		if !slices.Contains(b.allowed, name) {
			return unsafe("the tool %s of the toolset %s is enabled", shown(name), shown(set.Name))
		}
	}
	return nil
}

// toolName reads a tool in either of its forms.
func toolName(tool jsontext.Value) (name string, ok bool) {
	if json.Unmarshal(tool, &name) == nil {
		return name, name != ""
	}
	var object struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(tool, &object)
	return object.Name, err == nil && object.Name != ""
}

// get reads a document that tells what the server can do. One that is not there
// or cannot be understood proves nothing.
func (b *Backend) get(ctx context.Context, path string, into any) error {
	response, err := b.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	switch {
	case response.status == http.StatusNotFound:
		return unsafe("the server has no %s, so its tools cannot be known", path)
	case response.status != http.StatusOK:
		return statusFailure(response, b.now())
	}
	if err := json.Unmarshal(response.body, into, jsontext.AllowInvalidUTF8(true)); err != nil {
		return unsafe("what the server says at %s cannot be understood", path)
	}
	return nil
}

// unsafe says why no thread is sent. Only a person can change that.
func unsafe(format string, args ...any) error {
	return autoreply.Failf(autoreply.ReasonUnsafe, false, "%w", fmt.Errorf(format, args...))
}

// shown is a name of the server's, for the operator.
func shown(name string) string { return fmt.Sprintf("%q", untrusted.FirstLine(name, maxNameShown)) }
