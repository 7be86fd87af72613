package workspace_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// hosts returns a group in administrator mode of A, who administers it, B and C.
func hosts(t *testing.T, limit int) workspace.Conversation {
	t.Helper()
	c := mustGroup(t, team(3))
	c.MaxReplyRounds = limit
	return c
}

// frees returns a group in free mode of A to D with B, C and D automatic.
func frees(t *testing.T, limit int) workspace.Conversation {
	t.Helper()
	c := mustGroup(t, team(4))
	c.Mode, c.MaxReplyRounds = workspace.ModeFree, limit
	c.AutoReplyIDs = ids(team(4))[1:]
	return c
}

// Ensure that a delegation to two members runs as one batch and comes back as
// exactly one review at the same depth (section 6.6, scenarios 40 and 41).
func TestHostBatchAndReview(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 3), team(3), "开始")
	d.says("A", "请 @B 和 @C 看看")
	d.want(workspace.RunRunning, "A0 complete", "B1 queued", "C1 queued")
	if b, c := d.scene.Tasks[1], d.scene.Tasks[2]; b.BatchID != "t1" || c.BatchID != "t1" || b.TriggerSeq != 2 || b.RequiredReply || b.ReplyMode != workspace.ReplyMentioned {
		t.Errorf("batch of %+v and %+v", b, c)
	}
	d.start("B")
	d.start("C")
	d.plan(d.end("B", workspace.TaskComplete, "好，@C 也来"))
	d.want(workspace.RunRunning, "A0 complete", "B1 complete", "C1 running")
	d.plan(d.end("C", workspace.TaskFailed, ""))
	d.want(workspace.RunRunning, "A0 complete", "B1 complete", "C1 failed", "A1 queued*")
	if review := d.scene.Tasks[3]; review.TriggerSeq != 4 || !review.RequiredReply || review.ReviewOf != "t1" || review.ReplyMode != workspace.ReplyAutomatic {
		t.Errorf("review %+v", review)
	}
	d.says("A", "完成")
	d.want(workspace.RunComplete, "A0 complete", "B1 complete", "C1 failed", "A1 complete*")
	if d.scene.Run.Round != 1 || d.notices != 0 {
		t.Errorf("round %d, %d notices", d.scene.Run.Round, d.notices)
	}
}

// Ensure that members who end before either was planned are reviewed once
// (section 6.6 step 7, scenarios 62 and 63).
func TestHostReviewIsUnique(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 3), team(3), "开始")
	d.says("A", "@B @C")
	d.start("B")
	d.start("C")
	b, c := d.end("B", workspace.TaskComplete, "1"), d.end("C", workspace.TaskInterrupted, "")
	d.plan(b)
	d.plan(c)
	d.want(workspace.RunRunning, "A0 complete", "B1 complete", "C1 interrupted", "A1 queued*")
	if again := workspace.Plan(d.scene, b); !cmp.Equal(again, workspace.FollowUp{}) {
		t.Errorf("a planned task was planned again: %+v", again)
	}
	d.scene.Tasks[1].Planned = false
	if again := workspace.Plan(d.scene, b); !cmp.Equal(again, workspace.FollowUp{}) {
		t.Errorf("after a crash the review came twice: %+v", again)
	}
}

// Ensure that limit 3 allows two delegations in a row without a notice
// (scenario 42), and refuses a third with one (section 6.6's example).
func TestHostSerialDelegation(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 3), team(3), "开始")
	d.says("A", "@B 先来")
	d.says("B", "1")
	d.says("A", "@C 再来")
	d.says("C", "2")
	d.want(workspace.RunRunning, "A0 complete", "B1 complete", "A1 complete*", "C2 complete", "A2 queued*")
	if d.notices != 0 {
		t.Errorf("%d notices before the end", d.notices)
	}
	d.says("A", "@B 还有")
	d.want(workspace.RunComplete, "A0 complete", "B1 complete", "A1 complete*", "C2 complete", "A2 complete*")
	if d.notices != 1 {
		t.Errorf("%d notices at the end, want 1", d.notices)
	}
}

// Ensure what the limits 1, 2 and none allow to an administrator that always
// delegates (section 6.7's values, scenario 43).
func TestHostLimits(t *testing.T) {
	t.Parallel()
	for limit, submissions := range map[int]int{1: 1, 2: 3, 3: 5, 100: 199} {
		d := play(t, hosts(t, limit), team(3), "开始")
		for !d.scene.Run.Status.Terminal() {
			last := d.scene.Tasks[len(d.scene.Tasks)-1]
			d.says(d.scene.Members[last.AgentID].Name, "@B")
		}
		if len(d.scene.Tasks) != submissions || d.notices != 1 {
			t.Errorf("limit %d: %d submissions and %d notices, want %d and 1", limit, len(d.scene.Tasks), d.notices, submissions)
		}
	}
	d := play(t, hosts(t, workspace.UnlimitedRounds), team(3), "开始")
	for range 150 {
		d.says("A", "@B")
		d.says("B", "好")
	}
	if d.notices != 0 || d.scene.Run.Round != 150 {
		t.Errorf("without a limit: %d notices, round %d", d.notices, d.scene.Run.Round)
	}
}

// Ensure that nothing follows from an administrator that failed, was
// interrupted, or mentions nobody but itself (section 6.6, steps 2 and 3).
func TestHostEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status workspace.TaskStatus
		text   string
		want   workspace.RunStatus
	}{
		{workspace.TaskFailed, "@B", workspace.RunFailed},
		{workspace.TaskInterrupted, "@B", workspace.RunInterrupted},
		{workspace.TaskComplete, "我 @A 完成了", workspace.RunComplete},
		{workspace.TaskComplete, "> @B\n`@C`", workspace.RunComplete},
	}
	for _, tt := range tests {
		d := play(t, hosts(t, 3), team(3), "开始")
		d.start("A")
		d.plan(d.end("A", tt.status, tt.text))
		d.want(tt.want, "A0 "+string(tt.status))
	}
}

// Ensure that a reply is read with the roster and the mode of its launch, and
// its batch is reviewed whatever the mode is then (scenario 47).
func TestHostLaunchSnapshot(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 3), team(3), "开始")
	d.start("A")
	renamed := d.scene.Members[id[workspace.AgentID](2)]
	renamed.Name = "X"
	d.scene.Members[renamed.ID] = renamed
	d.scene.Conversation.Mode = workspace.ModeFree
	d.plan(d.end("A", workspace.TaskComplete, "@B @X"))
	d.want(workspace.RunRunning, "A0 complete", "X1 queued")
	d.says("X", "@C 你好")
	d.want(workspace.RunRunning, "A0 complete", "X1 complete", "A1 queued*")
}

// Ensure that a removed member is not dispatched even if named, that its queued
// task still lets the batch be reviewed, and that its running one counts
// (section 5.6, scenarios 56 and 57).
func TestHostRemovedMember(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 5), team(3), "开始")
	d.says("A", "@B @C")
	d.start("B")
	d.scene.Conversation.MemberIDs = ids(team(1))
	for _, task := range d.scene.Tasks[1:] {
		if task.MayStart(d.scene.Conversation, d.scene.Run) {
			t.Errorf("task of removed %s may start", d.scene.Members[task.AgentID].Name)
		}
	}
	c := d.task("C", workspace.TaskQueued)
	c.Status = workspace.TaskInterrupted
	d.plan(c.ID)
	d.plan(d.end("B", workspace.TaskComplete, "做完了"))
	d.want(workspace.RunRunning, "A0 complete", "B1 complete", "C1 interrupted", "A1 queued*")
	d.says("A", "@B 再来")
	d.want(workspace.RunComplete, "A0 complete", "B1 complete", "C1 interrupted", "A1 complete*")
}

// Ensure that the review and a first task that was not begun go to the present
// administrator (section 6.4, section 11 item 30).
func TestHostAdministratorChanges(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 3), team(3), "开始")
	b := id[workspace.AgentID](2)
	changed := d.scene.Conversation
	changed.AdministratorID = b
	if got := d.scene.Tasks[0].FirstAgent(changed); got != b {
		t.Errorf("the first task goes to %s", got)
	}
	begun := d.scene.Tasks[0]
	begun.Submitted = true
	if got := begun.FirstAgent(changed); got != begun.AgentID {
		t.Errorf("a submitted task goes to %s", got)
	}
	d.says("A", "@C")
	d.scene.Conversation = changed
	d.says("C", "好")
	d.want(workspace.RunRunning, "A0 complete", "C1 complete", "B1 queued*")
}

// Ensure that in free mode each public reply is relayed on its own: to those it
// names, else to the automatic members without the speaker (section 6.7,
// scenario 50).
func TestFreeRelay(t *testing.T) {
	t.Parallel()
	d := play(t, frees(t, 2), team(4), "@B 你好")
	d.says("B", "大家好")
	d.want(workspace.RunRunning, "B0 complete", "C1 queued", "D1 queued")
	if c := d.scene.Tasks[1]; c.RequiredReply || c.ReplyMode != workspace.ReplyAutomatic || c.TriggerSeq != 2 {
		t.Errorf("relay %+v", c)
	}
	d.says("C", "@A 请看")
	d.start("D")
	silent := d.end("D", workspace.TaskComplete, "")
	d.task("D", workspace.TaskComplete).Silent = true
	d.plan(silent)
	d.want(workspace.RunComplete, "B0 complete", "C1 complete", "D1 complete")
	if d.notices != 1 {
		t.Errorf("%d notices, want 1", d.notices)
	}
}

// Ensure that a reply's names win over the automatic members, that a failure is
// relayed to nobody, and that an administrator may be an automatic target that
// need not answer (section 6.7, section 11 item 5).
func TestFreeTargets(t *testing.T) {
	t.Parallel()
	c := frees(t, 5)
	c.AutoReplyIDs = ids(team(4))[:2]
	d := play(t, c, team(4), "@C @D 你好")
	d.says("C", "@B 请看")
	d.want(workspace.RunRunning, "C0 complete", "D0 queued", "B1 queued")
	d.start("D")
	d.plan(d.end("D", workspace.TaskFailed, "@A"))
	d.want(workspace.RunRunning, "C0 complete", "D0 failed", "B1 queued")
	d.says("B", "没有点名")
	d.want(workspace.RunRunning, "C0 complete", "D0 failed", "B1 complete", "A2 queued")
	if d.scene.Tasks[3].RequiredReply {
		t.Error("an administrator in a later relay must answer")
	}
}

// Ensure that a second speaker raises a task while it is queued, that a mention
// wins over automatic, and that once it has started only a mention makes a
// further one (section 6.7 step 4, section 11 item 12).
func TestFreeMerge(t *testing.T) {
	t.Parallel()
	d := play(t, frees(t, 5), team(4), "@A @B 你好")
	d.says("A", "没有点名")
	d.want(workspace.RunRunning, "A0 complete", "B0 queued", "B1 queued", "C1 queued", "D1 queued")
	// Both tasks of B are queued; let the one of depth 0 speak.
	d.scene.Tasks[1].Status = workspace.TaskRunning
	launch := workspace.Snapshot(d.scene.Conversation, d.scene.Members)
	d.scene.Tasks[1].Launch = &launch
	d.start("D")
	d.plan(d.endTask("t2", "@C @D 请看"))
	d.want(workspace.RunRunning, "A0 complete", "B0 complete", "B1 queued", "C1 queued", "D1 running", "D1 queued")
	if c := d.scene.Tasks[3]; c.ReplyMode != workspace.ReplyMentioned || c.TriggerSeq != 3 {
		t.Errorf("C was not raised: %+v", c)
	}
}

// Ensure that an automatic relay to a task that has started is dropped.
func TestFreeMergeDropsAutomatic(t *testing.T) {
	t.Parallel()
	d := play(t, frees(t, 5), team(4), "@A @B 你好")
	d.says("A", "没有点名")
	for _, name := range []string{"C", "D"} {
		d.start(name)
	}
	d.scene.Tasks[1].Status = workspace.TaskRunning
	d.plan(d.endTask("t2", "也没有点名"))
	d.want(workspace.RunRunning, "A0 complete", "B0 complete", "B1 queued", "C1 running", "D1 running")
}

// Ensure that without a limit the relay goes on past 100, and that a stopped run
// plans nothing further (section 6.9, scenarios 51 and 66).
func TestFreeUnlimitedUntilStopped(t *testing.T) {
	t.Parallel()
	c := frees(t, workspace.UnlimitedRounds)
	c.AutoReplyIDs = ids(team(4))[1:3]
	d := play(t, c, team(4), "@B 你好")
	for i := range 120 {
		d.says([]string{"B", "C"}[i%2], "继续")
	}
	if d.scene.Run.Round != 120 || d.notices != 0 {
		t.Errorf("round %d, %d notices", d.scene.Run.Round, d.notices)
	}
	d.scene.Run.StopRequested = true
	d.says("B", "@C 继续")
	if d.scene.Run.Status != workspace.RunInterrupted {
		t.Errorf("the stopped run is %s", d.scene.Run.Status)
	}
}

// Ensure that planning names only what exists and is terminal, and nothing in a
// direct chat (section 5.4).
func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	d := play(t, hosts(t, 3), team(3), "开始")
	d.start("A")
	direct := d.scene
	direct.Conversation.Kind = workspace.Direct
	for name, next := range map[string]workspace.FollowUp{
		"unknown task": workspace.Plan(d.scene, "t9"),
		"running task": workspace.Plan(d.scene, "t1"),
	} {
		if !cmp.Equal(next, workspace.FollowUp{}) {
			t.Errorf("%s: %+v", name, next)
		}
	}
	done := d.end("A", workspace.TaskComplete, "@B")
	direct.Tasks = d.scene.Tasks
	if next := workspace.Plan(direct, done); !cmp.Equal(next, workspace.FollowUp{}) {
		t.Errorf("direct chat: %+v", next)
	}
}

// Ensure, for runs in which members say and end at random, in an order of
// planning that is random too, and with each plan made twice as after a crash:
// the run ends, no batch is reviewed twice, every batch that an administrator
// delegated is reviewed, and no task is deeper than the limit allows.
func TestPlanRandomRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(5)
		c := frees(t, limit)
		if random.IntN(2) == 0 {
			c.Mode = workspace.ModeHost
		}
		d := play(t, c, team(4), []string{"开始", "@B @C 开始"}[random.IntN(2)])
		d.atRandom(random)
		if !d.scene.Run.Status.Terminal() {
			t.Fatalf("seed %d: the run is %s", seed, d.scene.Run.Status)
		}
		d.checkReviews(seed)
		for _, task := range d.scene.Tasks {
			if task.Depth >= limit {
				t.Fatalf("seed %d: depth %d with limit %d", seed, task.Depth, limit)
			}
		}
	}
}

// atRandom lets tasks start, end and be planned in any order until the run ends
// or far too many steps were taken.
func (d *drama) atRandom(random *rand.Rand) {
	texts := []string{"好", "@B", "@C 和 @D", "@all", "`@B`", "@A 请看"}
	ends := []workspace.TaskStatus{workspace.TaskComplete, workspace.TaskComplete, workspace.TaskComplete, workspace.TaskFailed, workspace.TaskInterrupted}
	for range 5000 {
		if d.scene.Run.Status.Terminal() {
			return
		}
		i := random.IntN(len(d.scene.Tasks))
		task := &d.scene.Tasks[i]
		switch {
		case task.Status == workspace.TaskQueued:
			launch := workspace.Snapshot(d.scene.Conversation, d.scene.Members)
			task.Status, task.Launch = workspace.TaskRunning, &launch
		case task.Status == workspace.TaskRunning:
			task.Status = ends[random.IntN(len(ends))]
			d.seq++
			d.scene.Replies[task.ID] = workspace.Reply{Seq: d.seq, Text: texts[random.IntN(len(texts))]}
		case !task.Planned:
			taskID := task.ID
			d.plan(taskID)
			d.scene.Tasks[i].Planned = false // as if the flag had not been stored
			if again := workspace.Plan(d.scene, taskID); len(again.Create) > 0 {
				d.t.Fatalf("planning again creates tasks again: %+v", again)
			}
			d.scene.Tasks[i].Planned = true
		}
		d.derive()
	}
}

// checkReviews fails the test unless every batch of an administrator was
// reviewed exactly once and no other batch was.
func (d *drama) checkReviews(seed uint64) {
	reviews := make(map[workspace.BatchID]int)
	delegated := make(map[workspace.BatchID]bool)
	for _, task := range d.scene.Tasks {
		if task.ReviewOf != "" {
			reviews[task.ReviewOf]++
		}
		if task.Depth > 0 && task.ReviewOf == "" && task.Launch.Mode == workspace.ModeHost {
			delegated[task.BatchID] = true
		}
	}
	for batch := range delegated {
		if reviews[batch] != 1 {
			d.t.Fatalf("seed %d: batch %s was reviewed %d times", seed, batch, reviews[batch])
		}
	}
	if len(reviews) != len(delegated) {
		d.t.Fatalf("seed %d: %d reviews of %d batches", seed, len(reviews), len(delegated))
	}
}
