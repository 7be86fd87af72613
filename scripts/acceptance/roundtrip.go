package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
)

// roundTripCases judge the whole way from a browser to Hermes and back.
func roundTripCases() []testCase {
	return []testCase{
		{
			name:  "roundtrip/post-reply-poll",
			wants: "A post awaits in chat poll, chat reply answers it as hermes, and the browser's next poll shows the answer, sections 4, 5 and 8.",
			needs: needRoot | needChat,
			judge: judgeRoundTrip,
		},
		{
			name:  "roundtrip/same-page",
			wants: "chat poll THREAD --json prints the body of the HTTP poll, section 8.",
			needs: needRoot | needChat,
			judge: judgeSamePage,
		},
		{
			name:  "roundtrip/reply-keeps-modes",
			wants: "A reply under umask 077 leaves the file writable for the daemon's group, section 8.",
			needs: needRoot | needChat,
			judge: judgeReplyModes,
		},
		{
			name:  "roundtrip/untrusted-text",
			wants: "A text that a browser posts is printed as sent by --json and never steers a terminal, section 8.",
			needs: needRoot | needChat,
			judge: judgeUntrustedPost,
		},
	}
}

func judgeRoundTrip(t *trial) {
	token := t.token()
	thread := threadOf(token)
	asked := t.post(token, "is anyone there?")
	cursor := t.poll(token, 0).Cursor
	t.wantListed(t.tree(), thread, true)

	reply := t.chatIn(t.tree(), "reply", thread, "yes, Hermes")
	t.wantExit(reply, codeDone)
	p := t.poll(token, cursor)
	if len(p.Messages) != 1 || p.Messages[0].Author != "hermes" || p.Messages[0].Text != "yes, Hermes" || p.Awaiting {
		t.fatalf("the next poll shows %+v, awaiting %t", p.Messages, p.Awaiting)
	}
	answer := p.Messages[0]
	if answer.Epoch <= asked.Epoch {
		t.errorf("the answer has epoch %d, the question %d", answer.Epoch, asked.Epoch)
	}
	if !bytes.Contains(reply.stdout, []byte(answer.ID)) || !bytes.Contains(reply.stdout, []byte(strconv.FormatInt(answer.Epoch, 10))) {
		t.errorf("the reply does not print its id and epoch: %s", clip(reply.stdout))
	}
	t.wantListed(t.tree(), thread, false)

	t.post(token, "thanks")
	t.wantListed(t.tree(), thread, true)
	t.wantAuthors(token, "operator", "hermes", "operator")
}

// wantListed checks whether a thread is among those that await Hermes.
func (t *trial) wantListed(r tree, thread string, want bool) {
	if got := slices.Contains(t.awaiting(r), thread); got != want {
		t.errorf("the thread is listed by chat poll: %t instead of %t", got, want)
	}
}

// awaiting returns the threads that chat poll lists, in its order. The contract
// leaves the shape of the list open, so every string that is a thread id counts.
func (t *trial) awaiting(r tree) []string {
	result := t.chatIn(r, "poll", "--json")
	t.wantExit(result, codeDone)
	return t.threadsIn(result.stdout)
}

func (t *trial) threadsIn(stdout []byte) []string {
	var value any
	if err := json.Unmarshal(stdout, &value); err != nil {
		t.fatalf("chat poll --json prints no single JSON value: %v: %s", err, clip(stdout))
	}
	return threadIDs(value)
}

// threadIDs collects the thread ids in a decoded JSON value.
func threadIDs(value any) []string {
	switch v := value.(type) {
	case string:
		if isThreadID(v) {
			return []string{v}
		}
	case []any:
		var ids []string
		for _, element := range v {
			ids = append(ids, threadIDs(element)...)
		}
		return ids
	case map[string]any:
		var ids []string
		for _, element := range v {
			ids = append(ids, threadIDs(element)...)
		}
		return ids
	}
	return nil
}

func judgeSamePage(t *trial) {
	all := conversation(60, "operator")
	token := t.placed(all)
	for _, since := range []int64{0, 1, all[20].Epoch, all[59].Epoch} {
		number := strconv.FormatInt(since, 10)
		overHTTP := t.do(t.pollCall(token, "since="+number))
		result := t.chatIn(t.tree(), "poll", threadOf(token), "--since", number, "--json")
		t.wantExit(result, codeDone)
		var one, other any
		t.must(json.Unmarshal(overHTTP.body, &one))
		if err := json.Unmarshal(result.stdout, &other); err != nil {
			t.fatalf("%s: not one JSON value: %v", result.asked, err)
		}
		if !reflect.DeepEqual(one, other) {
			t.errorf("%s prints %s, the server says %s", result.asked, clip(result.stdout), clip(overHTTP.body))
		}
	}
}

func judgeReplyModes(t *trial) {
	token := t.token()
	t.post(token, "hello")
	reply := chatCall{root: t.tree(), args: []string{"reply", threadOf(token), "answer"}, umask: "077"}
	t.wantExit(t.runChat(t.ctx, reply), codeDone)
	t.wantShared(t.tree(), threadOf(token))
	t.post(token, "still here")
}

func judgeUntrustedPost(t *trial) {
	token := t.token()
	t.post(token, hostileText)
	t.wantTame(t.chatIn(t.tree(), "poll", threadOf(token)))
	t.wantTame(t.chatIn(t.tree(), "poll"))
	result := t.chatIn(t.tree(), "poll", threadOf(token), "--json")
	t.wantExit(result, codeDone)
	t.wantNoControls(result)
	p := t.page(result.asked, result.stdout, threadOf(token), 0)
	if len(p.Messages) != 1 || p.Messages[0].Text != hostileText {
		t.errorf("--json prints %q instead of %q", p.texts(), hostileText)
	}
}
