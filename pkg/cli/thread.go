package cli

import (
	"fmt"

	"github.com/newos4/relay/pkg/chat"
)

// threadView shows the messages of one thread from a cursor on. Each time it is
// shown the cursor moves behind what was printed.
type threadView struct {
	*session
	id chat.ThreadID
	// since is the cursor, in epoch milliseconds; 0 stands for the newest page.
	since int64
	// all asks for the whole thread in place of a page.
	all bool
	// patience tells whether the thread may be yet to come, and whether what is
	// shown is part of a stream.
	patience patience
	// cursorFile, unless empty, is where the cursor is kept.
	cursorFile string

	page    chat.Page
	started bool
}

// beforeAll is a cursor that leaves no message out, unlike 0.
const beforeAll = 1

func (v *threadView) refresh() (bool, error) {
	var err error
	if v.page, err = v.read(); err != nil {
		return false, v.explain(v.id, err)
	}
	if !v.page.Empty() {
		return true, nil
	}
	if !v.patience.waits() {
		return false, v.mustExist(v.id)
	}
	if v.patience.follow && v.since == 0 {
		// A stream leaves nothing out that comes after its start, however much
		// comes at once.
		v.since = beforeAll
	}
	return false, nil
}

func (v *threadView) read() (chat.Page, error) {
	if !v.all {
		return v.store.Poll(v.id, v.since)
	}
	thread, err := v.store.Thread(v.id)
	if err != nil {
		return chat.Page{}, err
	}
	page, _ := thread.Page(v.id, 0, thread.Len())
	return page, nil
}

// mustExist returns an error for a thread that has no file. It makes nothing on
// disk, unlike a write, which would make the missing directory as whoever runs
// chat.
func (s *session) mustExist(id chat.ThreadID) error {
	exists, err := s.store.Exists(id)
	if err == nil && !exists {
		err = chat.Errorf(chat.CodeNotFound, "there is no thread %s", id)
	}
	return s.explain(id, err)
}

func (v *threadView) show() error {
	if err := v.print(); err != nil {
		return err
	}
	if err := v.flush(); err != nil {
		return err
	}
	return v.advance()
}

func (v *threadView) print() error {
	switch {
	case v.json && v.patience.follow:
		return v.printLines()
	case v.json:
		v.printRawJSON(v.page.AppendJSON(nil))
	default:
		v.printPage()
	}
	return nil
}

// printLines prints each message as a JSON value of its own.
func (v *threadView) printLines() error {
	for _, m := range v.page.Messages() {
		if err := v.printJSON(toJSON(m)); err != nil {
			return err
		}
	}
	return nil
}

func (v *threadView) printPage() {
	if v.page.Empty() {
		v.printRemark("%s", v.emptiness())
		return
	}
	olderLeftOut := v.page.Truncated && v.since == 0
	if olderLeftOut {
		v.printRemark("older messages are left out; to see them: chat poll %s --all", v.id)
	}
	for _, m := range v.page.Messages() {
		if v.started || olderLeftOut {
			v.printf("\n")
		}
		v.printMessage(m)
		v.started = true
	}
	if v.page.Truncated && !olderLeftOut && !v.patience.follow {
		v.printRemark("more messages follow; to see them: %s", v.continuation())
	}
}

func (v *threadView) emptiness() string {
	if v.since <= beforeAll {
		return "no messages"
	}
	return fmt.Sprintf("no messages after %d", v.since)
}

// continuation is the command that goes on where a page was cut.
func (v *threadView) continuation() string {
	if v.cursorFile != "" {
		return "the same command again"
	}
	return fmt.Sprintf("chat poll %s --since %d", v.id, v.page.Cursor)
}

// advance moves the cursor, now that what lies before it was handed over.
func (v *threadView) advance() error {
	if v.page.Empty() {
		return nil
	}
	v.since, v.all = v.page.Cursor, false
	if v.cursorFile == "" {
		return nil
	}
	return writeCursor(v.cursorFile, v.since)
}
