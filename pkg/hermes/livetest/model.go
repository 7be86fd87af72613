package livetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Model is a server of chat completions that answers as it was told. Each profile
// asks below a path of its own, /PROFILE/v1, and so has answers of its own. What
// is not streamed, such as the making of titles, is not scripted.
type Model struct {
	mu      sync.Mutex
	replies map[string][]Reply
	asked   map[string][]string
}

// Reply is one answer of the model: text in pieces, or the call of a tool. Before
// the last piece it waits for Gate, if there is one.
type Reply struct {
	Pieces    []string
	Tool      string
	Arguments string
	Gate      <-chan struct{}
	Reached   chan<- struct{} // closed before it waits
}

// NewModel returns a model that answers "ok" until it is told otherwise.
func NewModel() *Model {
	return &Model{replies: make(map[string][]Reply), asked: make(map[string][]string)}
}

// Script adds the next answers for a profile.
func (m *Model) Script(profile string, replies ...Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies[profile] = append(m.replies[profile], replies...)
}

// Asked returns the newest message of each streamed request of a profile.
func (m *Model) Asked(profile string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.asked[profile]...)
}

// next takes the answer to a request.
func (m *Model) next(profile, newest string) Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[profile] = append(m.asked[profile], newest)
	if waiting := m.replies[profile]; len(waiting) > 0 {
		m.replies[profile] = waiting[1:]
		return waiting[0]
	}
	return Reply{Pieces: []string{"ok"}}
}

// ServeHTTP answers requests for models and completions.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	profile, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if path != "v1/chat/completions" {
		writeJSON(w, object{"object": "list", "data": []object{{"id": "scripted", "object": "model", "context_length": 128000}}})
		return
	}
	var request struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "malformed", http.StatusBadRequest)
		return
	}
	if !request.Stream {
		writeJSON(w, object{
			"id": "c", "object": "chat.completion", "model": "scripted", "usage": tokens(),
			"choices": []object{{"index": 0, "message": object{"role": "assistant", "content": "A title"}, "finish_reason": "stop"}},
		})
		return
	}
	m.stream(w, r, m.next(profile, string(request.Messages[len(request.Messages)-1].Content)))
}

type object = map[string]any

func tokens() object { return object{"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62} }

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// stream sends an answer piece by piece.
func (m *Model) stream(w http.ResponseWriter, r *http.Request, reply Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	reason := "stop"
	if reply.Tool != "" {
		reason = "tool_calls"
		event(w, object{"role": "assistant", "tool_calls": []object{{
			"index": 0, "id": "call_1", "type": "function", "function": object{"name": reply.Tool, "arguments": reply.Arguments},
		}}}, nil)
	}
	for i, piece := range reply.Pieces {
		if i == len(reply.Pieces)-1 && reply.Gate != nil {
			close(reply.Reached)
			select {
			case <-reply.Gate:
			case <-r.Context().Done():
				return
			}
		}
		event(w, object{"role": "assistant", "content": piece}, nil)
	}
	event(w, object{}, reason)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// event sends one chunk.
func event(w http.ResponseWriter, delta object, reason any) {
	chunk := object{"id": "c", "object": "chat.completion.chunk", "model": "scripted", "choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}}}
	if reason != nil {
		chunk["usage"] = tokens()
	}
	raw, err := json.Marshal(chunk)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", raw)
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}
