package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// raceCases judge writers that come at the same time (section 4).
func raceCases() []testCase {
	return []testCase{
		{
			name:  "race/one-thread",
			wants: "Of 32 posts to a thread at once exactly 20 are accepted, and each of these stands exactly once, sections 4 and 7.",
			judge: judgeRaceOneThread,
		},
		{
			name:  "race/one-address",
			wants: "Of 60 posts of an address at once exactly 40 are accepted, section 7.",
			judge: judgeRaceOneAddress,
		},
		{
			name:  "race/many-threads",
			wants: "First posts to many threads at once are all accepted, each in its own thread, section 4.",
			judge: judgeRaceManyThreads,
		},
		{
			name:  "race/posts-and-replies",
			wants: "Posts and replies by other processes to a thread at once all stand exactly once, epochs ascending, sections 4 and 8.",
			needs: needRoot | needChat,
			judge: judgeRacePostsAndReplies,
		},
		{
			name:  "race/readers",
			wants: "Whoever polls while others post sees messages in order, and from cursor to cursor all of them, sections 4 and 5.",
			judge: judgeRaceReaders,
		},
	}
}

// outcome is what came of a call that was made beside others.
type outcome struct {
	call   call
	answer answer
	err    error
}

// sendTogether makes all calls at the same time.
func (t *trial) sendTogether(calls []call) []outcome {
	return together(len(calls), func(i int) outcome {
		a, err := t.send(t.ctx, calls[i])
		return outcome{calls[i], a, err}
	})
}

// textCalls returns n posts of the texts "racer 0", "racer 1" and so on.
func (t *trial) textCalls(n int, token func(int) string) []call {
	calls := make([]call, n)
	for i := range calls {
		calls[i] = t.signed(t.postCall(token(i), strings.NewReader(textBody(racer(i)))))
	}
	return calls
}

func racer(i int) string { return fmt.Sprintf("racer %d", i) }

// race makes the calls, which are posts of [trial.textCalls], and returns the
// texts that were accepted with their receipts; the others must be 429 for the
// scope.
func (t *trial) race(calls []call, scope string, limit int) map[string]receipt {
	accepted := map[string]receipt{}
	for i, o := range t.sendTogether(calls) {
		a := t.checked(o.call, o.answer, o.err)
		if a.status == http.StatusTooManyRequests {
			t.wantLimited(a, scope, limit, windowSeconds)
			continue
		}
		accepted[racer(i)] = t.receipt(o.call.tokens[0], a)
	}
	return accepted
}

// wantStanding checks that the messages are exactly those of the receipts.
func (t *trial) wantStanding(messages []message, accepted map[string]receipt) {
	if len(messages) != len(accepted) {
		t.errorf("%d messages stand, %d were accepted", len(messages), len(accepted))
	}
	for _, m := range messages {
		if r, ok := accepted[m.Text]; !ok || r.ID != m.ID || r.Epoch != m.Epoch {
			t.errorf("the message %q stands as %s at %d, its receipt is %+v", m.Text, m.ID, m.Epoch, r)
		}
	}
}

func judgeRaceOneThread(t *trial) {
	token := t.token()
	accepted := t.race(t.textCalls(32, func(int) string { return token }), "thread", threadPosts)
	if len(accepted) != threadPosts {
		t.errorf("%d posts were accepted instead of %d", len(accepted), threadPosts)
	}
	t.wantStanding(t.poll(token, 0).Messages, accepted)
}

func judgeRaceOneAddress(t *trial) {
	tokens := []string{t.token(), t.token(), t.token()}
	calls := t.textCalls(60, func(i int) string { return tokens[i%len(tokens)] })
	if accepted := t.race(calls, "ip", ipPosts); len(accepted) != ipPosts {
		t.errorf("%d posts were accepted instead of %d", len(accepted), ipPosts)
	}
}

func judgeRaceManyThreads(t *trial) {
	const threads = 16
	tokens := make([]string, threads)
	for i := range tokens {
		tokens[i] = t.token()
	}
	calls := t.textCalls(threads, func(i int) string { return tokens[i] })
	for i := range calls {
		calls[i].from = []string{randomIPv6()}
	}
	accepted := t.race(calls, "", 0)
	for i, token := range tokens {
		t.wantStanding(t.poll(token, 0).Messages, map[string]receipt{racer(i): accepted[racer(i)]})
	}
}

// judgeRacePostsAndReplies has each racer reply and post in turn, so that the
// posts, which are quicker than processes, fall among the replies.
func judgeRacePostsAndReplies(t *trial) {
	token := t.token()
	t.post(token, "first")
	const racers, rounds = 9, 2
	calls := t.textCalls(racers*rounds, func(int) string { return token })
	type turn struct {
		reply chatResult
		post  outcome
	}
	turns := together(racers, func(i int) (turns [rounds]turn) {
		for round := range rounds {
			n := i*rounds + round
			reply := chatCall{root: t.tree(), args: []string{"reply", threadOf(token), "reply to " + racer(n)}}
			turns[round].reply = t.runChat(t.ctx, reply)
			a, err := t.send(t.ctx, calls[n])
			turns[round].post = outcome{calls[n], a, err}
		}
		return turns
	})
	want := []string{"first"}
	for n := range racers * rounds {
		turn := turns[n/rounds][n%rounds]
		t.wantExit(turn.reply, codeDone)
		t.receipt(token, t.checked(turn.post.call, turn.post.answer, turn.post.err))
		want = append(want, "reply to "+racer(n), racer(n))
	}
	got := page{Messages: t.pages(token)}.texts()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.errorf("the messages that stand are %q instead of %q", got, want)
	}
}

func judgeRaceReaders(t *trial) {
	token := t.token()
	done := make(chan []outcome, 1)
	calls := t.textCalls(threadPosts, func(int) string { return token })
	go func() { done <- t.sendTogether(calls) }()
	var seen []message
	var since int64
	var outcomes []outcome
	for posting := true; posting; {
		select {
		case outcomes = <-done:
			posting = false
		default:
		}
		p := t.poll(token, since)
		seen, since = append(seen, p.Messages...), p.Cursor
	}
	accepted := map[string]receipt{}
	for i, o := range outcomes {
		accepted[racer(i)] = t.receipt(token, t.checked(o.call, o.answer, o.err))
	}
	t.wantStanding(seen, accepted)
}
