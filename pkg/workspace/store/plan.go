package store

import (
	"github.com/newos4/relay/pkg/workspace"
)

// plan plans every task of a run that is over and unplanned, stores what follows
// in the same transaction as the planned flags, and saves the run (sections 6.2
// and 6.4). The chat's activity is the caller's to refresh.
func (t *tx) plan(c *chat, run runRow) error {
	scene, err := t.scene(c, run)
	if err != nil {
		return err
	}
	for i := 0; i < len(scene.Tasks); i++ {
		task := scene.Tasks[i]
		if !task.Status.Terminal() || task.Planned {
			continue
		}
		next := workspace.Plan(scene, task.ID)
		if err := t.follow(c, &scene, next); err != nil {
			return err
		}
		scene.Tasks[i].Planned = true
		if err := t.saveTask(scene.Tasks[i]); err != nil {
			return err
		}
	}
	return t.saveRun(c, run, run.Run, scene.Tasks)
}

// scene collects what planning looks at.
func (t *tx) scene(c *chat, run runRow) (workspace.Scene, error) {
	scene := workspace.Scene{Conversation: c.Conversation, Run: run.Run, Replies: make(map[workspace.TaskID]workspace.Reply)}
	var err error
	if scene.Members, err = t.agents(c.MemberIDs); err != nil {
		return scene, err
	}
	if scene.Tasks, err = tasksOf(t.view, t.owner, run.ID); err != nil {
		return scene, err
	}
	return scene, each(t.view, func(r row) error {
		var task workspace.TaskID
		var reply workspace.Reply
		if err := r.Scan((*string)(&task), &reply.Seq, &reply.Text); err != nil {
			return err
		}
		scene.Replies[task] = reply
		return nil
	}, `SELECT task.id, message.seq, message.content FROM task
		JOIN message ON message.owner = task.owner AND message.id = task.current_message_id
		WHERE task.owner = ? AND task.run_id = ?`, t.owner, run.ID)
}

// follow stores what follows from one task and adds it to the scene.
func (t *tx) follow(c *chat, scene *workspace.Scene, next workspace.FollowUp) error {
	for _, raised := range next.Raise {
		if err := t.saveTask(raised); err != nil {
			return err
		}
		for i := range scene.Tasks {
			if scene.Tasks[i].ID == raised.ID {
				scene.Tasks[i] = raised
			}
		}
	}
	for _, turn := range next.Create {
		task := turn.Task(t.owner, scene.Run, workspace.TaskID(t.newID()), t.now)
		if err := t.addTask(task); err != nil {
			return err
		}
		scene.Tasks = append(scene.Tasks, task)
	}
	if !next.LimitReached {
		return nil
	}
	return t.limitNotice(c, scene.Run)
}

// limitNotice stores the visible message that a run's limit of rounds was
// reached, once in the run (section 6.7, step 5).
func (t *tx) limitNotice(c *chat, run workspace.Run) error {
	id := workspace.MessageID(t.newID())
	first, err := t.exec(`UPDATE run SET limit_notice_id = ? WHERE owner = ? AND id = ? AND limit_notice_id = ''`, id, t.owner, run.ID)
	if err != nil || first == 0 {
		return err
	}
	var notice workspace.Message
	c.Conversation, notice = c.Append(workspace.Message{
		ID:             id,
		ConversationID: c.ID,
		Role:           workspace.RoleSystem,
		Content:        workspace.LimitNotice,
		RunID:          run.ID,
		Status:         workspace.MessageComplete,
		Attachments:    []workspace.File{},
		Tools:          []workspace.Tool{},
		CreatedAt:      t.now,
	})
	return t.addMessage(c, notice)
}
