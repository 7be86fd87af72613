package store

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
)

// Send stores a user's message, its run and the run's first tasks, or returns
// the run of an earlier send with the same request id and content, as it is now
// (section 3.3). A request that is refused leaves its id unused.
func (s *Store) Send(ctx context.Context, owner workspace.OwnerID, to workspace.ConversationID, in workspace.SendMessage) (run workspace.Run, err error) {
	send, err := workspace.CheckSend(to, in)
	if err != nil {
		return run, err
	}
	err = s.write(ctx, owner, "sending a message", func(t *tx) error {
		run, err = t.send(send)
		return err
	})
	return run, err
}

func (t *tx) send(send workspace.Send) (workspace.Run, error) {
	if run, repeated, err := t.repeated(send); err != nil || repeated {
		return run, err
	}
	c, err := t.chat(send.ConversationID)
	if err != nil {
		return workspace.Run{}, err
	}
	admitted, linked, err := t.admit(c, send)
	if err != nil {
		return workspace.Run{}, err
	}
	c.Conversation = admitted.Conversation
	if err := t.storeAdmission(&c, send, admitted, linked); err != nil {
		return workspace.Run{}, err
	}
	return admitted.Run, nil
}

// repeated returns the run that the request id stands for already.
func (t *tx) repeated(send workspace.Send) (workspace.Run, bool, error) {
	type command struct {
		run         workspace.RunID
		fingerprint string
	}
	known, ok, err := maybe(one(t.view, func(r row) (command, error) {
		var c command
		err := r.Scan((*string)(&c.run), &c.fingerprint)
		return c, err
	}, `SELECT run_id, fingerprint FROM command WHERE owner = ? AND request_id = ?`, t.owner, send.RequestID))
	if err != nil || !ok {
		return workspace.Run{}, false, err
	}
	if err := send.CheckRepeat(known.fingerprint); err != nil {
		return workspace.Run{}, false, err
	}
	run, err := t.run(known.run)
	return run.Run, true, err
}

// admit asks the rules what the send leads to, and returns with it the files
// that it is the first to link.
func (t *tx) admit(c chat, send workspace.Send) (admitted workspace.Admission, linked []workspace.File, err error) {
	arrival := workspace.Arrival{
		Conversation: c.Conversation,
		MessageID:    workspace.MessageID(t.newID()),
		RunID:        workspace.RunID(t.newID()),
		Now:          t.now,
	}
	if arrival.Members, err = t.agents(c.MemberIDs); err != nil {
		return admitted, nil, err
	}
	if arrival.Files, linked, err = t.filesFor(send.FileIDs, c.ID, arrival.MessageID); err != nil {
		return admitted, nil, err
	}
	admitted, err = workspace.Admit(send, arrival)
	return admitted, linked, err
}

// storeAdmission stores what the rules said, in an order that suits the
// references between the rows.
func (t *tx) storeAdmission(c *chat, send workspace.Send, a workspace.Admission, linked []workspace.File) error {
	if err := t.addMessage(c, a.Message); err != nil {
		return err
	}
	if err := t.link(a.Message, linked); err != nil {
		return err
	}
	if err := t.addRun(c, runRow{a.Run, a.Message.Seq}); err != nil {
		return err
	}
	for _, turn := range a.Turns {
		if err := t.addTask(turn.Task(t.owner, a.Run, workspace.TaskID(t.newID()), t.now)); err != nil {
			return err
		}
	}
	_, err := t.exec(`INSERT INTO command (owner, request_id, run_id, fingerprint) VALUES (?, ?, ?, ?)`,
		t.owner, send.RequestID, a.Run.ID, send.Fingerprint())
	if err != nil {
		return err
	}
	if err := t.changed(workspace.RunChanged(a.Run)); err != nil {
		return err
	}
	return t.saveActivity(c)
}
