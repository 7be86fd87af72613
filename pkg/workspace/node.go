package workspace

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
