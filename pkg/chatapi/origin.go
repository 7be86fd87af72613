package chatapi

import (
	"net/http"
	"strings"
)

// setOriginHeaders lets pages of an allowed origin read the answer. Without
// allowed origins the answer is the same for everybody and says nothing.
func (a *API) setOriginHeaders(h http.Header, r *http.Request) {
	if len(a.origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	if origin := r.Header.Get("Origin"); a.origins[origin] {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Retry-After")
	}
}

// isPreflight reports whether a browser asks before a request across origins.
func (a *API) isPreflight(r *http.Request) bool {
	return len(a.origins) > 0 && r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers without touching disk or limits. A foreign origin gets no
// permission, which makes its browser refuse (section 6).
func (a *API) preflight(e *exchange, methods []string) error {
	h := e.w.Header()
	delete(h, "Content-Type") // there is no content
	if a.origins[e.r.Header.Get("Origin")] {
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", "Content-Type, X-Chat-Token")
		h.Set("Access-Control-Max-Age", "600")
	}
	e.status = http.StatusNoContent
	e.w.WriteHeader(http.StatusNoContent)
	return nil
}
