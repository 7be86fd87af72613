package autoreplytest

import (
	"net/http"
	"sync"
)

// Turn is one reply of the server. The zero Turn is a reply without text.
type Turn struct {
	// Text is the content.
	Text string
	// Reasoning goes where the dialect has it.
	Reasoning string
	// Calls are made by the model.
	Calls []Call
	// Refusal is the model's own refusal.
	Refusal string
	// Finish is the finish reason. Unless it is set, the dialect's.
	Finish string
	// Tokens is how many the reply is said to have taken in all. With 0, some
	// number.
	Tokens int
	// NoUsage leaves out what the reply took.
	NoUsage bool
	// Message is the JSON of the reply's message, instead of what is made of the
	// fields above.
	Message string
	// Body is the whole body of the response, instead of what is made of the
	// fields above.
	Body string
	// Status is the response's status. With one other than 0 and 200, the body
	// is an error object unless Body is set.
	Status int
	// Header is added to the response.
	Header http.Header
	// Cut ends the connection in the middle of the body.
	Cut bool
	// Drop ends the connection before there is a response.
	Drop bool
	// Gate, unless nil, is waited at before the reply.
	Gate *Gate
}

// Call is a tool call.
type Call struct {
	// ID is the call's id. Unless it is set, the dialect's.
	ID   string
	Name string
	// Arguments is the text of the arguments, which need not be JSON.
	Arguments string
}

// Gate holds requests up until it is opened.
type Gate struct {
	arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{arrived: make(chan struct{}, 1024), open: make(chan struct{})}
}

// Arrived has a value for each request that came to the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets all requests through, now and later.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// wait reports whether the gate was opened before the request was given up.
func (g *Gate) wait(r *http.Request) bool {
	if g == nil {
		return true
	}
	g.arrived <- struct{}{}
	select {
	case <-g.open:
		return true
	case <-r.Context().Done():
		return false
	}
}
