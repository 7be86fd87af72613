package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
	"github.com/newos4/relay/pkg/storage"
)

// agentJSON is what the auto-reply agent does about a thread.
type agentJSON struct {
	Phase  autoreply.Phase `json:"phase"`
	Reason string          `json:"reason,omitzero"`
	// AgeMS is how long the phase has lasted, Until when a waiting thread is
	// tried again; both in milliseconds.
	AgeMS    int64 `json:"age_ms"`
	Until    int64 `json:"until,omitzero"`
	Attempts int   `json:"attempts,omitzero"`
}

// agentOf returns what the agent does about the newest message of a thread, nil
// when it does not know it.
func (s *session) agentOf(state autoreply.State, sum storage.Summary) *agentJSON {
	ts, ok := state.Threads[sum.Thread]
	if !ok || ts.Message != sum.Last.ID {
		return nil
	}
	return &agentJSON{
		Phase: ts.Phase, Reason: ts.Reason, Until: ts.Until, Attempts: ts.Attempts,
		AgeMS: max(0, s.env.Now().UnixMilli()-ts.Since),
	}
}

// agentState reads what the agent has written of itself. Where it cannot be
// read the inbox is shown without it: it is an extra.
func (s *session) agentState() autoreply.State {
	state, err := autoreply.ReadState(s.config.StatePath(autoreply.StateFile))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		s.printError(err.Error())
	}
	return state
}

// printAgent prints the state of the agent below a thread's row.
func (a *app) printAgent(agent *agentJSON) {
	if agent == nil {
		return
	}
	format := "agent %s for %s"
	if agent.Phase == autoreply.Failed {
		format = "agent %s %s ago"
	}
	line := fmt.Sprintf(format, agent.Phase, formatAge(time.Duration(agent.AgeMS)*time.Millisecond))
	if agent.Reason != "" {
		line += ": " + agent.Reason
	}
	if agent.Until > 0 {
		line += "; next try at " + time.UnixMilli(agent.Until).UTC().Format("2006-01-02 15:04:05 UTC")
	}
	a.printRemark("%s", line)
}
