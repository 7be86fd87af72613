package workspace

import (
	"slices"
)

// LimitNotice is the text of the message that says, once in a run, that its
// limit of rounds ended the relay (section 6.7).
const LimitNotice = "已达到自动协作轮数上限，不再继续派发。"

// Reply is what a task said: the sequence of its row and the text as it was
// accepted. A task without a row has none.
type Reply struct {
	Seq  int64
	Text string
}

// Scene is what planning looks at: the conversation and its members as they are
// now, the run, all of its tasks, and what those said.
type Scene struct {
	Conversation Conversation
	Members      map[AgentID]Agent
	Run          Run
	Tasks        []Task
	Replies      map[TaskID]Reply
}

// FollowUp is what has to be stored together with a task's planned flag.
type FollowUp struct {
	// Create are tasks to create.
	Create []Turn
	// Raise are queued tasks to change: a newer trigger, a stronger mode.
	Raise []Task
	// LimitReached asks for the notice of the run, unless there is one.
	LimitReached bool
}

// Plan returns what follows from a terminal task (sections 6.6 and 6.7). It
// depends on nothing but its arguments, and a task that this one created already
// is not created again. Nothing follows in a direct chat, in a run that is being
// stopped, or from a task that is not terminal or was planned before.
func Plan(s Scene, id TaskID) FollowUp {
	i := slices.IndexFunc(s.Tasks, func(t Task) bool { return t.ID == id })
	if i < 0 || s.Conversation.Kind == Direct || s.Run.StopRequested {
		return FollowUp{}
	}
	t := s.Tasks[i]
	if !t.Status.Terminal() || t.Planned {
		return FollowUp{}
	}
	launch := s.launch(t)
	switch {
	case s.delegated(t):
		return s.review(t)
	case launch.Mode == ModeFree:
		return s.relay(t, launch)
	case t.AgentID == launch.AdministratorID:
		return s.delegate(t, launch)
	}
	return FollowUp{}
}

// launch returns how the group was set when the task started. A task that never
// started is planned with the present settings.
func (s Scene) launch(t Task) Launch {
	if t.Launch != nil {
		return *t.Launch
	}
	return Snapshot(s.Conversation, s.Members)
}

// delegated reports whether the task is one of a batch that an administrator
// delegated. That is settled when the batch is created: a mode that changes
// meanwhile neither splits a batch nor costs it its review.
func (s Scene) delegated(t Task) bool {
	if t.ReviewOf != "" {
		return false
	}
	i := slices.IndexFunc(s.Tasks, func(origin Task) bool { return BatchID(origin.ID) == t.BatchID })
	return i >= 0 && s.launch(s.Tasks[i]).Mode == ModeHost
}

// BatchOf returns the members of a batch. Its review is none of them.
func BatchOf(tasks []Task, batch BatchID) []Task {
	return keep(tasks, func(t Task) bool { return t.BatchID == batch && t.ReviewOf == "" })
}

// review returns the one review of a batch once all of its tasks are terminal
// (section 6.6, step 7).
func (s Scene) review(t Task) FollowUp {
	turn := Turn{
		AgentID:       s.Conversation.AdministratorID,
		Depth:         t.Depth,
		BatchID:       t.BatchID,
		ReviewOf:      t.BatchID,
		ReplyMode:     ReplyAutomatic,
		RequiredReply: true,
	}
	for _, member := range BatchOf(s.Tasks, t.BatchID) {
		if !member.Status.Terminal() {
			return FollowUp{}
		}
		turn.TriggerSeq = max(turn.TriggerSeq, member.TriggerSeq, s.Replies[member.ID].Seq)
	}
	reviewed := func(other Task) bool { return other.ReviewOf == t.BatchID }
	if slices.ContainsFunc(s.Tasks, reviewed) {
		return FollowUp{}
	}
	return FollowUp{Create: []Turn{turn}}
}

// delegate returns the batch that an administrator's reply calls for
// (section 6.6, steps 2 to 5).
func (s Scene) delegate(t Task, launch Launch) FollowUp {
	named := s.named(t, launch)
	if len(named) == 0 {
		return FollowUp{}
	}
	return s.dispatch(t, named, ReplyMentioned)
}

// relay returns what follows from a reply in free mode: the named members, or
// else the automatic ones (section 6.7).
func (s Scene) relay(t Task, launch Launch) FollowUp {
	if t.Status != TaskComplete || t.Silent {
		return FollowUp{}
	}
	if named := s.named(t, launch); len(named) > 0 {
		return s.dispatch(t, named, ReplyMentioned)
	}
	if next := automatic(s.Conversation, s.Members, t.AgentID); len(next) > 0 {
		return s.dispatch(t, next, ReplyAutomatic)
	}
	return FollowUp{}
}

// named returns the present members whom a public reply mentions by the names
// that they had when its task started, the speaker left out (section 5.3).
func (s Scene) named(t Task, launch Launch) []AgentID {
	if t.Status != TaskComplete || t.Silent {
		return nil
	}
	found := ParseMentions(s.Replies[t.ID].Text, launch.Roster)
	return keep(found, func(id AgentID) bool { return id != t.AgentID && s.Conversation.HasMember(id) })
}

// dispatch hands on to the targets at the next depth, if the limit allows it.
func (s Scene) dispatch(t Task, targets []AgentID, mode ReplyMode) FollowUp {
	limit := s.Conversation.MaxReplyRounds
	if limit != UnlimitedRounds && t.Depth+1 >= limit {
		return FollowUp{LimitReached: true}
	}
	var next FollowUp
	for _, id := range targets {
		next.merge(s.Tasks, Turn{
			AgentID:    id,
			Depth:      t.Depth + 1,
			BatchID:    BatchID(t.ID),
			ReplyMode:  mode,
			TriggerSeq: max(s.Replies[t.ID].Seq, t.TriggerSeq),
		})
	}
	return next
}

// merge adds a turn to what follows. Tasks of one run, agent and depth are one
// task: while it is queued it takes the newer trigger and the stronger mode;
// once it has started, a mention makes a further task, and an automatic relay
// is dropped (section 6.7, step 4).
func (f *FollowUp) merge(tasks []Task, turn Turn) {
	same := keep(tasks, func(t Task) bool {
		return t.AgentID == turn.AgentID && t.Depth == turn.Depth && t.ReviewOf == ""
	})
	queued := slices.IndexFunc(same, func(t Task) bool { return t.Status == TaskQueued })
	stored := func(t Task) bool { return t.BatchID == turn.BatchID }
	switch {
	case slices.ContainsFunc(same, stored):
		// The same reply was planned before and its flag was lost.
	case queued >= 0:
		f.raise(same[queued], turn)
	case len(same) == 0 || turn.ReplyMode == ReplyMentioned:
		f.Create = append(f.Create, turn)
	}
}

func (f *FollowUp) raise(t Task, turn Turn) {
	raised := t
	raised.TriggerSeq = max(t.TriggerSeq, turn.TriggerSeq)
	if turn.ReplyMode == ReplyMentioned {
		raised.ReplyMode = ReplyMentioned
	}
	if raised.TriggerSeq != t.TriggerSeq || raised.ReplyMode != t.ReplyMode {
		f.Raise = append(f.Raise, raised)
	}
}
