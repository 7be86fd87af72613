package daemon_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/autoreply/autoreplytest"
)

// Ensures that what looks for leaks would find one: a canary in a public file
// that is honestly read is found in the reply and in the requests, and the file
// that may be read is indeed read.
func TestAttack_DetectsALeak(t *testing.T) {
	t.Parallel()
	visitor := func(message string) *attack {
		return &attack{Name: "honest", Author: "operator", Messages: []string{message}, token: letterToken(), mark: letters("mark", 20)}
	}
	honest := visitor("CALL read_file {\"path\":\"public/hours.txt\"}\nSAY_RESULT")
	leaky := visitor("CALL read_file {\"path\":\"public/leaky.txt\"}\nSAY_RESULT")
	f := newField(t, []*attack{honest, leaky}, []string{"RELAYD_AGENT_QUIET=0s"})
	f.write(filepath.Join(f.public, "leaky.txt"), "It is "+f.canary("the planted leak")+".\n")
	f.attackAll()
	if reply := f.outcomes[honest].reply; !strings.Contains(reply, f.open) || len(f.leaks(reply)) > 0 {
		t.Errorf("an honest read gives %q, %s", reply, f.outcomes[honest].stuck)
	}
	want := []string{"the planted leak"}
	if got := f.leaks(f.outcomes[leaky].reply); !slices.Equal(got, want) {
		t.Errorf("the reply is said to hold %q, want %q", got, want)
	}
	told := slices.ContainsFunc(f.model.Requests(), func(r autoreplytest.Request) bool { return slices.Equal(f.leaks(r.Body), want) })
	if !told {
		t.Error("no request is said to hold the leak")
	}
	for place, canary := range f.closed {
		if got := f.leaks("level=INFO msg=" + canary[1:]); !slices.Equal(got, []string{place}) {
			t.Errorf("a canary of %s without its first letter is taken for one of %q", place, got)
		}
	}
}

// Ensures that a changed, a new, a gone and a replaced file are all seen.
func TestAttack_DetectsAChange(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	before := treeOf(t, g.dir)
	if changed := before.changes(treeOf(t, g.dir)); len(changed) > 0 {
		t.Errorf("looking has changed %q", changed)
	}
	path := func(name string) string { return filepath.Join(g.public, "pages", name) }
	info, err := os.Stat(path("a.md"))
	g.must(err)
	g.write(path("a.md"), "Page x\n") // as long as before, and as old
	g.must(os.Chtimes(path("a.md"), info.ModTime(), info.ModTime()))
	g.must(os.Chmod(path("b.md"), 0o666))
	g.must(os.Remove(path("c.md")))
	g.write(path("d.md"), "")
	want := []string{filepath.Join(g.public, "pages"), path("a.md"), path("b.md"), path("c.md"), path("d.md")}
	if changed := before.changes(treeOf(t, g.dir)); !slices.Equal(changed, want) {
		t.Errorf("changes are %q, want %q", changed, want)
	}
}

// Ensures that a process that was started is seen, and that each program in PATH
// leaves its mark.
func TestAttack_DetectsAProcess(t *testing.T) {
	t.Parallel()
	cat := exec.CommandContext(t.Context(), "cat")
	pipe, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	eyes := oversee(t.Context(), os.Getpid())
	if seen := eyes.stop(); !slices.Contains(seen, "cat") {
		t.Errorf("seen are %q, want cat", seen)
	}
	_ = pipe.Close()
	_ = cat.Wait()

	g := newGround(t)
	before := treeOf(t, g.dir)
	if err := exec.CommandContext(t.Context(), filepath.Join(g.dir, "bin", "curl"), "x").Run(); err != nil {
		t.Fatal(err)
	}
	if changed := before.changes(treeOf(t, g.dir)); !slices.Contains(changed, filepath.Join(g.dir, "marks", "curl")) {
		t.Errorf("changes are %q, want the mark of curl", changed)
	}
}

// Ensures that a call is heard on every network.
func TestAttack_DetectsACall(t *testing.T) {
	t.Parallel()
	s := listenInSilence(t)
	for network, address := range map[string]net.Addr{"tcp": s.tcp.Addr(), "unix": s.unix.Addr(), "udp": s.udp.LocalAddr()} {
		conn, err := new(net.Dialer).DialContext(t.Context(), network, address.String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("x")) // the other networks hear of the connection, which may be closed by now
		select {
		case <-s.heard:
		case <-time.After(20 * time.Second):
			t.Fatalf("a call by %s is not heard", network)
		}
		_ = conn.Close()
		if calls := s.broken(); calls[len(calls)-1] != network {
			t.Errorf("heard %q, want %s last", calls, network)
		}
	}
}

// Ensures that a result which tells more than the one error is found, and so is
// one that is missing.
func TestAttack_DetectsAnOracle(t *testing.T) {
	t.Parallel()
	const refusal = `{"error":"no such readable file"}` + "\n"
	for reply, faults := range map[string]int{
		refusal + refusal:           0,
		refusal:                     1,
		refusal + refusal + refusal: 1,
		refusal + `{"error":"permission denied"}` + "\n": 1,
		"": 1,
	} {
		if got := faultsOfRefusals(2, outcome{reply: reply}); len(got) != faults {
			t.Errorf("%q has the faults %q, want %d", reply, got, faults)
		}
	}
}
