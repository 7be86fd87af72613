package api

import (
	"net/http"

	"github.com/newos4/relay/pkg/workspace"
)

type capabilities struct {
	ProtocolVersion int      `json:"protocolVersion"`
	ServerKind      string   `json:"serverKind"`
	Features        []string `json:"features"`
}

// capabilities answers GET /capabilities with the features whose routes are
// served (section 1.7).
func (a *API) capabilities(r *request) error {
	features := []string{"agents", "conversations", "editableGroups", "files"}
	if a.opts.Voice {
		features = append(features, "voice")
	}
	features = append(features, "context")
	if a.opts.Upstreams != nil {
		features = append(features, "nodes")
	}
	features = append(features, "events", "eventsWait", "teamPresets")
	return r.json(http.StatusOK, capabilities{workspace.ProtocolVersion, workspace.ServerKind, features})
}

type presetList struct {
	Presets []workspace.Preset `json:"presets"`
}

// presets answers GET /team-presets (section 3.11).
func (*API) presets(r *request) error {
	return r.json(http.StatusOK, presetList{workspace.Presets()})
}
