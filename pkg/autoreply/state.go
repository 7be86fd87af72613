package autoreply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/google/renameio/v2"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// Phase is what the agent does about a thread.
type Phase string

// The phases of a thread that awaits an answer.
const (
	// Pending: it is about to be answered.
	Pending Phase = "pending"
	// Running: it is being answered.
	Running Phase = "running"
	// Waiting: it will be tried later; the reason says why not now.
	Waiting Phase = "waiting"
	// Failed: it is left to a person, or to the next message.
	Failed Phase = "failed"
)

// ThreadState is what the agent does about one thread.
type ThreadState struct {
	Phase Phase `json:"phase"`
	// Message is the id of the message to be answered.
	Message string `json:"message"`
	// Reason says why the thread waits or has failed.
	Reason string `json:"reason,omitzero"`
	// Since is when the phase began, Until when a waiting thread is tried
	// again, both in epoch milliseconds; 0 is none.
	Since int64 `json:"since"`
	Until int64 `json:"until,omitzero"`
	// Attempts is how often the message was tried and failed.
	Attempts int `json:"attempts,omitzero"`
}

// State is what the agent is doing, as it stands in its state file.
type State struct {
	// Settings is the mark of those that the state is of.
	Settings string                        `json:"settings,omitzero"`
	Threads  map[chat.ThreadID]ThreadState `json:"threads"`
	// Counts are the runs by outcome since the file was made.
	Counts map[string]int `json:"counts"`
	Ledger ledger         `json:"ledger"`
}

// StateFile is the name of the agent's file in the state directory.
const StateFile = "agent.json"

// StateDirMode is the mode of the state directory, whoever makes it: the group
// that may run chat may read the agent's state, and nobody else.
const StateDirMode = 0o750

const stateMode = 0o640

// ReadState returns the state in the file at path; a missing one is an empty
// state.
func ReadState(path string) (State, error) {
	var s State
	data, err := storage.ReadRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the agent's state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("reading the agent's state from %s: %w", path, err)
	}
	return s, nil
}

func writeState(path string, s State) error {
	data, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encoding the agent's state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), StateDirMode); err != nil {
		return fmt.Errorf("writing the agent's state: %w", err)
	}
	// Beside the file: in a temporary directory others may be, and it would not
	// give the group that a set-group-id directory gives.
	beside := renameio.WithTempDir(filepath.Dir(path))
	if err := renameio.WriteFile(path, append(data, '\n'), stateMode, renameio.IgnoreUmask(), beside); err != nil {
		return fmt.Errorf("writing the agent's state: %w", err)
	}
	return nil
}
