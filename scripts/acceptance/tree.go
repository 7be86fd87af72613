package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// tree is a root directory of the contract: the server's, or a scratch one that
// only the chat command sees.
type tree struct{ dir, space string }

// tree returns the server's root.
func (s *target) tree() tree { return tree{dir: s.root, space: s.space} }

// chatDir is the directory of the thread files (section 1).
func (r tree) chatDir() string { return filepath.Join(r.dir, "spaces", r.space, "data", "chat") }

func (r tree) threadFile(thread string) string {
	return filepath.Join(r.chatDir(), thread+".json")
}

// threads returns the ids of the threads that have a file.
func (r tree) threads() ([]string, error) {
	entries, err := os.ReadDir(r.chatDir())
	if err != nil {
		return nil, fmt.Errorf("listing the threads: %w", err)
	}
	form := regexp.MustCompile(`^([0-9a-f]{16})\.json$`)
	var ids []string
	for _, e := range entries {
		if name := form.FindStringSubmatch(e.Name()); name != nil && e.Type().IsRegular() {
			ids = append(ids, name[1])
		}
	}
	return ids, nil
}

// write puts a file in the place of a thread's at one stroke, so that a server
// never sees half of it.
func (r tree) write(thread string, data []byte) error {
	f, err := os.CreateTemp(r.chatDir(), ".acceptance-*")
	if err != nil {
		return fmt.Errorf("placing a thread: %w", err)
	}
	_, writeErr := f.Write(data)
	err = errors.Join(writeErr, f.Chmod(0o660), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), r.threadFile(thread))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("placing a thread: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// scratch returns an empty root that goes away with the case.
func (t *trial) scratch() tree {
	dir, err := os.MkdirTemp("", "acceptance-")
	t.must(err)
	t.cleanup(func() error { return os.RemoveAll(dir) })
	r := tree{dir: dir, space: t.space}
	t.must(os.MkdirAll(r.chatDir(), 0o770))
	for at := r.chatDir(); at != dir; at = filepath.Dir(at) {
		t.must(os.Chmod(at, 0o770|os.ModeSetgid))
	}
	return r
}

// forget has a thread's file in the server's root removed after the case.
func (t *trial) forget(thread string) {
	if t.root != "" {
		t.cleanup(func() error { return removeIfThere(t.tree().threadFile(thread)) })
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// place puts a thread's file in place, whatever its bytes, and has it removed
// after the case.
func (t *trial) place(r tree, thread string, data []byte) {
	t.must(r.write(thread, data))
	t.cleanup(func() error { return removeIfThere(r.threadFile(thread)) })
}

// placeMessages places a sound thread.
func (t *trial) placeMessages(r tree, thread string, messages []message) {
	data, err := encodeThread(thread, messages)
	t.must(err)
	t.place(r, thread, data)
}

// read returns the bytes of a thread's file.
func (t *trial) read(r tree, thread string) []byte {
	data, err := os.ReadFile(r.threadFile(thread))
	t.must(err)
	return data
}

// unchanged checks that a thread's file still has these bytes.
func (t *trial) unchanged(r tree, thread string, want []byte) {
	got, err := os.ReadFile(r.threadFile(thread))
	if err != nil {
		t.errorf("the thread file cannot be read any more: %v", err)
		return
	}
	if string(got) != string(want) {
		t.errorf("the thread file has changed: %d bytes instead of %d", len(got), len(want))
	}
}

// conversation makes n messages by one author, a second apart. They end an hour
// ago, so that no rate window counts them.
func conversation(n int, author string) []message {
	return conversationUntil(time.Now().Add(-time.Hour), n, author)
}

// conversationUntil is conversation with the time of the last message.
func conversationUntil(end time.Time, n int, author string) []message {
	messages := make([]message, n)
	for i := range messages {
		at := end.Add(time.Duration(i+1-n) * time.Second)
		messages[i] = newMessage(at, author, fmt.Sprintf("message %d", i+1))
	}
	return messages
}
