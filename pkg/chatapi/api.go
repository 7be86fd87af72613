// Package chatapi serves the newOS4 chat contract over HTTP.
//
// It promises the order of checks, the bodies and the headers of newos4-chat(7)
// for every request under every path it is given: who is not authenticated
// touches no disk, what is refused says why in JSON, no path redirects, and
// nothing of another's token, text or file name reaches an answer or the log.
package chatapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// RetiredPath is answered with [chat.CodeGone] whatever the method, without a
// token and without touching disk or limits (section 1): by it a server of the
// contract can be told from others.
const RetiredPath = "/api/debug/agent-replies.php"

// Store is what the API needs of the storage.
type Store interface {
	Append(ctx context.Context, id chat.ThreadID, post storage.Post) (storage.Receipt, error)
	Poll(id chat.ThreadID, since int64) (chat.Page, error)
	PostsAfter(id chat.ThreadID, epoch int64) ([]int64, error)
}

// Options configure an API.
type Options struct {
	// Space is the name in the routes.
	Space string
	// Limits bound what a browser may send.
	Limits Limits
	// TrustedProxies are the peers whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// AllowedOrigins are the origins of other hosts that may use the API.
	AllowedOrigins []string
	// Now is the clock.
	Now func() time.Time
	// Logger gets one line per request.
	Logger *slog.Logger
	// Served is told of each request that was answered; nil is not told.
	Served func(Served)
}

// Served tells of a request that was answered.
type Served struct {
	// Route is the name of the route: post, poll, agent-replies, or none for
	// every path that is no route.
	Route  string
	Status int
	// Code is the error's of the contract, empty where nothing was refused.
	Code chat.Code
	Took time.Duration
}

// Limits bound what a browser may send (section 4).
type Limits struct {
	Text    int // code points
	Body    int // bytes
	Threads int // what the storage allows; the log warns before it is reached
}

// Names of the windows on accepted posts (section 7).
const (
	WindowThread    = "thread"
	WindowIP        = "ip"
	WindowIPThreads = "ip_new_threads"
)

// API answers the requests of browsers. It implements [http.Handler].
type API struct {
	opts    Options // but for the limits
	limits  atomic.Pointer[Limits]
	store   Store
	limiter *ratelimit.Limiter
	routes  map[string]route
	data    string // the path below which nothing is served
	origins map[string]bool
	started time.Time
	// common are the headers of every answer. Answers share the values.
	common http.Header
	bodies bodyPool
}

// route is one path of the contract.
type route struct {
	name    string // for the log
	methods []string
	handle  func(*exchange) error
}

// New returns an API over the store. The limiter has the three windows that are
// named here.
func New(opts Options, store Store, limiter *ratelimit.Limiter) *API {
	base := "/spaces/" + opts.Space
	a := &API{
		opts: opts, store: store, limiter: limiter, data: base + "/data",
		origins: make(map[string]bool), common: commonHeaders(), started: opts.Now(),
	}
	for _, origin := range opts.AllowedOrigins {
		a.origins[origin] = true
	}
	a.SetLimits(opts.Limits)
	post := route{name: "post", methods: []string{http.MethodPost}, handle: a.post}
	poll := route{name: "poll", methods: []string{http.MethodGet, http.MethodHead}, handle: a.poll}
	retired := route{name: "agent-replies", handle: gone}
	a.routes = map[string]route{
		base + "/api/chat/post.php": post,
		base + "/api/chat/poll.php": poll,
		base + RetiredPath:          retired,
		RetiredPath:                 retired,
	}
	return a
}

// SetLimits replaces the limits. Requests that are being answered may still go
// by the old ones.
func (a *API) SetLimits(limits Limits) { a.limits.Store(&limits) }

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &exchange{api: a, w: w, r: r, started: a.opts.Now(), ip: clientAddr(r, a.opts.TrustedProxies)}
	defer e.finish()
	defer e.recover()
	if err := a.dispatch(e); err != nil {
		e.refuse(err)
	}
}

func (a *API) dispatch(e *exchange) error {
	a.setCommonHeaders(e)
	found, ok := a.routes[e.r.URL.Path]
	if !ok {
		e.route = "none"
		return a.unknownPath(e.r)
	}
	e.route = found.name
	if len(found.methods) == 0 || slices.Contains(found.methods, e.r.Method) {
		return found.handle(e)
	}
	if a.isPreflight(e.r) {
		return a.preflight(e, found.methods)
	}
	return methodNotAllowed(found.methods)
}

// poll answers GET and HEAD of poll.php (section 5).
func (a *API) poll(e *exchange) error {
	id, err := authenticate(e.r)
	if err != nil {
		return err
	}
	e.thread = id
	since, err := sinceOf(e.r)
	if err != nil {
		return err
	}
	page, err := a.store.Poll(id, since)
	if err != nil {
		return err
	}
	e.reply(http.StatusOK, page.AppendJSON)
	return nil
}

// authenticate returns the thread of the request's token. It looks at the
// header alone.
func authenticate(r *http.Request) (chat.ThreadID, error) {
	values := r.Header["X-Chat-Token"]
	if len(values) != 1 {
		return "", chat.Errorf(chat.CodeBadToken, "the request must carry one X-Chat-Token header")
	}
	token, err := chat.ParseToken(values[0])
	if err != nil {
		return "", err
	}
	return token.Thread(), nil
}

// sinceOf returns the since parameter, which may be absent but not repeated.
func sinceOf(r *http.Request) (int64, error) {
	raw := r.URL.RawQuery
	if raw == "" {
		return 0, nil
	}
	// The query of nearly every poll is this parameter alone and needs no parser.
	if digits, ok := strings.CutPrefix(raw, "since="); ok && strings.Trim(digits, "0123456789") == "" {
		return chat.ParseSince(digits)
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return 0, chat.Errorf(chat.CodeBadRequest, "the query is malformed")
	}
	values, given := query["since"]
	if !given {
		return 0, nil
	}
	if len(values) > 1 {
		return 0, chat.Errorf(chat.CodeBadRequest, "since stands more than once in the query")
	}
	return chat.ParseSince(values[0])
}
