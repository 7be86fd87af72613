package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensures that one request id is one message and one run, also when it is
// repeated at the same time, and also after the chat was archived.
func TestScenario19_SendIsIdempotent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	agent := c.agent("Ann")
	chat := c.direct(agent)
	body := obj{"requestId": uuid(), "content": "hello"}
	path := "/conversations/" + chat + "/messages"
	runs := make([]string, 20)
	var sending sync.WaitGroup
	for i := range runs {
		sending.Go(func() {
			a, err := c.try(c.request(http.MethodPost, path, encoded(t, body)))
			if err != nil || a.status != http.StatusAccepted {
				t.Errorf("%v: %d %s", err, a.status, a.body)
				return
			}
			runs[i] = a.json["run"].(obj)["id"].(string)
		})
	}
	sending.Wait()
	for _, run := range runs {
		if run != runs[0] {
			t.Errorf("the runs are %v", runs)
		}
	}
	if list := c.get(path).list("messages"); len(list) != 1 {
		t.Errorf("there are %d messages", len(list))
	}
	c.patch("/agents/"+agent, obj{"archived": true}).want(http.StatusOK)
	upper := obj{"requestId": strings.ToUpper(body["requestId"].(string)), "content": "hello", "mentionIds": []string{}}
	again := c.post(path, upper).want(http.StatusAccepted)
	if again.str("run", "id") != runs[0] || again.str("run", "status") != "interrupted" {
		t.Errorf("the answer is %s", again.body)
	}
}

// Ensures that a request id stands for one content.
func TestScenario20_SameIDOtherContent(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	ids := c.agents("a", "b")
	chat, other := c.group(ids...), c.group(ids...)
	file := c.upload("a.txt", "text/plain", "x").want(http.StatusCreated).str("files", "0", "id")
	id := uuid()
	c.post("/conversations/"+chat+"/messages", obj{"requestId": id, "content": "hello"}).want(http.StatusAccepted)
	for _, change := range []obj{{"content": "hello "}, {"mentionIds": ids[:1]}, {"fileIds": []string{file}}} {
		body := obj{"requestId": id, "content": "hello"}
		for k, v := range change {
			body[k] = v
		}
		c.post("/conversations/"+chat+"/messages", body).want(http.StatusConflict, "idempotency_conflict")
	}
	c.post("/conversations/"+other+"/messages", obj{"requestId": id, "content": "hello"}).want(http.StatusConflict, "idempotency_conflict")
}

// Ensures that a refused send leaves its request id unused.
func TestScenario21_RefusedSendLeavesIDUsable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	ids := c.agents("a", "b", "c")
	path := "/conversations/" + c.group(ids[:2]...) + "/messages"
	id := uuid()
	c.post(path, obj{"requestId": id, "content": " \n"}).want(http.StatusBadRequest, "invalid_workspace_request")
	c.post(path, obj{"requestId": id, "content": "x", "mentionIds": ids[2:]}).want(http.StatusBadRequest, "invalid_mentions")
	c.post(path, obj{"requestId": id, "content": "x", "fileIds": []string{uuid()}}).want(http.StatusNotFound, "upload_not_found")
	c.post(path, obj{"requestId": id, "content": strings.Repeat("x", workspace.MaxContent+1)}).want(http.StatusBadRequest, "invalid_workspace_request")
	c.post(path, obj{"requestId": "no", "content": "x"}).want(http.StatusBadRequest, "invalid_workspace_request")
	c.post(path, obj{"content": "x"}).want(http.StatusBadRequest, "invalid_workspace_request")
	c.post(path, obj{"requestId": id, "content": "x"}).want(http.StatusAccepted)
}

// Ensures that a message to a busy chat is stored and queued at once.
func TestScenario22_BusyChatQueues(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	chat := c.direct(c.agent("Ann"))
	first := c.say(chat, "one")
	second := c.post("/conversations/"+chat+"/messages", obj{"requestId": uuid(), "content": "two"}).want(http.StatusAccepted)
	if second.str("run", "status") != "queued" {
		t.Errorf("the run is %s", second.body)
	}
	detail := c.get("/conversations/" + chat).want(http.StatusOK)
	// Nothing executes here, so that the first one is still queued, too.
	if n := detail.num("conversation", "queuedMessageCount"); n != 2 || len(detail.list("messages")) != 2 || detail.str("run", "id") != first {
		t.Errorf("the detail is %s", detail.body)
	}
}

// Ensures that a message has a text or a file, and that its text is stored
// trimmed.
func TestScenario23_BlankNeedsFile(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	path := "/conversations/" + c.direct(c.agent("Ann")) + "/messages"
	c.post(path, obj{"requestId": uuid()}).want(http.StatusBadRequest, "invalid_workspace_request")
	file := c.upload("a.txt", "text/plain", "x").want(http.StatusCreated).str("files", "0", "id")
	c.post(path, obj{"requestId": uuid(), "fileIds": []string{file}}).want(http.StatusAccepted)
	c.post(path, obj{"requestId": uuid(), "content": "  hi \n"}).want(http.StatusAccepted)
	list := c.get(path)
	if list.str("messages", "0", "attachments", "0", "id") != file || list.str("messages", "1", "content") != "hi" {
		t.Errorf("the messages are %s", list.body)
	}
}

// Ensures that the read marker never goes back, never passes the last message, and
// that no event tells of nothing.
func TestScenario24_ReadMarker(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	chat := c.direct(c.agent("Ann"))
	read := func(seq any) answer { return c.put("/conversations/"+chat+"/read", obj{"seq": seq}) }
	for i := range 6 {
		c.say(chat, fmt.Sprint(i))
	}
	if got := read(5).want(http.StatusOK).num("conversation", "readSeq"); got != 6 {
		t.Errorf("own messages are read up to %d", got)
	}
	before := c.cursor()
	if got := read(3).want(http.StatusOK).num("conversation", "readSeq"); got != 6 {
		t.Errorf("the marker went back to %d", got)
	}
	if got := read(1000).want(http.StatusOK).num("conversation", "readSeq"); got != 6 {
		t.Errorf("the marker passed the end: %d", got)
	}
	if c.cursor() != before {
		t.Error("an event tells of nothing")
	}
	for _, seq := range []any{-1, 1.5, "5", nil} {
		read(seq).want(http.StatusBadRequest, "invalid_workspace_request")
	}
}

// Ensures that history is read from the newest back, without gap and repetition.
func TestScenario27_History(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	chat := c.direct(c.agent("Ann"))
	for i := range 230 {
		c.say(chat, fmt.Sprint(i+1))
	}
	next := int64(230)
	before := ""
	for _, size := range []int{100, 100, 30, 0} {
		page := c.get("/conversations/" + chat + "/messages?limit=100" + before).want(http.StatusOK)
		list := page.list("messages")
		if len(list) != size {
			t.Fatalf("a page has %d messages, want %d", len(list), size)
		}
		for i := size - 1; i >= 0; i-- {
			if page.num("messages", fmt.Sprint(i), "seq") != next {
				t.Fatalf("message %d of the page is not %d", i, next)
			}
			next--
		}
		before = fmt.Sprintf("&before=%d", next+1)
	}
	for query, size := range map[string]int{"": 100, "?limit=x": 100, "?limit=0": 100, "?limit=-1": 100, "?limit=201": 200, "?limit=7&before=x": 7} {
		if list := c.get("/conversations/" + chat + "/messages" + query).want(http.StatusOK).list("messages"); len(list) != size {
			t.Errorf("%q gives %d messages, want %d", query, len(list), size)
		}
	}
	if list := c.get("/conversations/" + chat).list("messages"); len(list) != 100 {
		t.Errorf("a detail has %d messages", len(list))
	}
}

// Ensures the order of the list, and that edits move no chat.
func TestScenario28_ListOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.as("ann")
	ids := c.agents("a", "b", "c")
	var chats []string
	for _, id := range ids {
		chats = append(chats, c.direct(id))
	}
	order := func(want ...string) {
		t.Helper()
		var got []string
		for _, item := range c.get("/conversations").list("conversations") {
			got = append(got, item.(obj)["id"].(string))
		}
		if !equal(got, want) {
			t.Errorf("the order is %v, want %v", got, want)
		}
	}
	for _, chat := range chats {
		f.clock.advance(1e9)
		c.say(chat, "hello")
	}
	order(chats[2], chats[1], chats[0])
	f.clock.advance(1e9)
	c.patch("/conversations/"+chats[0], obj{"pinned": true}).want(http.StatusOK)
	order(chats[0], chats[2], chats[1])
	c.patch("/agents/"+ids[1], obj{"name": "renamed"}).want(http.StatusOK)
	order(chats[0], chats[2], chats[1])
	c.say(chats[1], "newer")
	order(chats[0], chats[1], chats[2])
}

// Ensures that a stop ends queued runs, that stopping again changes nothing, and
// that reconciling is harmless.
func TestStop_EndsQueuedRuns(t *testing.T) {
	t.Parallel()
	c := newFixture(t).as("ann")
	ids := c.agents("a", "b", "c")
	chat := c.group(ids[:2]...)
	first, second := c.say(chat, "one"), c.say(chat, "two")
	c.post("/runs/"+first+"/reconcile", obj{}).want(http.StatusAccepted)
	c.post("/runs/"+first+"/stop", obj{}).want(http.StatusOK)
	detail := c.get("/conversations/" + chat)
	if detail.str("run", "id") != second || detail.num("conversation", "queuedMessageCount") != 1 {
		t.Errorf("the detail is %s", detail.body)
	}
	before := c.cursor()
	c.post("/runs/"+first+"/stop", obj{}).want(http.StatusOK)
	if c.cursor() != before {
		t.Error("stopping again changes something")
	}
	member := "/conversations/" + chat + "/agents/"
	c.post(member+ids[2]+"/stop", obj{}).want(http.StatusBadRequest, "invalid_members")
	c.post(member+ids[0]+"/stop", obj{}).want(http.StatusOK)
	if detail := c.get("/conversations/" + chat); detail.at("run") != nil || detail.at("conversation", "activeRunId") != nil {
		t.Errorf("the detail is %s", detail.body)
	}
	c.post("/runs/"+first+"/stop", obj{"force": true}).want(http.StatusBadRequest, "invalid_workspace_request")
	for _, path := range []string{"/runs/" + uuid() + "/stop", "/runs/no/stop", "/runs/" + uuid() + "/reconcile"} {
		c.post(path, nil).want(http.StatusNotFound, "workspace_not_found")
	}
}
