package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/hermes/hermestest"
	"github.com/newos4/relay/pkg/workspace"
)

const (
	// simulationTime bounds the simulation in CI; RELAY_SOAK multiplies it.
	simulationTime = 5 * time.Second
	simulatedSteps = 30
)

// simulation is one random life of a runtime.
type simulation struct {
	*rig
	random  *rand.Rand
	chats   []workspace.ConversationID
	groups  []workspace.ConversationID
	runs    []workspace.Run
	seqs    map[workspace.RunID]int // the number of a run's message, by which prompts are checked
	history []string
}

// Ensures, for random lives with faults of both sides, that no prompt is sent
// twice, that members and slots are kept, that no run's prompt has text of a later
// message, that what is over stays so, and that every run can be ended. A failing
// seed prints what it did; RELAY_SEED runs one alone.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("RELAY_SEED"), 10, 64); err == nil {
		simulate(t, seed)
		return
	}
	limit := simulationTime
	if n, err := strconv.Atoi(os.Getenv("RELAY_SOAK")); err == nil && n > 0 {
		limit *= time.Duration(n)
	}
	begin, seeds := time.Now(), 0
	for seed := uint64(1); time.Since(begin) < limit && !t.Failed(); seed++ {
		simulate(t, seed)
		seeds++
	}
	t.Logf("%d lives", seeds)
}

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	dir := memoryDir(t)
	dialect := hermestest.Dialects()[seed%4]
	t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &simulation{
				rig:    newRig(t, filepath.Join(dir, "workspace"), hermestest.WithDialect(dialect)),
				random: rand.New(rand.NewPCG(seed, seed)), seqs: make(map[workspace.RunID]int),
			}
			s.live()
			if t.Failed() {
				t.Logf("seed %d, dialect %s:\n\t%s", seed, dialect, strings.Join(s.history, "\n\t"))
			}
		})
	})
}

func (s *simulation) note(format string, args ...any) {
	s.history = append(s.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// live lets things happen, checks after each, and ends everything.
func (s *simulation) live() {
	s.groups = []workspace.ConversationID{
		s.group(workspace.ModeHost, "ABC", "", 3), s.group(workspace.ModeFree, "ABCD", "BC", 3),
	}
	s.chats = append([]workspace.ConversationID{s.direct("A"), s.direct("B")}, s.groups...)
	for range simulatedSteps {
		s.step()
		synctest.Wait()
		s.checkSlots()
		time.Sleep(time.Duration(s.random.IntN(4000)) * time.Millisecond)
	}
	s.settle()
	s.checkPrompts()
	s.checkEvents()
	s.stop()
	s.must(s.store.Check(context.Background()))
}

// step does one random thing.
func (s *simulation) step() {
	switch n := s.random.IntN(100); {
	case n < 40:
		s.say()
	case n < 50:
		s.halt()
	case n < 60:
		s.change()
	case n < 70:
		s.answer()
	case n < 90:
		s.damage()
	case n < 96:
		s.note("relay restarts")
		s.restart()
	default:
		s.kill()
	}
}

// say sends a message, and has some turns do what is in a script.
func (s *simulation) say() {
	for _, letter := range letters[:4] {
		for range 2 {
			s.script(letter, s.turn()...)
		}
	}
	chat := s.chats[s.random.IntN(len(s.chats))]
	if s.detail(chat).Conversation.Archived {
		return
	}
	n := len(s.runs)
	run := s.send(chat, fmt.Sprintf("TAG%d. %s", n, s.mentions()))
	s.seqs[run.ID] = n
	s.runs = append(s.runs, run)
	s.note("message %d to chat %d", n, slices.Index(s.chats, chat))
}

// mentions returns up to two names.
func (s *simulation) mentions() string {
	text := ""
	for range s.random.IntN(3) {
		text += "@" + letters[s.random.IntN(4)] + " "
	}
	return text
}

// turn returns a random script.
func (s *simulation) turn() []hermestest.Step {
	answer := hermestest.Complete("answer " + s.mentions())
	pause := hermestest.Wait(time.Duration(s.random.IntN(10_000)) * time.Millisecond)
	switch s.random.IntN(10) {
	case 0:
		return []hermestest.Step{hermestest.Complete(workspace.SilenceToken)}
	case 1:
		return []hermestest.Step{hermestest.Delta("part "), pause, hermestest.Fail("broken", false)}
	case 2:
		return []hermestest.Step{hermestest.Approval("cmd", "once", "deny"), answer}
	case 3:
		return []hermestest.Step{hermestest.Delta("part "), hermestest.Cut(), pause, answer}
	case 4:
		return []hermestest.Step{pause, hermestest.Tool("t", "look", "at it"), pause, answer}
	case 5:
		return []hermestest.Step{hermestest.Clarify(hermestest.Item{ID: "q", Text: "Which?"}), answer}
	case 6:
		return []hermestest.Step{hermestest.Delta("part "), pause, hermestest.Rotate(fmt.Sprintf("20261130_000000_%06x", s.random.IntN(1<<24)), s.random.IntN(2) == 0), answer}
	default:
		return []hermestest.Step{hermestest.Delta("part "), pause, answer}
	}
}

// halt stops a run or a member, or asks to look at one.
func (s *simulation) halt() {
	if len(s.runs) == 0 {
		return
	}
	run := s.runs[s.random.IntN(len(s.runs))]
	switch s.random.IntN(3) {
	case 0:
		s.note("stop of run %d", s.seqs[run.ID])
		s.stopRun(run.ID)
	case 1:
		s.note("look at run %d", s.seqs[run.ID])
		s.reconcile(run.ID)
	default:
		s.note("stop of the administrator in chat %d", slices.Index(s.chats, run.ConversationID))
		letter := "A"
		if run.ConversationID == s.chats[1] {
			letter = "B"
		}
		s.stopMember(run.ConversationID, letter)
	}
}

// change edits a group.
func (s *simulation) change() {
	group := s.groups[s.random.IntN(2)]
	switch s.random.IntN(4) {
	case 0:
		mode := []workspace.Mode{workspace.ModeHost, workspace.ModeFree}[s.random.IntN(2)]
		s.note("mode %s", mode)
		s.edit(group, workspace.ConversationPatch{Mode: workspace.Some(mode)})
	case 1:
		archived := s.random.IntN(3) == 0
		s.note("archived %v", archived)
		s.edit(group, workspace.ConversationPatch{Archived: workspace.Some(archived)})
	default:
		members := []string{"AB", "ABC", "ABCD", "A"}[s.random.IntN(4)]
		s.note("members %s", members)
		s.edit(group, workspace.ConversationPatch{MemberIDs: workspace.Some(s.ids(members))})
	}
}

// answer answers an open question.
func (s *simulation) answer() {
	for _, chat := range s.chats {
		for _, q := range s.detail(chat).Interactions {
			err := s.respond(q.ID, []string{"once", "deny"}[s.random.IntN(2)])
			s.note("answer: %v", err)
			return
		}
	}
}

// damage breaks one thing.
func (s *simulation) damage() {
	switch s.random.IntN(7) {
	case 0:
		s.note("connections drop")
		s.fake.DropConnections()
	case 1:
		s.note("hermes restarts")
		s.fake.Restart()
	case 2:
		s.note("hermes is down for a while")
		s.fake.SetDown(true)
		time.Sleep(time.Duration(s.random.IntN(200)) * time.Second)
		s.fake.SetDown(false)
	case 3:
		s.note("an acknowledgement will be lost")
		s.fake.Inject(hermestest.After("prompt.submit", hermestest.Drop()))
	case 4:
		s.note("a submission will be lost")
		s.fake.Inject(hermestest.Before("prompt.submit", hermestest.Drop()))
	case 5:
		s.note("an acknowledgement will never come")
		s.fake.Inject(hermestest.After("prompt.submit", hermestest.Mute()))
	default:
		s.note("a stop will be refused")
		s.fake.Inject(hermestest.Before("session.interrupt", hermestest.Answer(4000, "not now")))
	}
}

// kill ends the process at one of its next writes.
func (s *simulation) kill() {
	s.note("relay is killed")
	s.stop()
	s.must(s.store.Close())
	f := newFuse()
	s.openStore(f.now)
	s.start()
	f.arm(s.random.IntN(5))
	time.Sleep(10 * time.Second)
	f.arm(0)
	s.crash(f)
}

// settle ends everything: questions are answered, and what stays uncertain is
// stopped.
func (s *simulation) settle() {
	s.fake.SetDown(false)
	time.Sleep(15 * time.Minute)
	for round := range 4 {
		for _, run := range s.runs {
			if !s.status(run).Terminal() {
				s.note("in the end, stop %d of run %d, which is %s", round+1, s.seqs[run.ID], s.status(run))
				s.stopRun(run.ID)
			}
		}
		time.Sleep(10 * time.Minute)
	}
	for _, run := range s.runs {
		if got := s.run(run); !got.Status.Terminal() {
			s.Errorf("run %d cannot be ended: %+v", s.seqs[run.ID], got)
		}
	}
	open, err := s.store.OpenTasks(context.Background())
	s.must(err)
	if len(open) > 0 {
		s.Errorf("open tasks are left: %+v", open)
	}
}

// checkSlots fails when more is executed than may be (section 6.4).
func (s *simulation) checkSlots() {
	s.Helper()
	open, err := s.store.OpenTasks(context.Background())
	s.must(err)
	server, chats, members := 0, map[workspace.ConversationID]int{}, map[string]int{}
	for _, t := range open {
		if !t.Status.Occupied() {
			continue
		}
		chats[t.ConversationID]++
		members[string(t.ConversationID)+string(t.AgentID)]++
		if t.Status != workspace.TaskUncertain {
			server++
		}
	}
	if server > workspace.MaxRunningGlobal {
		s.Errorf("%d executions", server)
	}
	for _, n := range chats {
		if n > workspace.MaxRunningConversation {
			s.Errorf("%d executions in one chat", n)
		}
	}
	for _, n := range members {
		if n > 1 {
			s.Errorf("%d executions of one member", n)
		}
	}
}

var tag = regexp.MustCompile(`TAG(\d+)\.`)

// checkPrompts fails when a prompt was sent twice or has text of a later message
// (sections 6.10 and 6.13).
func (s *simulation) checkPrompts() {
	s.Helper()
	s.promptedOnce()
	for _, p := range s.fake.Prompts() {
		run := workspace.RunID(strings.Split(p.Text, ":")[1])
		for _, found := range tag.FindAllStringSubmatch(p.Text, -1) {
			if n, _ := strconv.Atoi(found[1]); n > s.seqs[run] {
				s.Errorf("a prompt of message %d has text of message %d", s.seqs[run], n)
			}
		}
	}
}

// checkEvents fails when the log is out of order, tells that something that was
// over is not, has a second notice of a limit, or ends otherwise than the store.
func (s *simulation) checkEvents() {
	s.Helper()
	last := int64(0)
	runs, messages := map[workspace.RunID]workspace.Run{}, map[workspace.MessageID]workspace.Message{}
	for _, e := range s.events() {
		if e.Seq <= last {
			s.Errorf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
		switch e.Type {
		case workspace.EventRun:
			var run workspace.Run
			s.must(json.Unmarshal(e.Data, &run))
			if before, ok := runs[run.ID]; ok && before.Status.Terminal() && before.Status != run.Status {
				s.Errorf("a run that was %s is %s", before.Status, run.Status)
			}
			runs[run.ID] = run
		case workspace.EventMessage:
			var m workspace.Message
			s.must(json.Unmarshal(e.Data, &m))
			if before, ok := messages[m.ID]; ok && before.Status.Terminal() && before.Status != m.Status {
				s.Errorf("a message that was %s is %s", before.Status, m.Status)
			}
			messages[m.ID] = m
		}
	}
	s.checkMessages(messages)
}

func (s *simulation) checkMessages(messages map[workspace.MessageID]workspace.Message) {
	s.Helper()
	notices := map[workspace.RunID]int{}
	for _, m := range messages {
		if !m.Status.Terminal() {
			s.Errorf("a message is left: %+v", m)
		}
		if m.Content == workspace.LimitNotice {
			notices[m.RunID]++
		}
		if strings.Contains(m.Content+m.Reasoning, "[relay-run") {
			s.Errorf("a message has a marker: %+v", m)
		}
	}
	for run, n := range notices {
		if n > 1 {
			s.Errorf("run %d has %d notices", s.seqs[run], n)
		}
	}
	for _, chat := range s.chats {
		for _, m := range s.detail(chat).Messages {
			if told := messages[m.ID]; told.Content != m.Content || told.Status != m.Status || told.Seq != m.Seq {
				s.Errorf("the log ends with %+v, the store has %+v", told, m)
			}
		}
		if states := s.detail(chat).Conversation.ActiveAgentStates; len(states) > 0 {
			s.Errorf("members are active in the end: %v", states)
		}
	}
}
