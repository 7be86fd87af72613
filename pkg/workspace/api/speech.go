package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// speech serves the settings of one kind of speech.
type speech struct {
	api  *API
	kind workspace.SpeechKind
}

func (a *API) speechRoutes(kind workspace.SpeechKind) []account.Route {
	s, base := speech{a, kind}, "/"+string(kind)+"/settings"
	return []account.Route{
		on(http.MethodGet, base, s.list),
		forAdmins(on(http.MethodPut, base+"/active", s.activate)),
		forAdmins(on(http.MethodPut, base+"/{provider}", s.set)),
		forAdmins(on(http.MethodDelete, base+"/{provider}", s.remove)),
		forAdmins(on(http.MethodDelete, base+"/{provider}/secret/{secret}", s.removeSecret)),
		forAdmins(on(http.MethodDelete, base+"/{provider}/base-url-preset", s.removeBaseURL)),
	}
}

type speechList struct {
	ActiveProvider string           `json:"activeProvider"`
	Settings       []speechProvider `json:"settings"`
}

type speechProvider struct {
	Provider string                    `json:"provider"`
	Settings map[string]jsontext.Value `json:"settings"`
	// Secrets holds their names, each with [workspace.StoredSecret].
	Secrets map[string]string `json:"secrets"`
}

// answer answers with the settings as they are after a request.
func (s speech) answer(r *request, settings workspace.SpeechSettings, err error) error {
	if err != nil {
		return err
	}
	list := speechList{ActiveProvider: settings.Active(s.kind), Settings: []speechProvider{}}
	for _, name := range slices.Sorted(maps.Keys(settings.Providers)) {
		p := settings.Providers[name]
		list.Settings = append(list.Settings, speechProvider{name, p.Settings, p.Shown()})
	}
	return r.json(http.StatusOK, list)
}

// list answers GET /tts/settings and GET /stt/settings (section 3.9).
func (s speech) list(r *request) error {
	settings, err := s.api.opts.Store.Speech(r.Context(), s.kind)
	return s.answer(r, settings, err)
}

// edit changes the settings and answers with them.
func (s speech) edit(r *request, change func(workspace.SpeechSettings) (workspace.SpeechSettings, error)) error {
	settings, err := s.api.opts.Store.EditSpeech(r.Context(), s.kind, change)
	return s.answer(r, settings, err)
}

type activeProvider struct {
	Provider workspace.Optional[string] `json:"provider"`
}

// activate answers PUT …/active.
func (s speech) activate(r *request) error {
	var in activeProvider
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	provider, err := required("provider", in.Provider)
	if err != nil {
		return err
	}
	return s.edit(r, func(settings workspace.SpeechSettings) (workspace.SpeechSettings, error) {
		return settings.Activate(s.kind, provider)
	})
}

// set answers PUT …/:provider.
func (s speech) set(r *request) error {
	var in workspace.SpeechEdit
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	return s.edit(r, func(settings workspace.SpeechSettings) (workspace.SpeechSettings, error) {
		return settings.Set(s.kind, r.PathValue("provider"), in)
	})
}

// remove answers DELETE …/:provider.
func (s speech) remove(r *request) error {
	return s.drop(r, func(settings workspace.SpeechSettings) workspace.SpeechSettings {
		return settings.Remove(s.kind, r.PathValue("provider"))
	})
}

// removeSecret answers DELETE …/:provider/secret/:secret.
func (s speech) removeSecret(r *request) error {
	return s.drop(r, func(settings workspace.SpeechSettings) workspace.SpeechSettings {
		return settings.RemoveSecret(r.PathValue("provider"), r.PathValue("secret"))
	})
}

// removeBaseURL answers DELETE …/:provider/base-url-preset?url=.
func (s speech) removeBaseURL(r *request) error {
	return s.drop(r, func(settings workspace.SpeechSettings) workspace.SpeechSettings {
		return settings.RemoveBaseURL(r.PathValue("provider"), r.URL.Query().Get("url"))
	})
}

// drop is edit for what always succeeds: what is not there is gone already.
func (s speech) drop(r *request, change func(workspace.SpeechSettings) workspace.SpeechSettings) error {
	if err := r.noMembers(); err != nil {
		return err
	}
	return s.edit(r, func(settings workspace.SpeechSettings) (workspace.SpeechSettings, error) {
		return change(settings), nil
	})
}
