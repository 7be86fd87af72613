package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

type conversationList struct {
	Conversations []workspace.ConversationSummary `json:"conversations"`
	Cursor        int64                           `json:"cursor"`
}

type conversationBody struct {
	Conversation workspace.ConversationSummary `json:"conversation"`
}

type conversationDetail struct {
	Conversation     workspace.ConversationSummary `json:"conversation"`
	Messages         []workspace.Message           `json:"messages"`
	HiddenMessageIDs []workspace.MessageID         `json:"hiddenMessageIds"`
	Run              *workspace.Run                `json:"run"`
	Interactions     []workspace.Interaction       `json:"interactions"`
	Context          jsontext.Value                `json:"context"`
}

// conversations answers GET /conversations (section 3.2).
func (a *API) conversations(r *request) error {
	list, err := a.opts.Store.Conversations(r.Context(), r.owner)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, conversationList{list.Conversations, list.Cursor})
}

// createGroup answers POST /conversations.
func (a *API) createGroup(r *request) error {
	var in workspace.NewGroup
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	c, err := a.opts.Store.CreateGroup(r.Context(), r.owner, in)
	if err != nil {
		return err
	}
	return r.json(http.StatusCreated, conversationBody{c})
}

// conversation answers GET /conversations/:id.
func (a *API) conversation(r *request) error {
	id, err := pathID[workspace.ConversationID](r, "id")
	if err != nil {
		return err
	}
	d, err := a.opts.Store.Conversation(r.Context(), r.owner, id)
	if err != nil {
		return err
	}
	if d.Context == nil {
		d.Context = jsontext.Value("null")
	}
	return r.json(http.StatusOK, conversationDetail{
		Conversation: d.Conversation, Messages: d.Messages, HiddenMessageIDs: d.HiddenMessageIDs,
		Run: d.Run, Interactions: d.Interactions, Context: d.Context,
	})
}

// editConversation answers PATCH /conversations/:id.
func (a *API) editConversation(r *request) error {
	id, err := pathID[workspace.ConversationID](r, "id")
	if err != nil {
		return err
	}
	var in workspace.ConversationPatch
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	c, stopped, err := a.opts.Store.EditConversation(r.Context(), r.owner, id, in)
	if err != nil {
		return err
	}
	a.carryOut(stopped)
	return r.json(http.StatusOK, conversationBody{c})
}

// markRead answers PUT /conversations/:id/read (section 3.4).
func (a *API) markRead(r *request) error {
	id, err := pathID[workspace.ConversationID](r, "id")
	if err != nil {
		return err
	}
	var in workspace.ReadMarker
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	c, err := a.opts.Store.MarkRead(r.Context(), r.owner, id, in)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, conversationBody{c})
}

// carryOut hands to the runtime what a write left to do.
func (a *API) carryOut(stopped store.Stopped) {
	if len(stopped.Interrupt) > 0 {
		a.opts.Runtime.Interrupt(stopped.Interrupt)
	}
	a.opts.Runtime.Wake()
}
