package daemon_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/storage"
)

// silence listens where nobody should ever call.
type silence struct {
	tcp, unix net.Listener
	udp       net.PacketConn
	running   sync.WaitGroup
	heard     chan struct{} // has a value for each of the first calls

	mu    sync.Mutex
	calls []string
}

// listenInSilence listens until the test ends.
func listenInSilence(t *testing.T) *silence {
	t.Helper()
	var lc net.ListenConfig
	dir, err := os.MkdirTemp("", "trap") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &silence{heard: make(chan struct{}, 16)}
	if s.tcp, err = lc.Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if s.unix, err = lc.Listen(t.Context(), "unix", filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	// The same number, so that one URL stands for both.
	if s.udp, err = lc.ListenPacket(t.Context(), "udp", s.tcp.Addr().String()); err != nil {
		t.Fatal(err)
	}
	s.running.Go(func() { s.accept(s.tcp) })
	s.running.Go(func() { s.accept(s.unix) })
	s.running.Go(s.receive)
	t.Cleanup(func() {
		_, _, _ = s.tcp.Close(), s.unix.Close(), s.udp.Close()
		s.running.Wait()
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *silence) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.note(l.Addr().Network())
		_ = conn.Close()
	}
}

func (s *silence) receive() {
	for buffer := make([]byte, 1); ; {
		if _, _, err := s.udp.ReadFrom(buffer); err != nil {
			return
		}
		s.note("udp")
	}
}

func (s *silence) note(network string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, network)
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// broken returns the networks on which somebody called.
func (s *silence) broken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// tree is what stands beneath a directory: a line of attributes for each path.
type tree map[string]string

// treeOf describes everything beneath dir but what skip names. Times of access
// are left out: reading is allowed.
func treeOf(t *testing.T, dir string, skip ...string) tree {
	t.Helper()
	all := make(tree)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(skip, path) {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		all[path], err = attributes(path, info)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func attributes(path string, info fs.FileInfo) (string, error) {
	line := fmt.Sprintf("%v %d %v", info.Mode(), info.Size(), info.ModTime())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		line += fmt.Sprintf(" links %d owner %d:%d inode %d changed %v", st.Nlink, st.Uid, st.Gid, st.Ino, st.Ctim)
	}
	switch {
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		return line + fmt.Sprintf(" %x", sha256.Sum256(data)), err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return line + " " + target, err
	}
	return line, nil
}

// changes returns the paths that are not the same in both.
func (before tree) changes(after tree) []string {
	var changed []string
	for path := range maps.Keys(before) {
		if before[path] != after[path] {
			changed = append(changed, path)
		}
	}
	for path := range maps.Keys(after) {
		if _, ok := before[path]; !ok {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return changed
}

// overseer looks at the processes beneath one, again and again.
type overseer struct {
	pid     int
	cancel  context.CancelFunc
	running sync.WaitGroup
	seen    map[string]bool // command lines
	sockets map[string]bool // of it and of all beneath it
}

// oversee begins to look.
func oversee(ctx context.Context, pid int) *overseer {
	ctx, cancel := context.WithCancel(ctx)
	o := &overseer{pid: pid, cancel: cancel, seen: make(map[string]bool), sockets: make(map[string]bool)}
	o.running.Go(func() {
		ticker := time.NewTicker(25 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			o.look()
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	return o
}

// stop ends the looking and returns the command lines that were seen.
func (o *overseer) stop() []string {
	o.cancel()
	o.running.Wait()
	o.look()
	return slices.Sorted(maps.Keys(o.seen))
}

func (o *overseer) look() {
	parents, known := parents(), knownSockets()
	for pid := range parents {
		if pid == o.pid || isBeneath(parents, pid, o.pid) {
			for _, socket := range socketsOf(pid, known) {
				o.sockets[socket] = true
			}
		}
		if !isBeneath(parents, pid, o.pid) {
			continue
		}
		// A process that has ended in between has no command line.
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(line) > 0 {
			o.seen[strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ")] = true
		}
	}
}

// parents returns the parent of every process.
func parents() map[int]int {
	all := make(map[int]int)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return all
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := statOf(pid); len(fields) > 1 {
			all[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return all
}

// statOf returns the fields of a process's status behind its name, or none when
// it is gone: the state, the parent, and so on.
func statOf(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
}

func isBeneath(parents map[int]int, pid, ancestor int) bool {
	for range len(parents) {
		if pid = parents[pid]; pid == ancestor || pid == 0 {
			return pid == ancestor
		}
	}
	return false
}

// doorman stands before the model server, lets everything through, and remembers
// what came and when.
type doorman struct {
	*httptest.Server
	mu      sync.Mutex
	routes  map[string]int
	arrived map[string]time.Time // the first request, by the marks in it
	came    chan struct{}        // has a value after a request that nobody has looked at
}

func openDoor(t *testing.T, modelURL string) *doorman {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(modelURL, "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	d := &doorman{routes: make(map[string]int), arrived: make(map[string]time.Time), came: make(chan struct{}, 1)}
	proxy := httputil.NewSingleHostReverseProxy(target)
	// A client that goes away in the middle is no news.
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.note(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

// note remembers a request.
func (d *doorman) note(r *http.Request) {
	now := time.Now()
	body, _ := io.ReadAll(r.Body) // what the client did not send is not there to note
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routes[r.Method+" "+r.URL.Path]++
	for _, mark := range marksIn(string(body)) {
		if _, ok := d.arrived[mark]; !ok {
			d.arrived[mark] = now
		}
	}
	select {
	case d.came <- struct{}{}:
	default:
	}
}

// arrival returns when the first request with a mark came.
func (d *doorman) arrival(mark string) (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.arrived[mark]
	return at, ok
}

// monitor follows what a relayd process does about its threads.
type monitor struct {
	relayd *relayd
	store  *storage.Store

	mu      sync.Mutex
	news    chan struct{} // closed at the next news
	read    int           // bytes of the log
	stuck   map[chat.ThreadID]string
	pattern *regexp.Regexp
}

// follow begins to follow and goes on until the test ends.
func follow(t *testing.T, r *relayd) *monitor {
	t.Helper()
	m := &monitor{
		relayd: r, store: openStore(r.root), news: make(chan struct{}), stuck: make(map[chat.ThreadID]string),
		pattern: regexp.MustCompile(`msg="a thread stays unanswered" thread=([0-9a-f]+) (phase=.*)`),
	}
	feed := m.store.Feed(0)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { feed.Run(ctx) })
	running.Go(func() { m.listen(ctx, feed) })
	t.Cleanup(func() { cancel(); running.Wait(); _ = m.store.Close() })
	return m
}

func (m *monitor) listen(ctx context.Context, feed *storage.Feed) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-feed.Changes():
		case <-m.relayd.log.written:
		}
		m.mu.Lock()
		m.readLog()
		close(m.news)
		m.news = make(chan struct{})
		m.mu.Unlock()
	}
}

// readLog takes notice of the lines that are new in the log.
func (m *monitor) readLog() {
	text := m.relayd.log.String()
	end := strings.LastIndexByte(text, '\n') + 1
	for _, found := range m.pattern.FindAllStringSubmatch(text[m.read:end], -1) {
		m.stuck[chat.ThreadID(found[1])] = found[2]
	}
	m.read = end
}

// outcome is how a thread came out.
type outcome struct {
	reply string // Hermes' last word
	stuck string // why there is none, as the log says it
}

// settled waits until the thread's message has been answered or given up.
func (m *monitor) settled(ctx context.Context, id chat.ThreadID, message string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		m.mu.Lock()
		news, stuck := m.news, m.stuck[id]
		m.mu.Unlock()
		thread, err := m.store.Thread(id)
		if err != nil {
			return outcome{}, err
		}
		last, _ := thread.Last()
		switch {
		case last.Author == chat.Hermes && last.ID != message:
			return outcome{reply: last.Text}, nil
		case stuck != "":
			return outcome{stuck: stuck}, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return outcome{}, fmt.Errorf("neither answered nor given up:\n%s", m.relayd.log)
		}
	}
}
