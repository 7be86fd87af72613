package account

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/newos4/relay/pkg/jsonbody"
)

// EndpointOptions configure Endpoints.
type EndpointOptions struct {
	Service *Service
	// Guard is the one that serves the routes.
	Guard *Guard
	// ServerKind is the word by which clients know this kind of server.
	ServerKind string
	// Upstream is asked in a bootstrap; nil is one that is not configured.
	Upstream Upstream
	// InsecureLAN tells clients that plain HTTP is served beyond this host on
	// purpose.
	InsecureLAN bool
	Logger      *slog.Logger
}

// Endpoints are the routes about accounts (section 1.6).
type Endpoints struct {
	service *Service
	guard   *Guard
	prober  *prober
	opts    EndpointOptions
}

// NewEndpoints returns the routes. They have to be closed.
func NewEndpoints(opts EndpointOptions) *Endpoints {
	return &Endpoints{service: opts.Service, guard: opts.Guard, prober: newProber(opts.Upstream, opts.Logger), opts: opts}
}

// Close ends what is asked of the upstream and waits for it.
func (e *Endpoints) Close() { e.prober.close() }

// Routes returns the routes for [Guard.Handler].
func (e *Endpoints) Routes() []Route {
	own := []Route{
		{Method: http.MethodGet, Path: "/api/app/bootstrap", Access: Anyone, Handle: e.bootstrap},
		{Method: http.MethodPost, Path: "/api/app/setup", Access: Anyone, Handle: e.setup},
		{Method: http.MethodPost, Path: "/api/app/login", Access: Anyone, Handle: e.login},
		{Method: http.MethodPost, Path: "/api/app/logout", Access: SignedInOrDue, Handle: e.logout},
		{Method: http.MethodPut, Path: "/api/app/account/credentials", Access: SignedInOrDue, Handle: e.credentials},
	}
	return append(append(own, e.adminRoutes()...), e.nativeRoutes()...)
}

// bootstrapBody is what a client begins with (section 1.6).
type bootstrapBody struct {
	Status              statusBody `json:"status"`
	AuthRequired        bool       `json:"authRequired"`
	Authenticated       bool       `json:"authenticated"`
	User                *User      `json:"user,omitzero"`
	Profiles            []Profile  `json:"profiles"`
	CSRFToken           string     `json:"csrfToken"`
	InsecureLAN         bool       `json:"insecureLan"`
	GroupUploadsEnabled bool       `json:"groupUploadsEnabled"`
	UpstreamReady       bool       `json:"upstreamReady"`
	UpstreamError       string     `json:"upstreamError,omitzero"`
	ServerKind          string     `json:"serverKind"`
	SetupRequired       bool       `json:"setupRequired"`
}

func (e *Endpoints) body(csrf string) bootstrapBody {
	return bootstrapBody{
		Status: statusBody{State: stateReady}, AuthRequired: true, CSRFToken: csrf,
		InsecureLAN: e.opts.InsecureLAN, GroupUploadsEnabled: true, ServerKind: e.opts.ServerKind,
	}
}

// bodyFor returns the bootstrap of a signed-in user, with what the upstream says.
// While a password change is due it is not asked.
func (e *Endpoints) bodyFor(ctx context.Context, user User, csrf string) bootstrapBody {
	body := e.body(csrf)
	body.Authenticated, body.User = true, &user
	if user.MustChangePassword {
		body.Status.State = statePasswordDue
		return body
	}
	p := e.prober.probe(ctx)
	body.Status, body.Profiles = p.status, p.profiles
	body.UpstreamReady, body.UpstreamError = p.problem == "", p.problem
	return body
}

// bootstrap answers GET /api/app/bootstrap.
func (e *Endpoints) bootstrap(w http.ResponseWriter, r *http.Request, _ User) error {
	user, err := e.service.Authenticate(r.Context(), sessionTokenOf(r))
	if err == nil {
		return WriteJSON(w, http.StatusOK, e.bodyFor(r.Context(), user, e.guard.keepCSRF(w, r)))
	}
	if CodeOf(err) != CodeUnauthenticated {
		return err
	}
	setup, err := e.service.NeedsSetup(r.Context())
	if err != nil {
		return err
	}
	body := e.body(e.guard.keepCSRF(w, r))
	body.SetupRequired = setup
	return WriteJSON(w, http.StatusOK, body)
}

// welcome answers with the bootstrap of a user who has just signed in. The session
// that the client had before ends with it.
func (e *Endpoints) welcome(w http.ResponseWriter, r *http.Request, signedIn SignIn) error {
	if err := e.service.Logout(r.Context(), sessionTokenOf(r)); err != nil {
		return err
	}
	csrf := e.guard.startSession(w, r, signedIn.Token)
	return WriteJSON(w, http.StatusOK, e.bodyFor(r.Context(), signedIn.User, csrf))
}

// namePassword is the body of a login, a setup and a new account.
type namePassword struct {
	Username jsonbody.Optional[string] `json:"username"`
	Password jsonbody.Optional[string] `json:"password"`
}

// decodeNamePassword requires both members.
func decodeNamePassword(r *http.Request) (username, password string, err error) {
	var body namePassword
	if err := Decode(r, &body); err != nil {
		return "", "", err
	}
	var missing jsonbody.Violations
	missing.Require("username", body.Username.Set)
	missing.Require("password", body.Password.Set)
	return body.Username.Value, body.Password.Value, missing.Err()
}

// setup answers POST /api/app/setup.
func (e *Endpoints) setup(w http.ResponseWriter, r *http.Request, _ User) error {
	username, password, err := decodeNamePassword(r)
	if err != nil {
		return err
	}
	signedIn, err := e.service.Setup(r.Context(), username, password)
	if err != nil {
		return err
	}
	return e.welcome(w, r, signedIn)
}

// login answers POST /api/app/login. A missing member is one that is empty.
func (e *Endpoints) login(w http.ResponseWriter, r *http.Request, _ User) error {
	var body namePassword
	if err := Decode(r, &body); err != nil {
		return err
	}
	signedIn, err := e.service.Login(r.Context(), Credentials{
		Username: body.Username.Value, Password: body.Password.Value, Address: e.guard.address(r),
	})
	if err != nil {
		return err
	}
	return e.welcome(w, r, signedIn)
}

// signedOut is the answer to a logout.
type signedOut struct {
	OK        bool   `json:"ok"`
	CSRFToken string `json:"csrfToken"`
}

// logout answers POST /api/app/logout.
func (e *Endpoints) logout(w http.ResponseWriter, r *http.Request, _ User) error {
	if err := Decode(r, &struct{}{}); err != nil {
		return err
	}
	if err := e.service.Logout(r.Context(), sessionTokenOf(r)); err != nil {
		return err
	}
	e.guard.endSession(w, r)
	return WriteJSON(w, http.StatusOK, signedOut{OK: true, CSRFToken: e.guard.rotateCSRF(w, r)})
}

// credentialsBody is the body of a change of the own credentials.
type credentialsBody struct {
	CurrentPassword jsonbody.Optional[string] `json:"currentPassword"`
	NewPassword     jsonbody.Optional[string] `json:"newPassword"`
	Username        jsonbody.Optional[string] `json:"username"`
}

// changedCredentials is the answer to it.
type changedCredentials struct {
	User               User   `json:"user"`
	MustChangePassword bool   `json:"mustChangePassword"`
	CSRFToken          string `json:"csrfToken"`
}

// credentials answers PUT /api/app/account/credentials.
func (e *Endpoints) credentials(w http.ResponseWriter, r *http.Request, _ User) error {
	var body credentialsBody
	if err := Decode(r, &body); err != nil {
		return err
	}
	var missing jsonbody.Violations
	missing.Require("currentPassword", body.CurrentPassword.Set)
	missing.Require("newPassword", body.NewPassword.Set)
	if err := missing.Err(); err != nil {
		return err
	}
	change := NewCredentials{Current: body.CurrentPassword.Value, New: body.NewPassword.Value, Address: e.guard.address(r)}
	if body.Username.Set {
		change.Username = &body.Username.Value
	}
	signedIn, err := e.service.ChangeCredentials(r.Context(), sessionTokenOf(r), change)
	if err != nil {
		return err
	}
	csrf := e.guard.startSession(w, r, signedIn.Token)
	return WriteJSON(w, http.StatusOK, changedCredentials{User: signedIn.User, CSRFToken: csrf})
}
