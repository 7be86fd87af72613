package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/newos4/relay/pkg/chat"
)

// chatCommand returns a call of the chat command where relayd runs.
func (s *stage) chatCommand(ctx context.Context, args ...string) *exec.Cmd {
	argv := slices.Concat(s.inside, []string{s.programs.chat, "--config", os.DevNull, "--root", s.root}, args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(cleanEnv(), s.daemon.env...)
	cmd.WaitDelay = time.Second
	return cmd
}

// reply answers a thread by the chat command, which is killed after a while
// unless that is 0, and enters what became of it.
func (s *stage) reply(ctx context.Context, p party, words string, killAfter time.Duration) result {
	e := s.ledger.offer(p.token, string(chat.Hermes), words)
	limit := requestTimeout
	if killAfter > 0 {
		limit = killAfter
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	cmd := s.chatCommand(ctx, "reply", "--json", string(p.token.Thread()), e.text)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	started := time.Now()
	err := cmd.Run()
	res := resultOfReply(err, time.Since(started))
	var r receipt
	switch {
	case res.served && json.Unmarshal(stdout.Bytes(), &r) == nil:
		s.ledger.acknowledge(e, r.ID, r.Epoch)
	case res.served:
		res = result{code: "unreadable receipt"}
	case !res.cut():
		s.ledger.refuse(e)
	}
	s.tally.note(replies, res)
	return res
}

// resultOfReply tells a command that was killed, whose reply may stand, from one
// that refused.
func resultOfReply(err error, took time.Duration) result {
	if err == nil {
		return result{served: true, took: took}
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	if ended && exit.Exited() {
		return result{code: "exit " + strconv.Itoa(exit.ExitCode())}
	}
	return result{}
}

// awaitReply lets chat poll --wait look for anything in a thread behind a cursor
// and returns how long it took.
func (s *stage) awaitReply(ctx context.Context, p party, since int64, limit time.Duration) (time.Duration, error) {
	cmd := s.chatCommand(ctx, "poll", string(p.token.Thread()), "--since", strconv.FormatInt(since, 10), "--wait", limit.String())
	started := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("chat poll --wait: %w\n%s", err, out)
	}
	return time.Since(started), nil
}
