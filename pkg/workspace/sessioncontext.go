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

// CheckSessionContext returns an error when a snapshot is out of its bounds.
// What may be null may be absent too (section 2.16).
func CheckSessionContext(in SessionContext) error {
	var f faults
	required(&f, "usedTokens", in.UsedTokens)
	required(&f, "observedAt", in.ObservedAt)
	checked(&f, "usedTokens", present(in.UsedTokens), notNegative[int64])
	checked(&f, "observedAt", present(in.ObservedAt), notNegative[float64])
	checked(&f, "limitTokens", present(in.LimitTokens), positive)
	checked(&f, "percent", present(in.Percent), notNegative[float64])
	checked(&f, "compressions", present(in.Compressions), notNegative[int64])
	checked(&f, "model", present(in.Model), textOf(0, MaxContextModel))
	checked(&f, "provider", present(in.Provider), textOf(0, MaxContextProvider))
	return f.err()
}

func positive(f *faults, field string, n int64) int64 {
	if n <= 0 {
		f.add(field, reasonPositive)
	}
	return n
}

// Replaces reports whether the snapshot may take the place of the stored one:
// it was not observed earlier (section 3.10).
func (c SessionContext) Replaces(stored SessionContext) bool {
	return c.ObservedAt.Or(0) >= stored.ObservedAt.Or(0)
}

// ProfileOf returns the profile of a request about a native session: that of
// the query, else that of the header, else [DefaultProfile]. An empty one counts
// as missing (section 3.10).
func ProfileOf(query, header string) string {
	for _, profile := range []string{query, header} {
		if profile != "" {
			return profile
		}
	}
	return DefaultProfile
}
