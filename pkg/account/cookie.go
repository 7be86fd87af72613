package account

import (
	"net/http"
	"time"
)

// Names of the cookies.
const (
	SessionCookie = "relay_session"
	CSRFCookie    = "relay_csrf"
)

// sessionTokenOf returns the token of the request's session cookie. Of several
// cookies of that name the first one counts that could be a token.
func sessionTokenOf(r *http.Request) Token {
	for _, cookie := range r.CookiesNamed(SessionCookie) {
		if _, ok := Token(cookie.Value).hash(); ok {
			return Token(cookie.Value)
		}
	}
	return ""
}

// setCookie sets a cookie that no script and no other site's page can use
// (sections 1.3 and 1.4). A life of 0 removes it.
func setCookie(w http.ResponseWriter, name, value string, life time.Duration, isSecure bool) {
	maxAge := int(life / time.Second)
	if maxAge == 0 {
		maxAge = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: isSecure, SameSite: http.SameSiteStrictMode,
	})
}
