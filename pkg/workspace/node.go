package workspace

import (
	"net/url"
	"strings"
)

// Node is a remote upstream that a user registered (section 2.13). Its JSON
// form is what clients see.
type Node struct {
	ID   NodeID `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

// NodeCredentials are the secret part of a node. They are stored encrypted and
// never leave the server (sections 2.13 and 9.2).
type NodeCredentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// String hides the credentials from every formatted print.
func (NodeCredentials) String() string { return "[credentials]" }

// GoString hides the credentials from %#v.
func (c NodeCredentials) GoString() string { return c.String() }

// NewNode is the body of a request that registers a node (section 3.8).
type NewNode struct {
	Name     Optional[string] `json:"name,omitzero"`
	URL      Optional[string] `json:"url,omitzero"`
	Username Optional[string] `json:"username,omitzero"`
	Password Optional[string] `json:"password,omitzero"`
}

// CheckNode returns the node of a request that registers one, and its
// credentials. A URL that is not plain http or https has the code
// [CodeInvalidNode] (section 3.8).
func CheckNode(in NewNode, id NodeID) (Node, NodeCredentials, error) {
	var f faults
	required(&f, "name", in.Name)
	required(&f, "url", in.URL)
	n := Node{
		ID: id,
		Name: checked(&f, "name", present(in.Name), func(f *faults, field, s string) string {
			return textOf(1, MaxName)(f, field, trim(s))
		}).Or(""),
		URL: checked(&f, "url", present(in.URL), textOf(1, MaxNodeURL)).Or(""),
	}
	secret := NodeCredentials{
		Username: checked(&f, "username", in.Username, textOf(0, MaxNodeUsername)).Or(""),
		Password: checked(&f, "password", in.Password, textOf(0, MaxSecret)).Or(""),
	}
	if err := f.err(); err != nil {
		return Node{}, NodeCredentials{}, err
	}
	u, err := url.Parse(trim(n.URL))
	if err != nil || !plainURL(u) {
		return Node{}, NodeCredentials{}, Fail(CodeInvalidNode)
	}
	n.URL = strings.TrimRight(u.String(), "/")
	return n, secret, nil
}

// plainURL reports whether u is http or https with a host and without user
// information, query and fragment.
func plainURL(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}
