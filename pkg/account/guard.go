package account

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/forwarded"
	"github.com/newos4/relay/pkg/secretfile"
)

// Prefix is the path below which every write needs Origin and token.
const Prefix = "/api/app/"

// Limits of JSON bodies in bytes (section 1.4).
const (
	// MaxBody is the limit where a route has no other.
	MaxBody = 2 << 20
	// MaxAvatarBody is the limit of routes whose bodies carry avatars: agents and
	// conversations.
	MaxAvatarBody = 4 << 20
)

// Access says who may use a route (section 1.5).
type Access int

// Kinds of access. The zero Access is the usual one.
const (
	// SignedIn is for users with no password change due.
	SignedIn Access = iota
	// SignedInOrDue is for users, also while a password change is due.
	SignedInOrDue
	// AdminOnly is for administrators with no password change due.
	AdminOnly
	// Anyone is for everybody; the handler gets the zero User.
	Anyone
)

// Handler answers a request of a user. It either answers or returns an error and
// leaves the answer to the guard: a [Refusal] or [Error], violations of a schema,
// or anything else for an internal error that is logged.
type Handler func(w http.ResponseWriter, r *http.Request, user User) error

// Route is one method of one path.
type Route struct {
	// Method is the HTTP method; GET answers HEAD too.
	Method string
	// Path is a pattern of [http.ServeMux] without method and host.
	Path string
	// Access says who may use the route.
	Access Access
	// Limit of the JSON body in bytes; 0 is [MaxBody].
	Limit int64
	// RawBody leaves the body to the handler, which bounds it and reads it in its
	// own form.
	RawBody bool
	// Handle answers.
	Handle Handler
}

// GuardOptions configure a Guard.
type GuardOptions struct {
	Service *Service
	// Secret signs the CSRF cookies: [secretfile.Size] bytes that survive restarts.
	Secret []byte
	// Port is the one that the server listens on.
	Port int
	// AllowedHosts are hosts besides loopback and private addresses that are this
	// server, with or without port.
	AllowedHosts []string
	// TrustedProxies are the peers whose X-Forwarded-For and X-Forwarded-Proto are
	// believed.
	TrustedProxies []netip.Prefix
	// SecureCookies marks cookies Secure also where the server sees no TLS.
	SecureCookies bool
	// Now is the clock.
	Now func() time.Time
	// Logger gets one line per request.
	Logger *slog.Logger
}

// Guard puts each request through the checks of section 1.4 in their order: Host;
// Origin and CSRF; body; session and password change; role. It keeps nothing of a
// request.
type Guard struct {
	opts   GuardOptions
	hosts  hosts
	signer signer
}

// NewGuard returns a Guard. An allowed host that is none, or a secret of another
// length, is an error.
func NewGuard(opts GuardOptions) (*Guard, error) {
	if len(opts.Secret) != secretfile.Size {
		return nil, fmt.Errorf("the secret for signing has %d bytes, not %d", len(opts.Secret), secretfile.Size)
	}
	hosts, err := newHosts(opts.Port, opts.AllowedHosts)
	if err != nil {
		return nil, err
	}
	return &Guard{opts: opts, hosts: hosts, signer: signer{bytes.Clone(opts.Secret)}}, nil
}

// Handler serves the routes and refuses all other paths. A route that stands
// twice, or a malformed one, is a mistake of the program and panics.
func (g *Guard) Handler(routes ...Route) http.Handler {
	paths := make(map[string]*endpoint)
	mux := http.NewServeMux()
	for _, route := range routes {
		known := paths[route.Path]
		if known == nil {
			known = &endpoint{guard: g, methods: make(map[string]Route)}
			paths[route.Path] = known
			mux.Handle(route.Path, known)
		}
		known.add(route)
	}
	if paths["/"] == nil {
		mux.Handle("/", &endpoint{guard: g})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(mux, w, r) })
}

// serve does what every request has in common, whatever its path.
func (g *Guard) serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	e := &exchange{ResponseWriter: w, guard: g, r: r, started: g.opts.Now()}
	defer e.finish()
	defer e.recover()
	SetSecurityHeaders(e.Header(), g.scheme(r))
	if err := g.checkSource(r); err != nil {
		e.refuse(err)
		return
	}
	if !isClean(r.URL.Path) || !isClean(r.URL.EscapedPath()) {
		// The mux would redirect to another path.
		e.refuse(notFound())
		return
	}
	mux.ServeHTTP(e, r)
}

// checkSource holds a request to the rules of where it comes from: steps 1 and 2.
func (g *Guard) checkSource(r *http.Request) error {
	scheme := g.scheme(r)
	if err := g.hosts.checkHost(r, scheme); err != nil {
		return err
	}
	if !isWrite(r.Method) {
		return nil
	}
	if !isApp(r.URL.Path) {
		// Native clients send no Origin and have no token (section 1.6).
		if len(r.Header["Origin"]) == 0 {
			return nil
		}
		return g.hosts.checkOrigin(r, scheme)
	}
	if err := g.hosts.checkOrigin(r, scheme); err != nil {
		return err
	}
	return g.signer.check(r)
}

func isWrite(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

func isApp(path string) bool {
	return strings.HasPrefix(path, Prefix) || path == strings.TrimSuffix(Prefix, "/")
}

func isClean(p string) bool { return strings.HasPrefix(p, "/") && p == path.Clean(p) }

func notFound() error { return errorf(CodeNotFound, "nothing is served at this path") }

// scheme returns the scheme that the client used.
func (g *Guard) scheme(r *http.Request) string { return forwarded.Scheme(r, g.opts.TrustedProxies) }

func (g *Guard) address(r *http.Request) string {
	return forwarded.Key(forwarded.Client(r, g.opts.TrustedProxies))
}

func (g *Guard) isSecure(r *http.Request) bool {
	return g.opts.SecureCookies || g.scheme(r) == forwarded.HTTPS
}

// startSession gives the client a session and a fresh token, which it returns.
func (g *Guard) startSession(w http.ResponseWriter, r *http.Request, token Token) string {
	g.giveSession(w, r, token)
	return g.rotateCSRF(w, r)
}

// giveSession gives the client a session.
func (g *Guard) giveSession(w http.ResponseWriter, r *http.Request, token Token) {
	setCookie(w, SessionCookie, string(token), SessionLife, g.isSecure(r))
}

// endSession takes the client's session away.
func (g *Guard) endSession(w http.ResponseWriter, r *http.Request) {
	setCookie(w, SessionCookie, "", 0, g.isSecure(r))
}

// rotateCSRF gives the client another token, which it returns.
func (g *Guard) rotateCSRF(w http.ResponseWriter, r *http.Request) string {
	token := newCSRFToken()
	setCookie(w, CSRFCookie, g.signer.sign(token), CSRFLife, g.isSecure(r))
	return token
}

// keepCSRF lets the client keep a valid token for another [CSRFLife], or gives it
// one.
func (g *Guard) keepCSRF(w http.ResponseWriter, r *http.Request) string {
	token, ok := g.signer.tokenOf(r)
	if !ok {
		return g.rotateCSRF(w, r)
	}
	setCookie(w, CSRFCookie, g.signer.sign(token), CSRFLife, g.isSecure(r))
	return token
}

// authenticate is steps 4 and 5.
func (g *Guard) authenticate(r *http.Request, access Access) (User, error) {
	if access == Anyone {
		return User{}, nil
	}
	user, err := g.opts.Service.Authenticate(r.Context(), sessionTokenOf(r))
	switch {
	case err != nil:
		return User{}, err
	case user.MustChangePassword && access != SignedInOrDue:
		return User{}, errorf(CodePasswordDue, "the user has to change the password first")
	case access == AdminOnly && !user.IsAdmin():
		return User{}, errorf(CodeAdminRequired, "the route is for administrators")
	}
	return user, nil
}

// endpoint is one path with its methods; without any it is no path.
type endpoint struct {
	guard   *Guard
	methods map[string]Route
	allowed []string
}

func (p *endpoint) add(route Route) {
	if _, ok := p.methods[route.Method]; ok {
		panic("account: a route stands twice: " + route.Method + " " + route.Path)
	}
	if route.Limit == 0 {
		route.Limit = MaxBody
	}
	p.methods[route.Method] = route
	p.allowed = append(p.allowed, route.Method)
	if route.Method == http.MethodGet {
		p.methods[http.MethodHead] = route
		p.allowed = append(p.allowed, http.MethodHead)
	}
}

// ServeHTTP answers a request that comes from where it may: steps 3 to 6.
func (p *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, ok := w.(*exchange)
	if !ok {
		panic("account: an endpoint stands outside its guard")
	}
	e.route = r.Pattern
	if err := p.answer(e, r); err != nil {
		e.refuse(err)
	}
}

func (p *endpoint) answer(e *exchange, r *http.Request) error {
	if len(p.methods) == 0 {
		return notFound()
	}
	route, ok := p.methods[r.Method]
	if !ok {
		return p.methodNotAllowed()
	}
	if isWrite(r.Method) && !route.RawBody {
		body, err := readBody(e, r, route.Limit)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	user, err := p.guard.authenticate(r, route.Access)
	if err != nil {
		return err
	}
	e.user = user.ID
	return route.Handle(e, r, user)
}

func (p *endpoint) methodNotAllowed() error {
	refusal := refusalOf(errorf(CodeMethodNotAllowed, "the method is not served"))
	refusal.Header = map[string]string{"Allow": strings.Join(p.allowed, ", ")}
	return refusal
}

// isClientGone reports whether err is the client's who went away while it waited.
func isClientGone(r *http.Request, err error) bool {
	return err != nil && r.Context().Err() != nil && errors.Is(err, r.Context().Err())
}
