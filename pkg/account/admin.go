package account

import (
	"context"
	"errors"
	"fmt"
)

// editTries is how often an edit is tried again that another one came before.
const editTries = 5

// NewUser is an account to be made.
type NewUser struct {
	Username string
	Password string
	Role     Role
	// MustChangePassword makes the password one for the first sign-in alone.
	MustChangePassword bool
}

// Add makes an account. The first one has to be an administrator.
func (s *Service) Add(ctx context.Context, n NewUser) (User, error) {
	first, err := s.NeedsSetup(ctx)
	if err != nil {
		return User{}, err
	}
	if first && n.Role != RoleAdmin {
		return User{}, errorf(CodeAdminRequired, "the first account has to be an administrator\nhint: add it with --admin")
	}
	record, err := s.newRecord(ctx, n)
	if err != nil {
		return User{}, err
	}
	err = s.store.AddUser(ctx, record)
	if errors.Is(err, ErrTaken) {
		return User{}, usernameExists()
	}
	if err != nil {
		return User{}, fmt.Errorf("storing the account: %w", err)
	}
	s.log.Info("an account was added", "user", record.ID, "role", string(record.Role))
	return record.User, nil
}

func usernameExists() error { return errorf(CodeUsernameExists, "another account has that user name") }

func userNotFound() error { return errorf(CodeUserNotFound, "there is no such account") }

// List returns all accounts by the time of their making.
func (s *Service) List(ctx context.Context) ([]User, error) {
	records, err := s.store.Users(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the accounts: %w", err)
	}
	users := make([]User, len(records))
	for i, record := range records {
		users[i] = record.User
	}
	return users, nil
}

// Edit is what an administrator changes about an account. Nil leaves a thing as
// it is; an Edit without anything changes nothing and ends no session.
type Edit struct {
	Enabled  *bool
	Password *string
	// MustChangePassword makes the new Password one for the first sign-in alone.
	MustChangePassword bool
}

// EditByName changes the account with that name, also an administrator's: it is
// the operator's way.
func (s *Service) EditByName(ctx context.Context, username string, edit Edit) (User, error) {
	find := func() (Record, error) { return s.store.UserByKey(ctx, UsernameKey(username)) }
	return s.edit(ctx, find, edit)
}

// EditUser changes the account with that id, unless it is an administrator's.
func (s *Service) EditUser(ctx context.Context, id string, edit Edit) (User, error) {
	return s.edit(ctx, func() (Record, error) { return s.unprotected(ctx, id) }, edit)
}

// unprotected returns the account with that id, unless it is an administrator's.
func (s *Service) unprotected(ctx context.Context, id string) (Record, error) {
	user, err := s.store.User(ctx, id)
	if err != nil {
		return Record{}, err
	}
	if user.IsAdmin() {
		return Record{}, errorf(CodeAdminProtected, "the account of an administrator is protected")
	}
	return user, nil
}

func (s *Service) edit(ctx context.Context, find func() (Record, error), edit Edit) (User, error) {
	var err error
	for range editTries {
		var user Record
		user, err = s.tryEdit(ctx, find, edit)
		if err == nil {
			return user.User, nil
		}
		if errors.Is(err, ErrNoRow) {
			return User{}, userNotFound()
		}
		if !errors.Is(err, ErrStale) {
			break
		}
	}
	return User{}, fmt.Errorf("editing the account: %w", err)
}

func (s *Service) tryEdit(ctx context.Context, find func() (Record, error), edit Edit) (Record, error) {
	user, err := find()
	if err != nil || edit.Enabled == nil && edit.Password == nil {
		return user, err
	}
	version, wasEnabled := user.AuthVersion, user.Enabled
	if edit.Enabled != nil {
		user.Enabled = *edit.Enabled
	}
	if edit.Password != nil {
		user, err = s.withPassword(ctx, user, *edit.Password, edit.MustChangePassword)
	} else {
		user = s.edited(user)
	}
	if err != nil {
		return Record{}, err
	}
	if err := s.store.UpdateUser(ctx, user, version); err != nil {
		return Record{}, err
	}
	s.log.Info("an account was edited", "user", user.ID, "enabled", user.Enabled, "password", edit.Password != nil)
	if user.Enabled != wasEnabled {
		s.changed(Change{UserID: user.ID, Enabled: user.Enabled})
	}
	return user, nil
}

// DeleteUser removes the account with that id, unless it is an administrator's.
func (s *Service) DeleteUser(ctx context.Context, id string) error {
	_, err := s.unprotected(ctx, id)
	if err == nil {
		err = s.store.DeleteUser(ctx, id)
	}
	if errors.Is(err, ErrNoRow) {
		return userNotFound()
	}
	if err != nil {
		return fmt.Errorf("deleting the account: %w", err)
	}
	s.log.Info("an account was deleted", "user", id)
	s.changed(Change{UserID: id, Deleted: true})
	return nil
}
