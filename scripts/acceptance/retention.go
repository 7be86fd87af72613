package main

import (
	"slices"
	"time"
)

// retentionCases judge what an append drops and which epoch it gives
// (section 4).
func retentionCases() []testCase {
	return []testCase{
		{
			name:  "retention/newest-200",
			wants: "An append to 200 messages drops the oldest one, section 4.",
			needs: needRoot,
			judge: judgeNewestKept,
		},
		{
			name:  "retention/30-days",
			wants: "An append drops the messages that are older than 30 days, section 4.",
			needs: needRoot,
			judge: judgeOldDropped,
		},
		{
			name:  "retention/epoch-from-the-future",
			wants: "An append behind an epoch in the future gets that epoch plus 1, with id and ts of the same second, section 4.",
			needs: needRoot,
			judge: judgeFutureEpoch,
		},
	}
}

// wantAppended checks that the thread holds what was kept and one message more.
func (t *trial) wantAppended(token string, kept []message) {
	r := t.post(token, "one more")
	want := append(slices.Clone(kept), message{ID: r.ID, Epoch: r.Epoch, TS: r.TS, Author: "operator", Text: "one more"})
	t.wantMessages(t.pages(token), want)
}

func judgeNewestKept(t *trial) {
	all := conversation(messageLimit, "operator")
	t.wantAppended(t.placed(all), all[1:])
	all = conversation(messageLimit-1, "operator")
	t.wantAppended(t.placed(all), all)
}

func judgeOldDropped(t *trial) {
	limit := time.Now().Add(-retention)
	old := conversationUntil(limit.Add(-time.Minute), 3, "operator")
	kept := conversationUntil(limit.Add(time.Hour), 3, "operator")
	t.wantAppended(t.placed(slices.Concat(old, kept)), kept)
	t.wantAppended(t.placed(old), nil)
}

func judgeFutureEpoch(t *trial) {
	ahead := conversationUntil(time.Now().Add(time.Hour), 2, "operator")
	token := t.placed(ahead)
	for i := range 3 {
		want := ahead[1].Epoch + int64(i) + 1
		if r := t.post(token, "one more"); r.Epoch != want {
			t.errorf("the epoch is %d instead of %d", r.Epoch, want)
		}
	}
}
