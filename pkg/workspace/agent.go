package workspace

// Agent is a role that a user created on top of an immutable pair of node and
// profile (section 2.1). Its JSON form is what clients see.
type Agent struct {
	ID           AgentID `json:"id"`
	Name         string  `json:"name"`
	Avatar       string  `json:"avatar"`
	Instructions string  `json:"instructions"`
	NodeID       NodeID  `json:"nodeId"`
	Profile      string  `json:"profile"`
	Archived     bool    `json:"archived"`
	Revision     int     `json:"revision"`
	CreatedAt    Millis  `json:"createdAt"`
	UpdatedAt    Millis  `json:"updatedAt"`
}

// Source is a pair of node and profile on which an agent may be created
// (section 2.2).
type Source struct {
	NodeID  NodeID `json:"nodeId"`
	Profile string `json:"profile"`
	// Name is the best title that the upstream offers for the profile.
	Name string `json:"name"`
}

// NewAgent is the body of a request that creates an agent (section 3.1).
type NewAgent struct {
	Name         Optional[string] `json:"name,omitzero"`
	Avatar       Optional[string] `json:"avatar,omitzero"`
	Instructions Optional[string] `json:"instructions,omitzero"`
	NodeID       Optional[NodeID] `json:"nodeId,omitzero"`
	Profile      Optional[string] `json:"profile,omitzero"`
}

// AgentPatch is the body of a request that edits an agent (section 3.1). Node
// and profile are no part of it: they never change.
type AgentPatch struct {
	Name         Optional[string] `json:"name,omitzero"`
	Avatar       Optional[string] `json:"avatar,omitzero"`
	Instructions Optional[string] `json:"instructions,omitzero"`
	Archived     Optional[bool]   `json:"archived,omitzero"`
}
