package api

import (
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// retiredPlugin is what the paths of the retired plugin contain.
const retiredPlugin = "/plugins/" + workspace.LegacyName

// retiredGroups is where the plugin's groups were.
const retiredGroups = prefix + "/groups"

// retiredStreams are the paths of former real-time channels.
func retiredStreams() []string {
	return []string{prefix + "/realtime-leases", "/api/auth/ws-ticket", "/api/ws", "/ws/chat", "/ws/groups"}
}

// Retired returns the code with which a request is refused because what it asks
// for was retired, or "" (section 8).
func Retired(r *http.Request) workspace.Code {
	at := path.Clean("/" + r.URL.Path)
	if strings.Contains(at, retiredPlugin) || isBelow(at, retiredGroups) {
		return workspace.CodeRetiredPlugin
	}
	for _, stream := range retiredStreams() {
		if isBelow(at, stream) {
			return workspace.CodeHTTPSSERequired
		}
	}
	if isWebSocket(r) {
		return workspace.CodeHTTPSSERequired
	}
	return ""
}

func isBelow(at, dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }

func isWebSocket(r *http.Request) bool {
	for _, header := range r.Header.Values("Upgrade") {
		for protocol := range strings.SplitSeq(header, ",") {
			name, _, _ := strings.Cut(strings.Trim(protocol, " \t"), "/")
			if strings.EqualFold(name, "websocket") {
				return true
			}
		}
	}
	return false
}

// WithoutRetired refuses what was retired, whoever asks and by whatever method,
// and leaves all else to next.
func (a *API) WithoutRetired(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := Retired(r)
		if code == "" {
			next.ServeHTTP(w, r)
			return
		}
		account.SetSecurityHeaders(w.Header(), a.opts.Scheme(r))
		refused := account.WriteRefusal(w, refusal(workspace.Fail(code)))
		a.opts.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("route", "retired"), slog.Int("status", refused.Status), slog.String("code", string(refused.Code)))
	})
}

// Owns reports whether a path is the workspace's business, so that a server can
// mount it beside others.
func Owns(r *http.Request) bool {
	at := path.Clean("/" + r.URL.Path)
	for _, dir := range []string{"/api", "/auth", "/ws"} {
		if isBelow(at, dir) {
			return true
		}
	}
	return at == healthPath || strings.Contains(at, retiredPlugin)
}
