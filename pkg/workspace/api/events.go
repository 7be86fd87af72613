package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// answerSlack is how long the answer to a request that waited may take.
const answerSlack = 30 * time.Second

type eventPage struct {
	Events []workspace.Event `json:"events"`
	Cursor int64             `json:"cursor"`
}

// events answers GET /events (section 4).
func (a *API) events(r *request) error {
	after := max(r.queryInt("after", 0), 0)
	wait := r.wait()
	if wait == 0 {
		page, err := a.opts.Store.Events(r.Context(), r.owner, after, workspace.EventPage)
		return a.page(r, page, err)
	}
	r.extend(wait + answerSlack)
	page, err := a.waitEvents(r, after, wait)
	if err != nil {
		return err
	}
	return a.page(r, page, a.stillSignedIn(r))
}

func (*API) page(r *request, page store.EventPage, err error) error {
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, eventPage{page.Events, page.Cursor})
}

// wait returns how long the client would wait: its whole or broken number of
// seconds, at most 25, and nothing for what is no such number (section 4.4).
func (r *request) wait() time.Duration {
	seconds, err := strconv.ParseFloat(r.URL.Query().Get("wait"), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, workspace.MaxEventWaitSeconds) * float64(time.Second))
}

// waitEvents waits until there is something, the time is over, or the server
// stops, which answers with nothing.
func (a *API) waitEvents(r *request, after int64, wait time.Duration) (store.EventPage, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(a.stopped, func() { cancel(errStopping) })()
	page, err := a.opts.Store.WaitEvents(ctx, r.owner, after, workspace.EventPage, wait)
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return store.EventPage{Events: []workspace.Event{}, Cursor: after}, nil
	}
	return page, err
}

var errStopping = errors.New("the server stops")

// stillSignedIn refuses a user whose sessions ended while the request waited.
func (a *API) stillSignedIn(r *request) error {
	now, err := a.users.User(r.Context(), r.user.ID)
	gone := errors.Is(err, account.ErrNoRow) || err == nil && (!now.Enabled || now.UpdatedAt != r.user.UpdatedAt)
	if gone {
		return &account.Error{Code: account.CodeUnauthenticated, Message: "the account was changed while the request waited"}
	}
	if err != nil {
		return fmt.Errorf("looking at the account again: %w", err)
	}
	return nil
}
