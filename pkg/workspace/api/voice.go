package api

import (
	"net/http"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/jsonbody"
	"github.com/newos4/relay/pkg/workspace"
)

func (a *API) voiceRoutes() []account.Route {
	routes := []account.Route{
		on(http.MethodGet, "/voice/runtime", a.voiceRuntime),
		on(http.MethodPut, "/voice/current-voice", a.selectVoice),
		on(http.MethodGet, "/voice/providers-info", a.providersInfo),
		forAdmins(on(http.MethodPost, "/voice/probe", a.probe)),
		forAdmins(on(http.MethodGet, "/admin/duplex-voice", a.duplexVoice)),
		forAdmins(on(http.MethodPut, "/admin/duplex-voice", a.editDuplexVoice)),
	}
	for _, kind := range []workspace.SpeechKind{workspace.TTS, workspace.STT} {
		routes = append(routes, a.speechRoutes(kind)...)
	}
	return routes
}

// voiceRuntime is what a client needs to talk to the provider of duplex voices.
type voiceRuntime struct {
	Voices         []workspace.Voice `json:"voices"`
	CurrentVoiceID string            `json:"currentVoiceId"`
	APIKey         string            `json:"apiKey"`
	UpdatedAt      workspace.Millis  `json:"updatedAt"`
}

// voiceRuntime answers GET /voice/runtime (section 3.9).
func (a *API) voiceRuntime(r *request) error {
	d, own, err := a.opts.Store.SelectedVoice(r.Context(), r.owner)
	if err != nil {
		return err
	}
	body := voiceRuntime{Voices: d.Voices, CurrentVoiceID: d.Chosen(own), UpdatedAt: d.UpdatedAt}
	if a.opts.ShareVoiceKey {
		body.APIKey = d.APIKey
	}
	return r.json(http.StatusOK, body)
}

type voiceChoice struct {
	CurrentVoiceID workspace.Optional[string] `json:"currentVoiceId"`
}

type selectedVoice struct {
	Voices         []workspace.Voice `json:"voices"`
	CurrentVoiceID string            `json:"currentVoiceId"`
	UpdatedAt      workspace.Millis  `json:"updatedAt"`
}

// selectVoice answers PUT /voice/current-voice. The choice is the user's own.
func (a *API) selectVoice(r *request) error {
	var in voiceChoice
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	id, err := required("currentVoiceId", in.CurrentVoiceID)
	if err != nil {
		return err
	}
	d, err := a.opts.Store.SelectVoice(r.Context(), r.owner, id)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, selectedVoice{d.Voices, d.Chosen(id), d.UpdatedAt})
}

// required returns the value of a member that must be there.
func required[T any](field string, o workspace.Optional[T]) (T, error) {
	v, ok := o.Get()
	if !ok {
		reason := jsonbody.Missing
		if o.IsNull() {
			reason = jsonbody.Null
		}
		return v, workspace.Invalid(workspace.FieldError{Field: field, Reason: reason})
	}
	return v, nil
}

type providersInfo struct {
	TTS []string `json:"tts"`
	STT []string `json:"stt"`
}

// providersInfo answers GET /voice/providers-info.
func (*API) providersInfo(r *request) error {
	return r.json(http.StatusOK, providersInfo{workspace.TTS.Providers(), workspace.STT.Providers()})
}

// duplexSettings are the duplex voices as administrators see them: never with the
// key.
type duplexSettings struct {
	Voices         []workspace.Voice `json:"voices"`
	CurrentVoiceID string            `json:"currentVoiceId"`
	UpdatedAt      workspace.Millis  `json:"updatedAt"`
	HasAPIKey      bool              `json:"hasApiKey"`
}

func shownDuplex(d workspace.DuplexVoice) duplexSettings {
	return duplexSettings{d.Voices, d.CurrentVoiceID, d.UpdatedAt, d.APIKey != ""}
}

// duplexVoice answers GET /admin/duplex-voice.
func (a *API) duplexVoice(r *request) error {
	d, err := a.opts.Store.DuplexVoice(r.Context())
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, shownDuplex(d))
}

// editDuplexVoice answers PUT /admin/duplex-voice.
func (a *API) editDuplexVoice(r *request) error {
	var in workspace.DuplexVoiceEdit
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	d, err := a.opts.Store.EditDuplexVoice(r.Context(), in)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, shownDuplex(d))
}
