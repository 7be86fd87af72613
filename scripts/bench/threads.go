package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// textSize is the length of every message's text in bytes.
const textSize = 120

// threads is a root with threads in it, all of the same messages.
type threads struct {
	root   string
	dir    string // of the files
	tokens []chat.Token
	// epochs are those of the messages, oldest first, in milliseconds.
	epochs []int64
}

// seedThreads makes a root with threads of so many messages each, written as
// relayd would have.
func seedThreads(root string, count, messages int) (threads, error) {
	store := storage.Open(storage.Options{Root: root, Space: "newos4"})
	if err := errors.Join(store.Prepare(), store.Close()); err != nil {
		return threads{}, fmt.Errorf("making the thread directory: %w", err)
	}
	t := threads{root: root, dir: store.Path()}
	for i := range count {
		t.tokens = append(t.tokens, chat.Token(fmt.Sprintf("%064x", i+1)))
	}
	model, err := t.modelThread(messages)
	if err != nil {
		return threads{}, err
	}
	for _, token := range t.tokens {
		data := strings.Replace(model, string(modelID()), string(token.Thread()), 1)
		if err := os.WriteFile(filepath.Join(t.dir, string(token.Thread())+".json"), []byte(data), 0o660); err != nil {
			return threads{}, fmt.Errorf("writing a thread: %w", err)
		}
	}
	return t, t.sync()
}

func modelID() chat.ThreadID { return chat.Token("").Thread() }

// modelThread returns the file of a thread of which every other one is a copy.
// Its messages are of yesterday, so that no rate limit remembers them.
func (t *threads) modelThread(messages int) (string, error) {
	yesterday := time.Now().Add(-24 * time.Hour).UnixMilli()
	keep := chat.Retention{Messages: messages, MaxAge: 720 * time.Hour}
	var model *chat.Thread
	for i := range messages {
		m := chat.Message{
			ID: fmt.Sprintf("MSG-20260101-000000-%06x", i), Epoch: yesterday + int64(i),
			Author: chat.Operator, Text: sampleText(),
		}
		var err error
		if model, err = model.Append(modelID(), m, m.Epoch, keep); err != nil {
			return "", fmt.Errorf("making a thread: %w", err)
		}
		t.epochs = append(t.epochs, m.Epoch)
	}
	return string(model.Encode()), nil
}

// sync lets the disk finish with the threads before anything is measured.
func (t *threads) sync() error {
	dir, err := os.Open(t.dir)
	if err != nil {
		return fmt.Errorf("opening the thread directory: %w", err)
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("syncing the file system: %w", err)
	}
	return nil
}

// fileSize returns the size of the thread files in bytes, of which each post
// makes one anew.
func (t *threads) fileSize() (int, error) {
	info, err := os.Stat(filepath.Join(t.dir, string(t.tokens[0].Thread())+".json"))
	if err != nil {
		return 0, fmt.Errorf("looking at a thread: %w", err)
	}
	return int(info.Size()), nil
}

func sampleText() string { return strings.Repeat("0123456789", textSize/10) }
