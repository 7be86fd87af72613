// Package hermes says what relay needs of a Hermes upstream, and nothing of how
// it is reached: the operations, events and failures of the workspace contract's
// section 7. It does no I/O. Package gateway implements it over JSON-RPC and
// REST; hermestest is the other end of that wire, for tests.
package hermes

import (
	"context"
	"time"
)

// Bounds of the contract's sections 7.1 and 9.5.
const (
	// MaxAttachment is the size of a file that is handed to a session or fetched
	// from its host, in bytes.
	MaxAttachment = 25 << 20
	// HistoryPage is how many entries a page of history has at most.
	HistoryPage = 500
	// HistoryPages is how many pages are searched for a turn.
	HistoryPages = 20
)

// Upstream is one Hermes server: the local one, or a node of somebody's. All of
// its methods may be called at once, and every error they return is an [*Error]
// unless it is that of a context. Signing in belongs to the implementation; it is
// repeated once when credentials have expired.
type Upstream interface {
	// Status asks whether the server is up. It needs no credentials.
	Status(ctx context.Context) (Status, error)
	// ListProfiles returns the profiles on which agents can stand, by name.
	ListProfiles(ctx context.Context) ([]Profile, error)
	// Open makes a hidden session, or resumes one without its messages. A session
	// of another profile than the one asked for is refused ([KindIdentity]).
	// An unprompted session leaves no trace upstream.
	Open(ctx context.Context, request OpenRequest) (Session, error)
	// History returns one page of a stored session, the newest entry first.
	History(ctx context.Context, request HistoryRequest) (Page, error)
	// Download fetches a file of the upstream's host, of at most [MaxAttachment].
	Download(ctx context.Context, profile, path string) (File, error)
	// Close ends every open session's connection and waits for what belongs to
	// them. It stops no execution.
	Close() error
}

// Session is a live handle on one session, and serves one turn: it submits once
// at most, or finds a turn again that was submitted before ([OpenRequest.Turn]).
// Lost connections are restored inside.
type Session interface {
	// State returns what is known of the session now.
	State() State
	// Events returns the turn's events in order. The channel is closed after the
	// terminal one, of which there is exactly one ([Event]), or by Close.
	Events() <-chan Event
	// Attach hands a file over before Submit and returns the reference that the
	// prompt must name, which is empty for images.
	Attach(ctx context.Context, file File) (reference string, err error)
	// Submit sends the turn's prompt, once. It is the only call that must never be
	// repeated. An error whose kind is [KindUncertain] says that the prompt may have
	// been admitted; the session goes on to find out, and its events tell. After
	// any other error nothing was admitted.
	Submit(ctx context.Context, prompt Prompt) error
	// Interrupt stops the turn. Without error it has ended, or will by its
	// [Interrupted] event, unless it completed before.
	Interrupt(ctx context.Context) error
	// AnswerApproval answers a question of the kind [Approval], and
	// AnswerClarification one of the kind [Clarification]; with nil answers it is
	// cancelled. [KindExpired] says that the question is no longer open, [KindUncertain]
	// that the answer may have arrived.
	AnswerApproval(ctx context.Context, question string, choice Choice) error
	AnswerClarification(ctx context.Context, question string, answers Answers) error
	// Usage asks for the session's context usage.
	Usage(ctx context.Context) (Usage, error)
	// Close lets go of the session, never stopping its execution, and waits for
	// what belongs to it.
	Close() error
}

// Status is what a server says of itself without credentials.
type Status struct {
	Version string
	// Kind is the server's server_kind, empty for Hermes. Other chat servers name
	// themselves here and are no upstream (section 3.8).
	Kind string
	// Gated says that signing in takes a user and a password.
	Gated bool
}

// Profile is one of a server's profiles.
type Profile struct {
	Name string
	// Title is the best name for people that the server has, else the name.
	Title   string
	Path    string
	Model   string
	Default bool
}

// OpenRequest says which session to open.
type OpenRequest struct {
	Profile string
	// StoredID is the session's durable id; empty makes a new session.
	StoredID string
	// Title is for the operator's eyes and may be dropped.
	Title string
	// Turn is the marker of a turn that may have been submitted before: the
	// session finds it again and tells of it by its events, submitting nothing
	// (section 6.10). The zero value opens for a new turn, which a session that
	// still executes refuses with [KindBusy].
	Turn Marker
}

// State is what is known of a session.
type State struct {
	// StoredID may be kept; it changes when Hermes continues a conversation in
	// another session. Aliases are its former values.
	StoredID string
	Aliases  []string
	// RuntimeID dies with the upstream's process.
	RuntimeID string
	Profile   string
	// Running says that the session executes a turn.
	Running bool
	// Questions are those that await an answer.
	Questions []Question
}

// Prompt is what Submit sends: the marker's line, then the text, made inert for
// Hermes, then the references, as Attach returned them.
type Prompt struct {
	Marker     Marker
	Text       string
	References []string
}

// File is a file with its bytes. Its Type is a MIME type, which decides whether
// Attach hands it over as an image.
type File struct {
	Name string
	Type string
	Data []byte
}

// Usage is how full a session's context is, in tokens; zero is unknown.
type Usage struct {
	Used, Max     int64
	Input, Output int64
	Model         string
}

// HistoryRequest names a page of a stored session; page 0 has the newest
// entries.
type HistoryRequest struct {
	Profile  string
	StoredID string
	Page     int
}

// Page is one page of history, the newest entry first.
type Page struct {
	// StoredID is where the session continues, which may not be the id asked for.
	StoredID string
	Entries  []Entry
	// Last says that nothing older follows.
	Last bool
	// Whole says that the server also lists entries that were compacted away, so
	// that what is missing was never there.
	Whole bool
}

// Entry is one message of a stored session.
type Entry struct {
	ID   int64
	Role string
	Text string
	// Calls says that it announces calls of tools, so that it is no answer.
	Calls        bool
	FinishReason string
	Time         time.Time
}

// The roles of an [Entry] that matter here.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)
