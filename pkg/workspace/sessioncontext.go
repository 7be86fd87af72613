package workspace

// SessionContext is a client's snapshot of a native session's context
// (section 2.16). Its key is the owner, the profile and the session id.
type SessionContext struct {
	UsedTokens   Optional[int64]   `json:"usedTokens,omitzero"`
	LimitTokens  Optional[int64]   `json:"limitTokens,omitzero"`
	Percent      Optional[float64] `json:"percent,omitzero"`
	Compressions Optional[int64]   `json:"compressions,omitzero"`
	Model        Optional[string]  `json:"model,omitzero"`
	Provider     Optional[string]  `json:"provider,omitzero"`
	// ObservedAt is the client's clock in its own unit. It is compared with
	// itself only.
	ObservedAt Optional[float64] `json:"observedAt,omitzero"`
}

// SessionSnapshot is a stored snapshot as clients see it.
type SessionSnapshot struct {
	SessionID string `json:"sessionId"`
	SessionContext
	// UpdatedAt is when the server stored it, in seconds since the Unix epoch.
	UpdatedAt float64 `json:"updatedAt"`
}

// DefaultProfile is the profile of a session whose profile was not given
// (section 3.10).
const DefaultProfile = "default"

// ContextUsage is the context record of a workspace conversation (section 2.16).
type ContextUsage struct {
	UsedTokens  int64 `json:"usedTokens"`
	LimitTokens int64 `json:"limitTokens"`
	// Percent has one decimal.
	Percent float64 `json:"percent"`
}
