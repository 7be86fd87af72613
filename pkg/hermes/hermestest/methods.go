package hermestest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The dialects that have what came with server requests, and those that have not.
var (
	strictOnly = []Dialect{DialectNew, DialectGated}
	oldOnly    = []Dialect{Dialect019, DialectOld}
)

// methods are the JSON-RPC methods with the parameters that they declare.
var methods = map[string]method{
	"client.capabilities":  {keys: []string{"server_requests"}, dialects: []Dialect{DialectGated}, run: announce},
	"gateway.ping":         {dialects: strictOnly, run: func(*Server, *conn, object) (any, *failure) { return object{"ok": true}, nil }},
	"ping":                 {dialects: []Dialect{DialectOld}, run: func(*Server, *conn, object) (any, *failure) { return object{"pong": true}, nil }},
	"session.create":       {keys: []string{"profile", "title", "source", "hidden", "room_plumbing", "close_on_disconnect", "cwd", "model", "cols"}, run: create},
	"session.resume":       {keys: []string{"session_id", "profile", "source", "omit_messages", "close_on_disconnect", "cols"}, run: resume},
	"session.close":        {keys: []string{"session_id"}, run: closeSession},
	"session.interrupt":    {keys: []string{"session_id"}, run: interruptSession},
	"session.usage":        {keys: []string{"session_id"}, run: sessionUsage},
	"session.events.since": {keys: []string{"session_id", "last_seen"}, dialects: strictOnly, run: eventsSince},
	"prompt.submit":        {keys: []string{"session_id", "text", "queued", "display_kind"}, run: submit},
	"image.attach_bytes":   {keys: []string{"session_id", "content_base64", "filename"}, run: attachImage},
	"file.attach":          {keys: []string{"session_id", "data_url", "name", "path"}, run: attachFile},
	"approval.respond":     {keys: []string{"session_id", "choice", "request_id", "all"}, run: respondApproval},
	"approval.pending":     {keys: []string{"session_id"}, dialects: []Dialect{DialectOld, DialectNew, DialectGated}, run: pendingApprovals},
	"approval.received":    {keys: []string{"session_id", "request_id"}, dialects: strictOnly, run: received},
	"clarify.respond":      {keys: []string{"request_id", "answer"}, dialects: oldOnly, run: respondClarify},
	"request.answer":       {keys: []string{"id", "result"}, dialects: strictOnly, run: answerRequest},
}

// text returns a parameter that is a string.
func text(params object, key string) string {
	value, _ := params[key].(string)
	return value
}

// live returns the session that params name by their runtime id.
func (s *Server) live(params object) (*session, *failure) {
	if live := s.sessions[text(params, "session_id")]; live != nil {
		return live, nil
	}
	return nil, &failure{4001, "session not found"}
}

func announce(_ *Server, c *conn, _ object) (any, *failure) {
	c.announced = true
	return object{"server_requests": []string{"approval", "clarify", "sudo"}}, nil
}

// info is a session's info. The oldest builds name the process's profile.
func (s *Server) info(live *session) object {
	profile := live.profile
	if s.dialect == Dialect019 {
		profile = Launch
	}
	if s.wrongProfile != "" {
		profile = s.wrongProfile
	}
	info := object{"model": "scripted", "provider": "custom", "profile_name": profile, "running": live.running()}
	info["stored_session_id"] = live.storedID
	return info
}

// bound returns the profile that a call binds to: one that is not there becomes
// the launch profile without a word.
func (s *Server) bound(params object) string {
	if name := text(params, "profile"); s.hasProfile(name) {
		return name
	}
	return Launch
}

func create(s *Server, c *conn, params object) (any, *failure) {
	if title := text(params, "title"); title != "" && s.titleTaken(title) {
		return nil, &failure{4022, "title already in use"}
	}
	live := &session{
		runtime: hex(8), storedID: time.Now().UTC().Format("20060102_150405_") + hex(6), profile: s.bound(params), conn: c,
		title: text(params, "title"), source: text(params, "source"), hidden: params["hidden"] == true,
	}
	s.sessions[live.runtime] = live
	info := s.info(live)
	delete(info, "stored_session_id")
	info["lazy"] = true
	return object{"session_id": live.runtime, "stored_session_id": live.storedID, "message_count": 0, "messages": []any{}, "info": info}, nil
}

func (s *Server) titleTaken(title string) bool {
	for _, stored := range s.stored {
		if stored.title == title {
			return true
		}
	}
	return false
}

func resume(s *Server, c *conn, params object) (any, *failure) {
	id := text(params, "session_id")
	if id == "" {
		return nil, &failure{4006, "session_id required"}
	}
	stored := s.find(id, text(params, "profile"))
	live := s.byStored(id)
	if stored != nil {
		live = s.byStored(stored.id)
	}
	if stored == nil && (live == nil || s.dialect == Dialect019) {
		return nil, &failure{4007, "session not found"}
	}
	if live == nil {
		live = &session{runtime: hex(8), storedID: stored.id, profile: stored.profile, source: stored.source, hidden: stored.hidden}
		live.recovered = s.takeRecovery(stored.id)
		s.sessions[live.runtime] = live
		if live.recovered {
			s.recover(live)
		}
	}
	live.conn = c
	result := s.resumed(live)
	if stored != nil && params["omit_messages"] != true {
		result["messages"] = transcript(stored)
	}
	return result, nil
}

// transcript is a session's messages as resume sends them.
func transcript(stored *storedSession) []object {
	rows := []object{}
	for _, m := range stored.messages {
		rows = append(rows, object{"role": m.Role, "text": m.Content, "row_id": m.ID})
	}
	return rows
}

// resumed is the result of session.resume.
func (s *Server) resumed(live *session) object {
	result := object{
		"session_id": live.runtime, "message_count": 0, "messages": []any{}, "info": s.info(live), "inflight": nil,
		"running": live.running(), "status": live.status(), "session_key": live.storedID, "resumed": live.storedID,
	}
	if live.turn != nil {
		result["inflight"] = object{"user": live.turn.user, "assistant": live.turn.text, "streaming": true}
	}
	if len(live.queued) > 0 {
		result["queued"] = object{"user": strings.Join(live.queued, "\n\n")}
	}
	if s.dialect == Dialect019 {
		return result
	}
	result["stored_session_id"], result["messages_omitted"] = live.storedID, true
	if live.recovered {
		result["auto_continue"] = object{"attempt": 1, "interrupted_at": time.Now().Unix()}
	}
	if s.strict() {
		result["open_requests"] = s.openRequests(live)
	} else if pending := approvals(live); len(pending) > 0 {
		result["pending_approval"] = pending[0]
	}
	return result
}

func (s *Server) openRequests(live *session) []object {
	rows := []object{}
	for _, q := range live.open {
		rows = append(rows, object{"id": q.id, "method": q.kind, "params": q.params})
	}
	return rows
}

// approvals are the open approvals of a session.
func approvals(live *session) []object {
	rows := []object{}
	for _, q := range live.open {
		if q.kind == "approval" {
			rows = append(rows, q.params)
		}
	}
	return rows
}

func closeSession(s *Server, _ *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	live.end()
	delete(s.sessions, live.runtime)
	return object{"closed": true}, nil
}

func interruptSession(s *Server, _ *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	was := live.running()
	s.interrupt(live)
	if !was && s.dialect != Dialect019 {
		return object{"status": "not_interrupted"}, nil
	}
	return object{"status": "interrupted"}, nil
}

func sessionUsage(s *Server, _ *conn, params object) (any, *failure) {
	if _, failed := s.live(params); failed != nil {
		return nil, failed
	}
	return usage(), nil
}

func eventsSince(s *Server, _ *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	since, _ := params["last_seen"].(float64)
	events := []object{}
	for _, event := range live.ring {
		if seq, _ := event["seq"].(int); seq > int(since) {
			events = append(events, event)
		}
	}
	truncated := live.cut && (len(live.ring) == 0 || live.ring[0]["seq"].(int) > int(since)+1)
	if truncated {
		events = events[:0]
	}
	return object{
		"events": events, "latest_seq": live.seq, "truncated": truncated, "count": len(events), "epoch": s.epoch,
		"open_requests": s.openRequests(live),
	}, nil
}

// submit admits a prompt; a session that executes queues it, which a client must
// not let happen.
func submit(s *Server, c *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	live.conn = c
	if live.running() {
		live.queued = append(live.queued, text(params, "text"))
		return object{"status": "queued"}, nil
	}
	s.start(live, text(params, "text"))
	return object{"status": "streaming"}, nil
}

func attachImage(s *Server, _ *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	if _, err := base64.StdEncoding.DecodeString(text(params, "content_base64")); err != nil {
		return nil, &failure{4017, "data is not valid base64"}
	}
	live.images++
	return object{"attached": true, "count": live.images, "text": "[User attached image]"}, nil
}

func attachFile(s *Server, _ *conn, params object) (any, *failure) {
	if _, failed := s.live(params); failed != nil {
		return nil, failed
	}
	_, encoded, ok := strings.Cut(text(params, "data_url"), ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return nil, &failure{5028, "invalid data_url payload"}
	}
	name := ".hermes/desktop-attachments/" + text(params, "name")
	s.files[name] = data
	ref := name
	if strings.ContainsAny(name, " \t()") {
		ref = `"` + name + `"`
	}
	return object{"attached": true, "name": text(params, "name"), "path": "/home/hermes/" + name, "ref_path": name, "ref_text": "@file:" + ref, "uploaded": true}, nil
}

// respondApproval resolves one approval: the named one, or the oldest.
func respondApproval(s *Server, _ *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	for _, q := range live.open {
		id := text(params, "request_id")
		if q.kind == "approval" && (id == "" || id == q.id || s.dialect == Dialect019) {
			s.resolve(q, object{"choice": params["choice"]})
			return object{"resolved": 1}, nil
		}
	}
	return object{"resolved": 0}, nil
}

func pendingApprovals(s *Server, _ *conn, params object) (any, *failure) {
	live, failed := s.live(params)
	if failed != nil {
		return nil, failed
	}
	return object{"approvals": approvals(live)}, nil
}

func received(s *Server, _ *conn, params object) (any, *failure) {
	if _, failed := s.live(params); failed != nil {
		return nil, failed
	}
	return object{"acknowledged": true}, nil
}

func respondClarify(s *Server, _ *conn, params object) (any, *failure) {
	q := s.questions[text(params, "request_id")]
	if q == nil || q.kind != "clarify" {
		return nil, &failure{4009, "no pending answer request"}
	}
	s.resolve(q, object{"answer": params["answer"]})
	return object{"status": "ok"}, nil
}

func answerRequest(s *Server, _ *conn, params object) (any, *failure) {
	q := s.questions[text(params, "id")]
	if q == nil {
		return object{"status": "expired"}, nil
	}
	result, _ := params["result"].(map[string]any)
	s.resolve(q, result)
	return object{"status": "ok"}, nil
}

// Methods returns the names of all methods, for tests that look at what was
// called.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// String names a call for messages of tests.
func (c Call) String() string { return fmt.Sprintf("%s %v", c.Method, c.Params) }
