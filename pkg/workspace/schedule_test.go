package workspace_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// openTask returns an open task of an owner's chat, named like "ann/c1/B", whose
// message has the given sequence.
func openTask(name string, seq int64, change ...func(*workspace.OpenTask)) workspace.OpenTask {
	part := strings.Split(name, "/")
	t := workspace.OpenTask{
		Kind: workspace.Group, Mode: workspace.ModeFree, AdministratorID: "A", MessageSeq: seq, MessageAt: workspace.Millis(seq), OwnerEnabled: true,
		Task: workspace.Task{
			ID: workspace.TaskID(fmt.Sprintf("%s-%d", name, seq)), Owner: workspace.OwnerID(part[0]), ConversationID: workspace.ConversationID(part[1]),
			AgentID: workspace.AgentID(part[2]), Status: workspace.TaskQueued,
			RunID: workspace.RunID(fmt.Sprint(part[1], seq)), BatchID: workspace.BatchID(fmt.Sprint(part[1], seq)),
		},
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

func is(status workspace.TaskStatus) func(*workspace.OpenTask) {
	return func(t *workspace.OpenTask) { t.Status = status }
}

func hosted(t *workspace.OpenTask) { t.Mode = workspace.ModeHost }

func batch(id workspace.BatchID) func(*workspace.OpenTask) {
	return func(t *workspace.OpenTask) { t.BatchID = id }
}

// free is an occupancy of a server that executes nothing.
func free() workspace.Occupancy {
	no := func(workspace.TaskID) bool { return false }
	return workspace.Occupancy{Executing: no, Stale: no, Due: func(workspace.TaskID) bool { return true }, Served: func(workspace.OwnerID) int64 { return 0 }}
}

func scheduled(open []workspace.OpenTask, now workspace.Occupancy) string {
	names := []string{}
	for _, t := range workspace.Schedule(open, now) {
		names = append(names, string(t.ID))
	}
	return strings.Join(names, " ")
}

// Ensure the limits of section 6.4: a member has one execution, a chat three, the
// server four; what waits or is uncertain keeps its slot.
func TestSchedule_Limits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open []workspace.OpenTask
		want string
	}{
		"same member":            {[]workspace.OpenTask{openTask("ann/c/B", 1), openTask("ann/c/B", 2)}, "ann/c/B-1"},
		"three of a chat":        {[]workspace.OpenTask{openTask("ann/c/B", 1), openTask("ann/c/C", 1), openTask("ann/c/D", 1), openTask("ann/c/E", 1), openTask("ann/d/E", 2)}, "ann/c/B-1 ann/c/C-1 ann/c/D-1 ann/d/E-2"},
		"waiting holds":          {[]workspace.OpenTask{openTask("ann/c/B", 1, is(workspace.TaskWaiting)), openTask("ann/c/B", 2)}, ""},
		"uncertain is looked at": {[]workspace.OpenTask{openTask("ann/c/B", 1, is(workspace.TaskUncertain)), openTask("ann/c/B", 2)}, "ann/c/B-1"},
		"four on the server": {[]workspace.OpenTask{
			openTask("ann/a/B", 1), openTask("ann/b/B", 2), openTask("ann/c/B", 3), openTask("ann/d/B", 4), openTask("ann/e/B", 5),
		}, "ann/a/B-1 ann/b/B-2 ann/c/B-3 ann/d/B-4"},
		"disabled owner": {[]workspace.OpenTask{openTask("ann/c/B", 1, func(t *workspace.OpenTask) { t.OwnerEnabled = false })}, ""},
		"over":           {[]workspace.OpenTask{openTask("ann/c/B", 1, is(workspace.TaskComplete))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := scheduled(test.open, free()); got != test.want {
				t.Errorf("started %q, want %q", got, test.want)
			}
		})
	}
}

// Ensure that chats in administrator mode and direct chats take one message after
// the other, one batch at a time, and that the administrator runs alone
// (section 6.4).
func TestSchedule_Order(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open []workspace.OpenTask
		want string
	}{
		"later message waits": {[]workspace.OpenTask{openTask("ann/c/A", 1, hosted, is(workspace.TaskRunning)), openTask("ann/c/A", 2, hosted)}, ""},
		"also while the earlier one is only queued": {[]workspace.OpenTask{
			openTask("ann/c/B", 1, hosted, func(t *workspace.OpenTask) { t.OwnerEnabled = false }), openTask("ann/c/A", 2, hosted),
		}, ""},
		"unplanned counts":           {[]workspace.OpenTask{openTask("ann/c/A", 1, hosted, is(workspace.TaskComplete)), openTask("ann/c/A", 2, hosted)}, ""},
		"a batch in parallel":        {[]workspace.OpenTask{openTask("ann/c/B", 1, hosted, batch("t1")), openTask("ann/c/C", 1, hosted, batch("t1"))}, "ann/c/B-1 ann/c/C-1"},
		"another batch waits":        {[]workspace.OpenTask{openTask("ann/c/B", 1, hosted, batch("t1"), is(workspace.TaskRunning)), openTask("ann/c/C", 1, hosted, batch("t2"))}, ""},
		"the administrator is alone": {[]workspace.OpenTask{openTask("ann/c/B", 1, hosted, batch("t1"), is(workspace.TaskRunning)), openTask("ann/c/A", 1, hosted, batch("t1"))}, ""},
		"free chats overlap":         {[]workspace.OpenTask{openTask("ann/c/B", 1, is(workspace.TaskRunning)), openTask("ann/c/A", 2)}, "ann/c/A-2"},
		"direct chats do not": {[]workspace.OpenTask{
			openTask("ann/c/A", 1, is(workspace.TaskUncertain), func(t *workspace.OpenTask) { t.Kind = workspace.Direct }),
			openTask("ann/c/A", 2, func(t *workspace.OpenTask) { t.Kind = workspace.Direct }),
		}, "ann/c/A-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := scheduled(test.open, free()); got != test.want {
				t.Errorf("started %q, want %q", got, test.want)
			}
		})
	}
}

// Ensure that an owner with many messages does not starve another one, and that
// those with equally many slots take turns (section 6.4).
func TestSchedule_Fairness(t *testing.T) {
	t.Parallel()
	open := []workspace.OpenTask{}
	for i := range 6 {
		open = append(open, openTask(fmt.Sprintf("ann/c%d/B", i), int64(i+1)))
	}
	open = append(open, openTask("bob/x/B", 100), openTask("bob/y/B", 101))
	if got := scheduled(open, free()); got != "ann/c0/B-1 bob/x/B-100 ann/c1/B-2 bob/y/B-101" {
		t.Errorf("started %q", got)
	}
	now := free()
	now.Served = func(owner workspace.OwnerID) int64 { return map[workspace.OwnerID]int64{"ann": 7, "bob": 6}[owner] }
	if got := scheduled(open, now); !strings.HasPrefix(got, "bob/x") {
		t.Errorf("who was served longest ago does not come first: %q", got)
	}
}

// Ensure that an executor that still is at work counts although its task is over,
// that a pause is kept, and that what is uncertain for long holds no slot of the
// server (sections 6.4 and 11, item 8).
func TestSchedule_Occupancy(t *testing.T) {
	t.Parallel()
	open := []workspace.OpenTask{}
	for i := range 4 {
		open = append(open, openTask(fmt.Sprintf("ann/c%d/B", i), int64(i+1), is(workspace.TaskUncertain)))
	}
	open = append(open, openTask("ann/d/B", 9))
	now := free()
	now.Due = func(id workspace.TaskID) bool { return id == "ann/d/B-9" }
	if got := scheduled(open, now); got != "" {
		t.Errorf("a fifth was started: %q", got)
	}
	now.Stale = func(workspace.TaskID) bool { return true }
	if got := scheduled(open, now); got != "ann/d/B-9" {
		t.Errorf("started %q", got)
	}
	now = free()
	now.Executing = func(id workspace.TaskID) bool { return id == "ann/c/B-1" }
	open = []workspace.OpenTask{openTask("ann/c/B", 1, is(workspace.TaskComplete)), openTask("ann/c/B", 2)}
	if got := scheduled(open, now); got != "" {
		t.Errorf("a member's second execution was started: %q", got)
	}
	if slices.ContainsFunc(workspace.Schedule(open, free()), func(t workspace.OpenTask) bool { return t.Status.Terminal() }) {
		t.Error("a task that is over was started")
	}
}
