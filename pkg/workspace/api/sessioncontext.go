package api

import (
	"net/http"
	"unicode/utf8"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// profileHeader names the profile of a native session (section 3.10).
const profileHeader = "X-Hermes-Profile"

// maxSessionID bounds the id of a native session, in code points.
const maxSessionID = 512

type snapshotBody struct {
	Snapshot *workspace.SessionSnapshot `json:"snapshot"`
}

// sessionKey returns the profile and the id of a request about a native session. A
// session that belongs to a conversation of this server, whosever it is, is no
// native one (section 9.3).
func (a *API) sessionKey(r *request) (profile, id string, err error) {
	profile = workspace.ProfileOf(r.URL.Query().Get("profile"), r.Header.Get(profileHeader))
	id = r.PathValue("session")
	bounds := []struct {
		field, value string
		limit        int
	}{{"id", id, maxSessionID}, {"profile", profile, workspace.MaxProfile}}
	for _, b := range bounds {
		if !utf8.ValidString(b.value) || utf8.RuneCountInString(b.value) > b.limit {
			return "", "", workspace.Invalid(workspace.FieldError{Field: b.field, Reason: "过长或不是有效的文本"})
		}
	}
	hidden, err := a.opts.Store.IsHiddenSession(r.Context(), id)
	if err != nil {
		return "", "", err
	}
	if hidden {
		return "", "", workspace.Fail(workspace.CodeSessionNotFound)
	}
	return profile, id, nil
}

// sessionContext answers GET /session-context/:id.
func (a *API) sessionContext(r *request) error {
	profile, id, err := a.sessionKey(r)
	if err != nil {
		return err
	}
	snapshot, err := a.opts.Store.SessionContext(r.Context(), r.owner, profile, id)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, snapshotBody{snapshot})
}

// putSessionContext answers PUT /session-context/:id.
func (a *API) putSessionContext(r *request) error {
	profile, id, err := a.sessionKey(r)
	if err != nil {
		return err
	}
	var in workspace.SessionContext
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	snapshot, err := a.opts.Store.PutSessionContext(r.Context(), r.owner, profile, id, in)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, snapshotBody{&snapshot})
}
