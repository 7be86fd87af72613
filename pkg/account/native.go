package account

import (
	"net/http"

	"github.com/newos4/relay/pkg/jsonbody"
)

// basicProvider is the one way to sign in that native clients are offered.
const basicProvider = "basic"

// nativeRoutes are the sign-in of native clients, in the words of the upstream's
// own (section 1.6). They stand outside [Prefix] and need no token.
func (e *Endpoints) nativeRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/status", Access: Anyone, Handle: e.nativeStatus},
		{Method: http.MethodGet, Path: "/api/auth/providers", Access: Anyone, Handle: e.nativeProviders},
		{Method: http.MethodPost, Path: "/auth/password-login", Access: Anyone, Handle: e.nativeLogin},
		{Method: http.MethodGet, Path: "/api/auth/me", Access: SignedInOrDue, Handle: e.nativeMe},
		{Method: http.MethodPost, Path: "/auth/logout", Access: Anyone, Handle: e.nativeLogout},
	}
}

type nativeStatus struct {
	Overall        string `json:"overall"`
	AuthRequired   bool   `json:"auth_required"`
	GatewayRunning bool   `json:"gateway_running"`
	ServerKind     string `json:"server_kind"`
}

func (e *Endpoints) nativeStatus(w http.ResponseWriter, _ *http.Request, _ User) error {
	return WriteJSON(w, http.StatusOK, nativeStatus{stateReady, true, true, e.opts.ServerKind})
}

type nativeProvider struct {
	Name             string `json:"name"`
	DisplayName      string `json:"display_name"`
	Type             string `json:"type"`
	SupportsPassword bool   `json:"supports_password"`
}

type nativeProviders struct {
	Providers []nativeProvider `json:"providers"`
}

func (e *Endpoints) nativeProviders(w http.ResponseWriter, _ *http.Request, _ User) error {
	return WriteJSON(w, http.StatusOK, nativeProviders{[]nativeProvider{{basicProvider, "用户名和密码", "password", true}}})
}

// nativeLoginBody may name the provider and the page to go to, which clients of
// the upstream send; there is only one provider, and no page.
type nativeLoginBody struct {
	namePassword

	Provider jsonbody.Optional[string] `json:"provider"`
	Next     jsonbody.Optional[string] `json:"next"`
}

type nativeSignedIn struct {
	OK                 bool   `json:"ok"`
	MustChangePassword bool   `json:"must_change_password"`
	ServerKind         string `json:"server_kind"`
}

func (e *Endpoints) nativeLogin(w http.ResponseWriter, r *http.Request, _ User) error {
	var body nativeLoginBody
	if err := Decode(r, &body); err != nil {
		return err
	}
	if body.Provider.Set && body.Provider.Value != basicProvider {
		return jsonbody.Violations{{Field: "provider", Reason: "须为 " + basicProvider}}
	}
	signedIn, err := e.service.Login(r.Context(), Credentials{
		Username: body.Username.Value, Password: body.Password.Value, Address: e.guard.address(r),
	})
	if err != nil {
		return err
	}
	if err := e.service.Logout(r.Context(), sessionTokenOf(r)); err != nil {
		return err
	}
	// The client's token stays as it is, because this answer has no place for
	// another.
	e.guard.giveSession(w, r, signedIn.Token)
	return WriteJSON(w, http.StatusOK, nativeSignedIn{true, signedIn.User.MustChangePassword, e.opts.ServerKind})
}

type nativeMe struct {
	UserID             string `json:"user_id"`
	Username           string `json:"username"`
	DisplayName        string `json:"display_name"`
	Provider           string `json:"provider"`
	Role               Role   `json:"role"`
	MustChangePassword bool   `json:"must_change_password"`
	ServerKind         string `json:"server_kind"`
}

func (e *Endpoints) nativeMe(w http.ResponseWriter, _ *http.Request, user User) error {
	return WriteJSON(w, http.StatusOK, nativeMe{
		UserID: user.ID, Username: user.Username, DisplayName: user.Username, Provider: basicProvider,
		Role: user.Role, MustChangePassword: user.MustChangePassword, ServerKind: e.opts.ServerKind,
	})
}

func (e *Endpoints) nativeLogout(w http.ResponseWriter, r *http.Request, _ User) error {
	if err := e.service.Logout(r.Context(), sessionTokenOf(r)); err != nil {
		return err
	}
	e.guard.endSession(w, r)
	return WriteJSON(w, http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}
