package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxLoginName bounds the name in a login, in code points (section 1.6).
const maxLoginName = 320

// Change tells of an account whose work has to be held, let go or stopped.
type Change struct {
	UserID string
	// Enabled reports that the user may use the workspace.
	Enabled bool
	// Deleted reports that the user is gone for ever.
	Deleted bool
}

// Options configure a Service.
type Options struct {
	Store Store
	// Now is the clock.
	Now func() time.Time
	// Cost of a password hash; the zero Cost is [DefaultCost].
	Cost Cost
	// Changed is told, after it was stored, when an account is enabled, disabled
	// or deleted through this Service, and must not block; nil is not told. Changes
	// by other processes are only in the store.
	Changed func(Change)
	Logger  *slog.Logger
}

// Service holds the rules of accounts. Its methods may be called concurrently,
// also by several processes over one store. Their errors have a [Code], or are
// failures of the store.
type Service struct {
	store    Store
	now      func() time.Time
	hasher   *hasher
	throttle *throttle
	changed  func(Change)
	log      *slog.Logger
}

// New returns a Service.
func New(opts Options) *Service {
	cost := opts.Cost
	if cost == (Cost{}) {
		cost = DefaultCost()
	}
	changed := opts.Changed
	if changed == nil {
		changed = func(Change) {}
	}
	return &Service{
		store: opts.Store, now: opts.Now, hasher: newHasher(cost), throttle: newThrottle(opts.Now),
		changed: changed, log: opts.Logger,
	}
}

func (s *Service) nowMS() int64 { return s.now().UnixMilli() }

// NeedsSetup reports whether no account exists yet.
func (s *Service) NeedsSetup(ctx context.Context) (bool, error) {
	has, err := s.store.HasUsers(ctx)
	if err != nil {
		return false, fmt.Errorf("looking for accounts: %w", err)
	}
	return !has, nil
}

// SignIn is a user with the token of a new session.
type SignIn struct {
	User  User
	Token Token
}

// Setup makes the first account, an administrator, and signs it in. Of several at
// once exactly one succeeds; the others get [CodeSetupComplete].
func (s *Service) Setup(ctx context.Context, username, password string) (SignIn, error) {
	needed, err := s.NeedsSetup(ctx)
	if err != nil {
		return SignIn{}, err
	}
	if !needed {
		return SignIn{}, setupComplete()
	}
	record, err := s.newRecord(ctx, NewUser{Username: username, Password: password, Role: RoleAdmin})
	if err != nil {
		return SignIn{}, err
	}
	err = s.store.AddFirstUser(ctx, record)
	if errors.Is(err, ErrNotFirst) {
		return SignIn{}, setupComplete()
	}
	if err != nil {
		return SignIn{}, fmt.Errorf("storing the first account: %w", err)
	}
	s.log.Info("the first account was set up", "user", record.ID)
	return s.signIn(ctx, record)
}

func setupComplete() error { return errorf(CodeSetupComplete, "an account exists already") }

func (s *Service) signIn(ctx context.Context, user Record) (SignIn, error) {
	token, err := s.startSession(ctx, user)
	if err != nil {
		return SignIn{}, err
	}
	return SignIn{User: user.User, Token: token}, nil
}

// Credentials are what a login is tried with.
type Credentials struct {
	Username string
	Password string
	// Address names the client in limits.
	Address string
}

func (c Credentials) check() error {
	name, password := utf8.RuneCountInString(c.Username), utf8.RuneCountInString(c.Password)
	if UsernameKey(c.Username) == "" || name > maxLoginName || password == 0 || password > MaxPassword {
		return errorf(CodeInvalidCredentials, "the user name or the password is missing or too long")
	}
	return nil
}

// Login signs a user in. Who is unknown, disabled or has another password gets
// the same [CodeLoginFailed] after the same work; who fails too often gets
// [CodeThrottled].
func (s *Service) Login(ctx context.Context, c Credentials) (SignIn, error) {
	if err := c.check(); err != nil {
		return SignIn{}, err
	}
	attempt, err := s.throttle.attempt(c.Username, c.Address)
	if err != nil {
		return SignIn{}, err
	}
	signedIn, err := s.login(ctx, c)
	if CodeOf(err) != CodeLoginFailed {
		attempt.Cancel() // it tried no wrong password
	}
	return signedIn, err
}

func (s *Service) login(ctx context.Context, c Credentials) (SignIn, error) {
	user, err := s.store.UserByKey(ctx, UsernameKey(c.Username))
	if errors.Is(err, ErrNoRow) {
		user, err = Record{Digest: s.hasher.dummy}, nil
	}
	if err != nil {
		return SignIn{}, fmt.Errorf("reading the account: %w", err)
	}
	matches, err := s.hasher.matches(ctx, user.Digest, c.Password)
	if err != nil {
		return SignIn{}, fmt.Errorf("checking the password: %w", err)
	}
	if !matches || !user.Enabled {
		return SignIn{}, loginFailed()
	}
	s.renewDigest(ctx, user, c.Password)
	signedIn, err := s.signIn(ctx, user)
	if errors.Is(err, ErrStale) {
		return SignIn{}, loginFailed() // the password was changed a moment ago
	}
	return signedIn, err
}

func loginFailed() error { return errorf(CodeLoginFailed, "the user name or the password is wrong") }

// renewDigest replaces a digest of an older cost while the password is at hand.
// When that fails the old one still serves.
func (s *Service) renewDigest(ctx context.Context, user Record, password string) {
	if !s.hasher.isOutdated(user.Digest) {
		return
	}
	fresh, err := s.hasher.hash(ctx, password)
	if err == nil {
		user.Digest = fresh
		err = s.store.UpdateUser(ctx, user, user.AuthVersion)
	}
	if err != nil {
		s.log.Warn("a password digest of an older cost was not renewed", "user", user.ID, "error", err)
	}
}

// NewCredentials are what a user changes about the own account.
type NewCredentials struct {
	Current string
	New     string
	// Username is the new name; nil keeps the old one.
	Username *string
	// Address names the client in limits.
	Address string
}

// ChangeCredentials gives the user of the session with the token a new password
// and perhaps a new name, ends all its sessions and starts a new one.
func (s *Service) ChangeCredentials(ctx context.Context, token Token, c NewCredentials) (SignIn, error) {
	user, err := s.sessionOf(ctx, token)
	if err != nil {
		return SignIn{}, err
	}
	if err := s.provePassword(ctx, user, c.Current, c.Address); err != nil {
		return SignIn{}, err
	}
	changed, err := s.withCredentials(ctx, user, c)
	if err != nil {
		return SignIn{}, err
	}
	err = s.store.UpdateUser(ctx, changed, user.AuthVersion)
	switch {
	case errors.Is(err, ErrTaken):
		return SignIn{}, usernameExists()
	case errors.Is(err, ErrStale):
		return SignIn{}, unauthenticated() // another change has ended this session
	case err != nil:
		return SignIn{}, fmt.Errorf("storing the credentials: %w", err)
	}
	s.log.Info("a user changed the own credentials", "user", user.ID)
	return s.signIn(ctx, changed)
}

// provePassword checks a signed-in user's password under the same limits as a
// login, for a session that was taken over must not help to guess it.
func (s *Service) provePassword(ctx context.Context, user Record, password, address string) error {
	attempt, err := s.throttle.attempt(user.Username, address)
	if err != nil {
		return err
	}
	matches, err := s.hasher.matches(ctx, user.Digest, password)
	if err == nil && !matches {
		return errorf(CodeWrongPassword, "the current password is wrong")
	}
	attempt.Cancel()
	if err != nil {
		return fmt.Errorf("checking the password: %w", err)
	}
	return nil
}

func (s *Service) withCredentials(ctx context.Context, user Record, c NewCredentials) (Record, error) {
	if c.Username != nil {
		name, err := parseUsername(*c.Username)
		if err != nil {
			return Record{}, err
		}
		user.Username, user.Key = name, UsernameKey(name)
	}
	if user.MustChangePassword && c.New == c.Current {
		return Record{}, errorf(CodeInvalidPassword, "the new password is the one that has to be changed")
	}
	return s.withPassword(ctx, user, c.New, false)
}

// withPassword returns the user with another password and all sessions ended.
func (s *Service) withPassword(ctx context.Context, user Record, password string, mustChange bool) (Record, error) {
	if err := checkPassword(password); err != nil {
		return Record{}, err
	}
	fresh, err := s.hasher.hash(ctx, password)
	if err != nil {
		return Record{}, fmt.Errorf("hashing the password: %w", err)
	}
	user.Digest, user.MustChangePassword = fresh, mustChange
	return s.edited(user), nil
}

// edited marks an edit that ends all sessions (section 1.3).
func (s *Service) edited(user Record) Record {
	user.AuthVersion++
	user.UpdatedAt = s.nowMS()
	return user
}

// newRecord returns a user that is not stored yet.
func (s *Service) newRecord(ctx context.Context, n NewUser) (Record, error) {
	name, err := parseUsername(n.Username)
	if err != nil {
		return Record{}, err
	}
	if err := checkPassword(n.Password); err != nil {
		return Record{}, err
	}
	fresh, err := s.hasher.hash(ctx, n.Password)
	if err != nil {
		return Record{}, fmt.Errorf("hashing the password: %w", err)
	}
	now := s.nowMS()
	return Record{
		User: User{
			ID: uuid.NewString(), Username: name, Role: n.Role, Enabled: true,
			MustChangePassword: n.MustChangePassword, CreatedAt: now, UpdatedAt: now,
		},
		Key: UsernameKey(name), Digest: fresh, AuthVersion: 1,
	}, nil
}
