package hermestest

import (
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of the real server.
const (
	ticketLife    = 30 * time.Second
	cookieLife    = time.Hour
	loginTries    = 10
	loginWindow   = time.Minute
	downloadBytes = 100 << 20
	cookieName    = "hermes_session_at"
)

// volatileSignIn is what the sign-in knows until a restart.
type volatileSignIn struct {
	cookies map[string]time.Time // until when
	tickets map[string]time.Time
	tries   []time.Time
}

// routes returns the server's whole HTTP surface.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/status", s.status)
	mux.HandleFunc("GET /api/auth/providers", s.providers)
	mux.HandleFunc("POST /auth/password-login", s.login)
	mux.HandleFunc("POST /api/auth/ws-ticket", s.signedIn(s.ticket))
	mux.HandleFunc("GET /api/auth/me", s.signedIn(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, object{"user_id": Username, "provider": "basic"})
	}))
	mux.HandleFunc("GET /api/profiles", s.signedIn(s.listProfiles))
	mux.HandleFunc("GET /api/sessions/{id}", s.signedIn(s.session))
	mux.HandleFunc("GET /api/sessions/{id}/messages", s.signedIn(s.messagesPage))
	mux.HandleFunc("GET /api/files/download", s.signedIn(s.download))
	mux.HandleFunc("GET /api/ws", s.upgrade)
	mux.HandleFunc("GET /{$}", s.page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			panic(http.ErrAbortHandler)
		}
		s.noteRequest(r)
		if s.failRequest(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// object is a JSON object.
type object = map[string]any

// reply writes a JSON answer.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// refuse writes an error as the real server's framework does.
func refuse(w http.ResponseWriter, status int, detail string) {
	reply(w, status, object{"detail": detail})
}

// signedIn lets only requests with valid credentials through.
func (s *Server) signedIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.allowed(r) {
			refuse(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		next(w, r)
	}
}

// allowed reports whether r has valid credentials of the server's mode. The
// token is refused where signing in is demanded.
func (s *Server) allowed(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gate {
		return r.Header.Get("X-Hermes-Session-Token") == s.token || r.Header.Get("Authorization") == "Bearer "+s.token
	}
	cookie, err := r.Cookie(cookieName)
	return err == nil && time.Now().Before(s.cookies[cookie.Value])
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := object{
		"version": s.version, "gateway_running": false, "active_sessions": len(s.sessions),
		"auth_required": s.gate, "auth_providers": []string{},
	}
	if s.gate {
		body["auth_providers"] = []string{"basic"}
	}
	if s.kind != "" {
		body["server_kind"] = s.kind
	}
	reply(w, http.StatusOK, body)
}

func (s *Server) providers(w http.ResponseWriter, _ *http.Request) {
	if !s.gate {
		refuse(w, http.StatusServiceUnavailable, "no auth providers registered")
		return
	}
	reply(w, http.StatusOK, object{"providers": []object{
		{"name": "nous", "display_name": "Nous", "supports_password": false},
		{"name": "basic", "display_name": "Password", "supports_password": true},
	}})
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ Provider, Username, Password string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "malformed body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	if s.tooManyLogins() {
		refuse(w, http.StatusTooManyRequests, "Too many login attempts. Try again shortly.")
		return
	}
	if !s.gate || body.Provider != "basic" {
		refuse(w, http.StatusNotFound, "Unknown provider")
		return
	}
	if body.Username != Username || body.Password != Password {
		refuse(w, http.StatusUnauthorized, "Invalid credentials")
		return
	}
	value := hex(32)
	s.cookies[value] = time.Now().Add(cookieLife)
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", HttpOnly: true, MaxAge: int(cookieLife.Seconds())})
	reply(w, http.StatusOK, object{"ok": true, "next": "/"})
}

// tooManyLogins counts a try and reports whether it is one too many.
func (s *Server) tooManyLogins() bool {
	now := time.Now()
	s.tries = slices.DeleteFunc(s.tries, func(t time.Time) bool { return now.Sub(t) > loginWindow })
	if len(s.tries) >= loginTries {
		return true
	}
	s.tries = append(s.tries, now)
	return false
}

func (s *Server) ticket(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gate {
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	value := hex(43)
	s.tickets[value] = time.Now().Add(ticketLife)
	reply(w, http.StatusOK, object{"ticket": value, "ttl_seconds": int(ticketLife.Seconds())})
}

// page is the root page, the only place that shows a random token.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	if s.gate {
		_, _ = w.Write([]byte("<html><script>window.__HERMES_AUTH_REQUIRED__=true;</script></html>"))
		return
	}
	_, _ = w.Write([]byte(`<html><script>window.__HERMES_SESSION_TOKEN__="` + s.token + `";</script></html>`))
}

func (s *Server) listProfiles(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := []object{}
	for _, p := range s.profiles {
		row := object{
			"name": p.Name, "path": p.Path, "is_default": p.Name == Launch, "model": nullable(p.Model), "provider": "custom",
			"has_env": false, "skill_count": 0, "gateway_running": false, "description": "",
		}
		if s.dialect != Dialect019 {
			row["display_name"] = p.DisplayName
		}
		rows = append(rows, row)
	}
	reply(w, http.StatusOK, object{"profiles": rows})
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// session answers with a stored session of the profile that was named.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.find(r.PathValue("id"), r.URL.Query().Get("profile"))
	if stored == nil {
		refuse(w, http.StatusNotFound, "Session not found")
		return
	}
	reply(w, http.StatusOK, object{
		"id": stored.id, "source": stored.source, "message_count": len(stored.messages), "profile": stored.profile, "title": nullable(stored.title),
	})
}

// messagesPage answers with a page of history: the newest one where the build
// knows order=latest, and from the oldest entry on where it does not.
func (s *Server) messagesPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	stored := s.find(r.PathValue("id"), query.Get("profile"))
	if stored == nil {
		refuse(w, http.StatusNotFound, "Session not found")
		return
	}
	limit, offset := number(query.Get("limit"), 500), number(query.Get("offset"), 0)
	limit = min(limit, 500)
	latest := s.dialect != Dialect019 && query.Get("order") == "latest"
	rows := stored.rows(s.dialect != Dialect019 && query.Get("include_compacted") == "true")
	if latest {
		slices.Reverse(rows)
	}
	rows = rows[min(offset, len(rows)):]
	rows = rows[:min(limit, len(rows))]
	pagination := object{"limit": limit, "offset": offset, "returned": len(rows)}
	if s.dialect != Dialect019 {
		pagination["order"] = query.Get("order")
	}
	if latest {
		slices.Reverse(rows)
	}
	reply(w, http.StatusOK, object{"session_id": stored.id, "messages": rows, "pagination": pagination})
}

func number(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.URL.Query().Get("path")
	data, ok := s.files[name]
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "File not found")
	case len(data) > downloadBytes:
		refuse(w, http.StatusRequestEntityTooLarge, "File is too large")
	case strings.Contains(name, "/.env"):
		refuse(w, http.StatusForbidden, "Access to sensitive files is not allowed")
	default:
		kind := mime.TypeByExtension(path.Ext(name))
		if kind == "" {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
		_, _ = w.Write(data)
	}
}
