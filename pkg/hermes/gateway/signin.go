package gateway

import (
	"context"
	"net/http"
	"regexp"

	"github.com/newos4/relay/pkg/hermes"
)

// pass is what lets a request through: a token, or a cookie in the client's jar.
type pass struct {
	token      string
	gated      bool
	generation int
}

// signIn keeps the pass. One sign-in happens at a time.
type signIn struct {
	client *Client
	lock   chan struct{} // holds one value while nobody signs in
	now    pass
}

func newSignIn(c *Client) *signIn {
	s := &signIn{client: c, lock: make(chan struct{}, 1)}
	s.lock <- struct{}{}
	return s
}

// acquire waits for the lock, as long as ctx lasts.
func (s *signIn) acquire(ctx context.Context) error {
	select {
	case <-s.lock:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *signIn) release() { s.lock <- struct{}{} }

// secret returns a token that was read from the server, for redaction.
func (s *signIn) secret() string {
	select {
	case <-s.lock:
		defer s.release()
		return s.now.token
	default:
		return ""
	}
}

// pass returns the present pass, and gets one if there is none.
func (s *signIn) pass(ctx context.Context) (pass, error) {
	if err := s.acquire(ctx); err != nil {
		return pass{}, err
	}
	defer s.release()
	if s.now.generation > 0 {
		return s.now, nil
	}
	return s.enter(ctx)
}

// renew replaces a pass that was refused, unless somebody did so meanwhile.
func (s *signIn) renew(ctx context.Context, refused pass) (pass, error) {
	if err := s.acquire(ctx); err != nil {
		return pass{}, err
	}
	defer s.release()
	if s.now.generation > refused.generation {
		return s.now, nil
	}
	return s.enter(ctx)
}

// enter asks the server how it wants to be signed in to, and does so. The mode is
// asked for anew each time: a server may have been put behind its gate since.
func (s *signIn) enter(ctx context.Context) (pass, error) {
	status, err := s.client.Status(ctx)
	if err != nil {
		return pass{}, err
	}
	next := pass{gated: status.Gated, generation: s.now.generation + 1}
	if status.Gated {
		err = s.logIn(ctx)
	} else {
		next.token, err = s.token(ctx)
	}
	if err != nil {
		return pass{}, err
	}
	s.now = next
	return next, nil
}

// shown finds the token in the root page.
var shown = regexp.MustCompile(`__HERMES_SESSION_TOKEN__\s*=\s*"([A-Za-z0-9_-]{8,256})"`)

// token returns the configured token, or the one that the root page shows.
func (s *signIn) token(ctx context.Context) (string, error) {
	const doing = "sign in"
	if s.client.config.Token != "" {
		return s.client.config.Token, nil
	}
	r, err := s.client.send(ctx, call{doing: doing, method: http.MethodGet, path: "/", limit: maxSmallBody}, pass{})
	if err == nil {
		if found := shown.FindSubmatch(r.body); found != nil {
			return string(found[1]), nil
		}
	}
	if err != nil && hermes.KindOf(err) != hermes.KindNotFound {
		return "", err
	}
	return "", &hermes.Error{
		Kind: hermes.KindAuth, Doing: doing, Text: "the server wants a token and shows none",
		Hint: "set HERMES_DASHBOARD_SESSION_TOKEN for the server and give the same token here",
	}
}

// logIn signs in with the user and the password; the cookies go to the jar.
func (s *signIn) logIn(ctx context.Context) error {
	const doing = "sign in"
	if s.client.config.Username == "" {
		return &hermes.Error{Kind: hermes.KindAuth, Doing: doing, Text: "the server wants a user and a password, and none are given"}
	}
	provider, err := s.provider(ctx)
	if err != nil {
		return err
	}
	_, err = s.client.send(ctx, call{
		doing: doing, method: http.MethodPost, path: "/auth/password-login", limit: maxSmallBody,
		body: map[string]string{
			"provider": provider, "username": s.client.config.Username, "password": s.client.config.Password, "next": "/",
		},
	}, pass{})
	return err
}

// provider returns the name of the way to sign in that takes a password.
func (s *signIn) provider(ctx context.Context) (string, error) {
	const doing = "list ways to sign in"
	r, err := s.client.send(ctx, call{doing: doing, method: http.MethodGet, path: "/api/auth/providers", limit: maxSmallBody}, pass{})
	if err != nil {
		return "", err
	}
	var answer struct {
		Providers []struct {
			Name             string `json:"name"`
			SupportsPassword bool   `json:"supports_password"`
		} `json:"providers"`
	}
	if err := decode(doing, r.body, &answer); err != nil {
		return "", err
	}
	for _, provider := range answer.Providers {
		if provider.SupportsPassword {
			return provider.Name, nil
		}
	}
	return "basic", nil
}

// ticket gets the single-use ticket of one WebSocket connection.
func (c *Client) ticket(ctx context.Context) (string, error) {
	const doing = "get a connection's ticket"
	r, err := c.do(ctx, call{doing: doing, method: http.MethodPost, path: "/api/auth/ws-ticket", limit: maxSmallBody})
	if err != nil {
		return "", err
	}
	var answer struct {
		Ticket string `json:"ticket"`
	}
	if err := decode(doing, r.body, &answer); err != nil {
		return "", err
	}
	if answer.Ticket == "" {
		return "", &hermes.Error{Kind: hermes.KindProtocol, Doing: doing, Text: "the answer has no ticket"}
	}
	return answer.Ticket, nil
}
