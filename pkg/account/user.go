package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Role is what an account may do.
type Role string

// Roles (section 1.3).
const (
	RoleAdmin Role = "admin"
	RoleUser  Role = "user"
)

// Bounds of user names and passwords, in code points (section 1.3).
const (
	MaxUsername = 100
	MinPassword = 8
	MaxPassword = 4096
)

// User is an account as everybody may see it (section 1.3).
type User struct {
	// ID is a lower-case UUID, the owner of everything that the user makes.
	ID                 string `json:"id"`
	Username           string `json:"username"`
	Role               Role   `json:"role"`
	Enabled            bool   `json:"enabled"`
	MustChangePassword bool   `json:"mustChangePassword"`
	// CreatedAt and UpdatedAt count milliseconds since 1970.
	CreatedAt int64 `json:"createdAt"`
	UpdatedAt int64 `json:"updatedAt"`
}

// IsAdmin reports whether the user may use administrative routes.
func (u User) IsAdmin() bool { return u.Role == RoleAdmin }

// UsernameKey returns what two names have in common that differ in case or in the
// composition of their characters alone. Keys are unique.
func UsernameKey(username string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.TrimSpace(username))))
}

// parseUsername returns the name without spaces around it.
func parseUsername(username string) (string, error) {
	name := strings.TrimSpace(username)
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return "", errorf(CodeInvalidUsername, "the user name is empty")
	case n > MaxUsername:
		return "", errorf(CodeInvalidUsername, "the user name has %d characters, more than %d", n, MaxUsername)
	case !utf8.ValidString(name):
		return "", errorf(CodeInvalidUsername, "the user name is not valid UTF-8")
	case strings.ContainsFunc(name, isRefused):
		return "", errorf(CodeInvalidUsername, `the user name holds white space, a control character, or one of / @ \`)
	}
	return name, nil
}

func isRefused(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' || r == '@' || r == '\\'
}

func checkPassword(password string) error {
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return errorf(CodeInvalidPassword, "the password has %d characters, fewer than %d", n, MinPassword)
	case n > MaxPassword:
		return errorf(CodeInvalidPassword, "the password has %d characters, more than %d", n, MaxPassword)
	}
	return nil
}
