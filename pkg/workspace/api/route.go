package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// prefix is the path below which all routes of this package are.
const prefix = "/api/app"

// transferTime bounds how long the bytes of an upload or of a file may take. The
// server's usual bounds are for small requests.
const transferTime = 15 * time.Minute

// request is one request of a signed-in user.
type request struct {
	*http.Request

	w     http.ResponseWriter
	user  account.User
	owner workspace.OwnerID
}

// handle is what answers a request, or says in its error why not.
type handle func(*request) error

// on returns the route of a method and a path below the prefix.
func on(method, path string, h handle) account.Route {
	return account.Route{Method: method, Path: prefix + path, Handle: func(w http.ResponseWriter, r *http.Request, user account.User) error {
		return refusal(h(&request{Request: r, w: w, user: user, owner: workspace.OwnerID(user.ID)}))
	}}
}

// forAdmins returns the route, for administrators alone.
func forAdmins(route account.Route) account.Route {
	route.Access = account.AdminOnly
	return route
}

// withAvatars returns the route with the limit of bodies that carry portraits.
func withAvatars(route account.Route) account.Route {
	route.Limit = account.MaxAvatarBody
	return route
}

// Routes returns the routes for account's guard. What is not served is not among
// them (section 1.7).
func (a *API) Routes() []account.Route {
	routes := []account.Route{
		on(http.MethodGet, "/capabilities", a.capabilities),
		on(http.MethodGet, "/team-presets", a.presets),
		on(http.MethodGet, "/events", a.events),

		on(http.MethodGet, "/agents/sources", a.sources),
		on(http.MethodGet, "/agents", a.agents),
		withAvatars(on(http.MethodPost, "/agents", a.createAgent)),
		withAvatars(on(http.MethodPatch, "/agents/{id}", a.editAgent)),

		on(http.MethodGet, "/conversations", a.conversations),
		withAvatars(on(http.MethodPost, "/conversations", a.createGroup)),
		on(http.MethodGet, "/conversations/{id}", a.conversation),
		withAvatars(on(http.MethodPatch, "/conversations/{id}", a.editConversation)),
		on(http.MethodGet, "/conversations/{id}/messages", a.messages),
		withAvatars(on(http.MethodPost, "/conversations/{id}/messages", a.send)),
		on(http.MethodPut, "/conversations/{id}/read", a.markRead),
		on(http.MethodPost, "/conversations/{id}/agents/{agent}/stop", a.stopMember),

		on(http.MethodPost, "/runs/{id}/stop", a.stopRun),
		on(http.MethodPost, "/runs/{id}/reconcile", a.reconcile),
		on(http.MethodPost, "/interactions/{id}/respond", a.respond),

		on(http.MethodGet, "/files", a.library),
		on(http.MethodGet, "/files/stats", a.libraryStats),
		on(http.MethodGet, "/files/{file}/download", a.download),
		on(http.MethodGet, "/files/{file}/preview", a.preview),
		on(http.MethodPost, "/message-files/query", a.messageFiles),

		on(http.MethodGet, "/session-context/{session}", a.sessionContext),
		on(http.MethodPut, "/session-context/{session}", a.putSessionContext),
	}
	upload := on(http.MethodPost, "/uploads", a.upload)
	upload.RawBody = true
	routes = append(routes, upload, a.describe(), health())
	if a.opts.Upstreams != nil {
		routes = append(routes, a.nodeRoutes()...)
	}
	if a.opts.Voice {
		routes = append(routes, a.voiceRoutes()...)
	}
	return routes
}

// json answers with a value.
func (r *request) json(status int, value any) error {
	return account.WriteJSON(r.w, status, value)
}

// ok answers a write that has nothing else to say.
func (r *request) ok(status int) error {
	return r.json(status, okBody{OK: true})
}

// okBody is the answer to a write that has nothing else to say.
type okBody struct {
	OK bool `json:"ok"`
}

// noMembers is the body of a request that says everything by its path.
func (r *request) noMembers() error { return account.Decode(r.Request, &struct{}{}) }

// pathID returns an id of the path in lower case. What is no id names no row.
func pathID[ID ~string](r *request, name string) (ID, error) {
	id, ok := workspace.ParseID[ID](r.PathValue(name))
	if !ok {
		return "", workspace.Fail(workspace.CodeRowNotFound)
	}
	return id, nil
}

// queryInt returns a number of the query. One that is missing, no whole number or
// out of bounds counts as other (sections 3.3 and 4.1).
func (r *request) queryInt(name string, other int64) int64 {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil {
		return other
	}
	return n
}

// extend lets a transfer take longer than the server's other requests. A writer
// without deadlines has none to extend.
func (r *request) extend(d time.Duration) {
	control := http.NewResponseController(r.w)
	deadline := time.Now().Add(d) // of the connection, whose clock is the system's
	_ = control.SetReadDeadline(deadline)
	_ = control.SetWriteDeadline(deadline)
}
