package sandbox

// setup is the first frame, from the parent to the child.
type setup struct {
	Roots      []rootSetup `json:"roots"`
	Deny       []string    `json:"deny"`
	Support    support     `json:"support"`
	Limits     Limits      `json:"limits"`
	CPUSeconds uint64      `json:"cpu_seconds"`
}

// rootSetup is a readable directory as the parent resolved it. Device and inode
// tell the child whether it opened the same one.
type rootSetup struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Dev   uint64 `json:"dev"`
	Inode uint64 `json:"inode"`
}

// ready is the child's answer to setup.
type ready struct {
	// Error says why the child could not confine itself; it ends then.
	Error string `json:"error,omitzero"`
	// Broken lists the promises that were tried out and do not hold.
	Broken []string `json:"broken,omitzero"`
}

// The operations of a request.
const (
	opList   = "list"
	opRead   = "read"
	opSearch = "search"
)

// request is one call of a tool. There is never more than one under way.
type request struct {
	ID        uint64 `json:"id"`
	Op        string `json:"op"`
	Path      string `json:"path"`
	FirstLine int    `json:"first_line,omitzero"`
	LastLine  int    `json:"last_line,omitzero"`
	Pattern   string `json:"pattern,omitzero"`
	Regexp    bool   `json:"regexp,omitzero"`
	// BudgetMS is how many milliseconds a search may go on.
	BudgetMS int64 `json:"budget_ms"`
}

// response answers the request of the same id: with an error's code, or with
// the one result that belongs to the operation.
type response struct {
	ID      uint64   `json:"id"`
	Code    string   `json:"code,omitzero"`
	Detail  string   `json:"detail,omitzero"`
	Listing *Listing `json:"listing,omitzero"`
	Excerpt *Excerpt `json:"excerpt,omitzero"`
	Matches *Matches `json:"matches,omitzero"`
}

// The codes of a refusal on the wire, each for one error value.
const (
	codeNotReadable = "not_readable"
	codeTooLarge    = "too_large"
	codeBinary      = "binary"
	codeInvalid     = "invalid"
)

// refusals pairs codes with errors, in both directions.
func refusals() map[string]error {
	return map[string]error{
		codeNotReadable: ErrNotReadable,
		codeTooLarge:    ErrTooLarge,
		codeBinary:      ErrBinary,
		codeInvalid:     ErrInvalid,
	}
}
