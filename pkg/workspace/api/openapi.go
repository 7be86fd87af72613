package api

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/newos4/relay/pkg/account"
)

// healthPath answers whoever asks that the server is there (section 1.5).
const healthPath = "/healthz"

// Pieces of the description whose routes may not be served.
const (
	nodesPiece = "nodes.yaml"
	voicePiece = "voice.yaml"
)

// description holds the OpenAPI document in pieces, one for each resource.
//
//go:embed openapi/*.yaml
var description embed.FS

// Description returns the OpenAPI 3.1 document of the workspace as JSON: of what
// this API serves, and nothing else.
func (a *API) Description() ([]byte, error) {
	var dark []string
	if a.opts.Upstreams == nil {
		dark = append(dark, nodesPiece)
	}
	if !a.opts.Voice {
		dark = append(dark, voicePiece)
	}
	whole, err := readOutline(dark)
	if err != nil {
		return nil, err
	}
	document, err := whole.document()
	if err != nil {
		return nil, fmt.Errorf("writing the description: %w", err)
	}
	return json.Marshal(document, json.Deterministic(true))
}

// readOutline reads all pieces but those that are dark. A name that stands in two
// of them is an error.
func readOutline(dark []string) (outline, error) {
	whole := outline{Operations: make(map[string]operation), Schemas: make(map[string]schema)}
	pieces, err := fs.Glob(description, path.Join("openapi", "*.yaml"))
	if err != nil {
		return whole, fmt.Errorf("listing the pieces of the description: %w", err)
	}
	for _, name := range pieces {
		if slices.Contains(dark, path.Base(name)) {
			continue
		}
		if err := whole.add(name); err != nil {
			return whole, fmt.Errorf("reading the description %s: %w", name, err)
		}
	}
	return whole, nil
}

// add adds a piece.
func (o *outline) add(name string) error {
	text, err := description.ReadFile(name)
	if err != nil {
		return err
	}
	var piece outline
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&piece); err != nil {
		return err
	}
	if piece.Info != nil {
		o.Info = piece.Info
	}
	return errors.Join(addAll(o.Operations, piece.Operations), addAll(o.Schemas, piece.Schemas))
}

func addAll[T any](whole, piece map[string]T) error {
	for name, value := range piece {
		if _, twice := whole[name]; twice {
			return fmt.Errorf("%s stands twice", name)
		}
		whole[name] = value
	}
	return nil
}

// describe returns the route of the description. It tells nothing that is secret,
// and tools fetch it without signing in.
func (a *API) describe() account.Route {
	text, err := a.Description()
	return account.Route{Method: http.MethodGet, Path: prefix + "/openapi.json", Access: account.Anyone,
		Handle: func(w http.ResponseWriter, _ *http.Request, _ account.User) error {
			if err != nil {
				return err
			}
			h := w.Header()
			h.Set("Content-Type", "application/json; charset=utf-8")
			h.Set("Cache-Control", "no-store")
			h.Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = w.Write(text) // an error here is the client's, which has gone
			return nil
		}}
}

// health returns the route that says that the server is there.
func health() account.Route {
	return account.Route{Method: http.MethodGet, Path: healthPath, Access: account.Anyone,
		Handle: func(w http.ResponseWriter, _ *http.Request, _ account.User) error {
			return account.WriteJSON(w, http.StatusOK, okBody{OK: true})
		}}
}
