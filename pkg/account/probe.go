package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ProbeTime is how long a bootstrap waits for the upstream (section 1.6).
const ProbeTime = 3 * time.Second

// Upstream is what a bootstrap asks of the upstream service. Both methods return
// soon after ctx has ended.
type Upstream interface {
	Status(ctx context.Context) (UpstreamStatus, error)
	ListProfiles(ctx context.Context) ([]Profile, error)
}

// UpstreamStatus is how the upstream says that it is.
type UpstreamStatus struct {
	// State is its overall word; empty for unknown.
	State          string
	Version        string
	GatewayRunning bool
	GatewayState   string
}

// Profile is a profile of the upstream.
type Profile struct {
	Name string
	// Title is what it is called in sentences; empty for none.
	Title string
	// Object holds whatever else the upstream tells of it; nil for nothing.
	Object map[string]jsontext.Value
}

// MarshalJSONTo writes the upstream's object, with at least a name. A title is
// added under each of the names that clients look for, where the upstream has none
// of its own (section 1.6).
func (p Profile) MarshalJSONTo(enc *jsontext.Encoder) error {
	object := maps.Clone(p.Object)
	if object == nil {
		object = make(map[string]jsontext.Value)
	}
	name, err := json.Marshal(p.Name)
	if err != nil {
		return err
	}
	object["name"] = name
	title, err := json.Marshal(p.Title)
	if err != nil {
		return err
	}
	for _, member := range []string{"agentName", "display_name", "description"} {
		if p.Title != "" && isEmptyText(object[member]) {
			object[member] = title
		}
	}
	return json.MarshalEncode(enc, object, json.Deterministic(true))
}

func isEmptyText(value jsontext.Value) bool {
	return len(value) == 0 || value.Kind() == jsontext.KindNull || string(value) == `""`
}

// Texts about an upstream that is not ready, as clients show them.
const (
	upstreamSlow    = "上游服务响应超时"
	upstreamFailing = "上游服务暂时无法访问"
	upstreamMissing = "尚未配置上游服务"
)

// Words for the state of the service as a whole.
const (
	stateReady       = "ready"
	stateDegraded    = "degraded"
	stateUnknown     = "unknown"
	statePasswordDue = "password_change_required"
)

// statusBody is the status in a bootstrap.
type statusBody struct {
	State          string `json:"state"`
	Version        string `json:"version,omitzero"`
	GatewayRunning *bool  `json:"gatewayRunning,omitzero"`
	GatewayState   string `json:"gatewayState,omitzero"`
}

// probed is what a bootstrap tells of the upstream. It is not changed once it was
// made, so that a late answer has nothing to change.
type probed struct {
	status   statusBody
	profiles []Profile
	problem  string // empty when the upstream is ready
}

// prober asks the upstream for all bootstraps. At most one question is under way,
// which those that come meanwhile share, however many clients ask a service that
// does not answer.
type prober struct {
	upstream Upstream
	log      *slog.Logger
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	flight *flight
}

// flight is a question that is under way; result may be read once done is closed.
type flight struct {
	done   chan struct{}
	result probed
}

func newProber(upstream Upstream, log *slog.Logger) *prober {
	ctx, stop := context.WithCancel(context.Background())
	return &prober{upstream: upstream, log: log, ctx: ctx, stop: stop}
}

// close ends the question that is under way and waits for it.
func (p *prober) close() {
	p.stop()
	p.running.Wait()
}

// probe returns what the upstream answers within [ProbeTime], or that it does not.
func (p *prober) probe(ctx context.Context) probed {
	if p.upstream == nil {
		return notReady(upstreamMissing)
	}
	ctx, cancel := context.WithTimeout(ctx, ProbeTime)
	defer cancel()
	f := p.join()
	select {
	case <-f.done:
		return f.result
	case <-ctx.Done():
		return notReady(upstreamSlow)
	}
}

func notReady(problem string) probed {
	return probed{status: statusBody{State: stateDegraded}, problem: problem}
}

// join returns the question that is under way, or asks it.
func (p *prober) join() *flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flight != nil {
		return p.flight
	}
	f := &flight{done: make(chan struct{})}
	p.flight = f
	p.running.Go(func() {
		f.result = p.ask()
		p.mu.Lock()
		p.flight = nil
		p.mu.Unlock()
		close(f.done)
	})
	return f
}

// ask puts both questions at the same time.
func (p *prober) ask() probed {
	ctx, cancel := context.WithTimeout(p.ctx, ProbeTime)
	defer cancel()
	var status UpstreamStatus
	var profiles []Profile
	var statusErr, profilesErr error
	var asking sync.WaitGroup
	asking.Go(func() { status, statusErr = p.upstream.Status(ctx) })
	asking.Go(func() { profiles, profilesErr = p.upstream.ListProfiles(ctx) })
	asking.Wait()
	if err := errors.Join(label("status", statusErr), label("profiles", profilesErr)); err != nil {
		p.log.Warn("the upstream did not answer", "error", err)
		if errors.Is(err, context.DeadlineExceeded) {
			return notReady(upstreamSlow)
		}
		return notReady(upstreamFailing)
	}
	return probed{status: statusOf(status), profiles: profiles}
}

func label(question string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("asking for its %s: %w", question, err)
}

func statusOf(s UpstreamStatus) statusBody {
	state := s.State
	if state == "" {
		state = stateUnknown
	}
	return statusBody{State: state, Version: s.Version, GatewayRunning: &s.GatewayRunning, GatewayState: s.GatewayState}
}
