package account

import (
	"net/http"

	"github.com/newos4/relay/pkg/jsonbody"
)

// adminRoutes are the administration of accounts (section 1.6).
func (e *Endpoints) adminRoutes() []Route {
	const users, user = "/api/app/admin/users", "/api/app/admin/users/{id}"
	return []Route{
		{Method: http.MethodGet, Path: users, Access: AdminOnly, Handle: e.listUsers},
		{Method: http.MethodPost, Path: users, Access: AdminOnly, Handle: e.addUser},
		{Method: http.MethodPatch, Path: user, Access: AdminOnly, Handle: e.editUser},
		{Method: http.MethodDelete, Path: user, Access: AdminOnly, Handle: e.deleteUser},
	}
}

// userList is the answer to a list of accounts.
type userList struct {
	Items []User `json:"items"`
}

func (e *Endpoints) listUsers(w http.ResponseWriter, r *http.Request, _ User) error {
	users, err := e.service.List(r.Context())
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, userList{users})
}

// addUser makes a usual account whose password is for the first sign-in alone.
func (e *Endpoints) addUser(w http.ResponseWriter, r *http.Request, _ User) error {
	username, password, err := decodeNamePassword(r)
	if err != nil {
		return err
	}
	user, err := e.service.Add(r.Context(), NewUser{
		Username: username, Password: password, Role: RoleUser, MustChangePassword: true,
	})
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusCreated, user)
}

// editBody is the body of an edit of an account.
type editBody struct {
	Enabled  jsonbody.Optional[bool]   `json:"enabled"`
	Password jsonbody.Optional[string] `json:"password"`
}

func (e *Endpoints) editUser(w http.ResponseWriter, r *http.Request, _ User) error {
	var body editBody
	if err := Decode(r, &body); err != nil {
		return err
	}
	edit := Edit{MustChangePassword: true}
	if body.Enabled.Set {
		edit.Enabled = &body.Enabled.Value
	}
	if body.Password.Set {
		edit.Password = &body.Password.Value
	}
	user, err := e.service.EditUser(r.Context(), r.PathValue("id"), edit)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, user)
}

func (e *Endpoints) deleteUser(w http.ResponseWriter, r *http.Request, _ User) error {
	if err := Decode(r, &struct{}{}); err != nil {
		return err
	}
	if err := e.service.DeleteUser(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}
