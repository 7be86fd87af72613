package api

import (
	"net/http"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

type messageList struct {
	Messages []workspace.Message `json:"messages"`
}

type runBody struct {
	Run workspace.Run `json:"run"`
}

// messages answers GET /conversations/:id/messages (section 3.3).
func (a *API) messages(r *request) error {
	id, err := pathID[workspace.ConversationID](r, "id")
	if err != nil {
		return err
	}
	limit := min(r.queryInt("limit", workspace.HistoryPage), workspace.MaxHistoryPage)
	if limit < 1 {
		limit = workspace.HistoryPage
	}
	page, err := a.opts.Store.Messages(r.Context(), r.owner, id, r.queryInt("before", 0), int(limit))
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, messageList{page})
}

// send answers POST /conversations/:id/messages (section 3.3).
func (a *API) send(r *request) error {
	id, err := pathID[workspace.ConversationID](r, "id")
	if err != nil {
		return err
	}
	var in workspace.SendMessage
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	run, err := a.opts.Store.Send(r.Context(), r.owner, id, in)
	if err != nil {
		return err
	}
	a.opts.Runtime.Wake()
	return r.json(http.StatusAccepted, runBody{run})
}
