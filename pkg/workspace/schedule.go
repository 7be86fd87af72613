package workspace

import (
	"cmp"
	"slices"
)

// OpenTask is a task that is not over, or over and not planned, with what the
// scheduler has to know of its chat, its run and its owner (section 6.4).
type OpenTask struct {
	Task
	Kind            Kind
	Mode            Mode
	AdministratorID AgentID
	// MessageSeq and MessageAt are those of the run's user message.
	MessageSeq int64
	MessageAt  Millis
	// OwnerEnabled says that the owner's account is there and enabled; other
	// owners' tasks are held.
	OwnerEnabled bool
}

// ordered reports whether the chat takes its messages strictly one after the
// other: direct chats and groups in administrator mode do.
func (t OpenTask) ordered() bool { return t.Kind == Direct || t.Mode == ModeHost }

// administers reports whether the task is one of the administrator's, which
// never runs next to another.
func (t OpenTask) administers() bool { return t.AgentID == t.AdministratorID || t.ReviewOf != "" }

// member is one agent in one chat: what is executed one after the other.
type member struct {
	owner OwnerID
	chat  ConversationID
	agent AgentID
}

func (t OpenTask) member() member { return member{t.Owner, t.ConversationID, t.AgentID} }

// chatKey names a chat among those of all owners.
type chatKey struct {
	owner OwnerID
	chat  ConversationID
}

func (t OpenTask) chat() chatKey { return chatKey{t.Owner, t.ConversationID} }

// Occupancy is what only the one who executes tasks knows of them.
type Occupancy struct {
	// Executing says that somebody is at work on the task now, also when it is
	// over already.
	Executing func(TaskID) bool
	// Due says that the task's pause is over, if it has one: the back-off of an
	// uncertain or of a refused task.
	Due func(TaskID) bool
	// Stale says that an uncertain task has been uncertain for so long that it
	// no longer counts in the global limit (section 11, item 8).
	Stale func(TaskID) bool
	// Served is a number that grows whenever an owner was served, so that of two
	// owners the one who waited longer comes first; 0 for never.
	Served func(OwnerID) int64
}

// Schedule returns which of the open tasks of all owners are to be started now,
// in this order: queued ones are executed, uncertain ones are checked (section
// 6.4). Limits hold across all owners; who has the fewest slots comes first, then
// who was served longest ago, then the oldest message.
func Schedule(open []OpenTask, now Occupancy) []OpenTask {
	b := newBoard(open, now)
	var started []OpenTask
	for {
		i := b.pick()
		if i < 0 {
			return started
		}
		started = append(started, b.open[i])
		b.start(i)
	}
}

// board counts slots while tasks are picked.
type board struct {
	now  Occupancy
	open []OpenTask // by age
	gone []bool     // picked or executing

	executing, occupied int
	byChat              map[chatKey]int
	byOwner             map[OwnerID]int
	byMember            map[member]int
	first               map[chatKey]int64 // the oldest message with an open task
	busy                map[chatKey][]OpenTask
	turn                map[OwnerID]int64
	turns               int64
}

func newBoard(open []OpenTask, now Occupancy) *board {
	b := &board{
		now: now, open: slices.Clone(open), gone: make([]bool, len(open)),
		byChat: make(map[chatKey]int), byOwner: make(map[OwnerID]int), byMember: make(map[member]int),
		first: make(map[chatKey]int64), busy: make(map[chatKey][]OpenTask), turn: make(map[OwnerID]int64),
	}
	slices.SortStableFunc(b.open, olderFirst)
	for i, t := range b.open {
		if at, ok := b.first[t.chat()]; !ok || t.MessageSeq < at {
			b.first[t.chat()] = t.MessageSeq
		}
		b.turn[t.Owner] = now.Served(t.Owner)
		b.turns = max(b.turns, b.turn[t.Owner])
		executing := now.Executing(t.ID)
		if executing {
			b.executing++
			b.gone[i] = true
		}
		if executing || t.Status.Occupied() {
			b.occupy(t, executing || t.Status != TaskUncertain || !now.Stale(t.ID))
		}
	}
	return b
}

// olderFirst is the order of section 6.4, step 3.
func olderFirst(a, b OpenTask) int {
	return cmp.Or(cmp.Compare(a.MessageAt, b.MessageAt), cmp.Compare(a.MessageSeq, b.MessageSeq),
		cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// occupy counts a task that holds a slot; one that is uncertain for long holds
// none of the server's.
func (b *board) occupy(t OpenTask, global bool) {
	if global {
		b.occupied++
	}
	b.byChat[t.chat()]++
	b.byOwner[t.Owner]++
	b.byMember[t.member()]++
	b.busy[t.chat()] = append(b.busy[t.chat()], t)
}

// start counts a task that was picked.
func (b *board) start(i int) {
	t := b.open[i]
	b.gone[i] = true
	b.executing++
	b.turns++
	b.turn[t.Owner] = b.turns
	if t.Status == TaskQueued {
		b.occupy(t, true)
	} else if b.now.Stale(t.ID) {
		b.occupied++ // while it is checked
	}
}

// pick returns the next task that may start, or -1.
func (b *board) pick() int {
	best := -1
	for i, t := range b.open {
		if b.gone[i] || !b.mayStart(t) {
			continue
		}
		if best < 0 || b.comesBefore(t, b.open[best]) {
			best = i
		}
	}
	return best
}

// comesBefore decides between owners; tasks of one owner go by age.
func (b *board) comesBefore(t, other OpenTask) bool {
	if t.Owner == other.Owner {
		return false
	}
	return cmp.Or(cmp.Compare(b.byOwner[t.Owner], b.byOwner[other.Owner]), cmp.Compare(b.turn[t.Owner], b.turn[other.Owner])) < 0
}

// mayStart is section 6.4, step 4.
func (b *board) mayStart(t OpenTask) bool {
	if b.executing >= MaxRunningGlobal || !t.OwnerEnabled || !b.now.Due(t.ID) {
		return false
	}
	if t.Status == TaskUncertain {
		return true // it holds its place already
	}
	if t.Status != TaskQueued || b.byMember[t.member()] > 0 {
		return false
	}
	if b.occupied >= MaxRunningGlobal || b.byChat[t.chat()] >= MaxRunningConversation {
		return false
	}
	return !t.ordered() || b.itsTurn(t)
}

// itsTurn reports whether a chat that keeps the order of its messages has come to
// the task: nothing of an earlier message is open, and whoever runs is of the
// same batch, and no administrator.
func (b *board) itsTurn(t OpenTask) bool {
	if b.first[t.chat()] != t.MessageSeq {
		return false
	}
	return !slices.ContainsFunc(b.busy[t.chat()], func(other OpenTask) bool {
		return other.RunID != t.RunID || other.BatchID != t.BatchID || t.administers() || other.administers()
	})
}
