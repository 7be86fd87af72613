package nginx_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newos4/relay/pkg/daemon"
	"github.com/newos4/relay/pkg/sandbox"
)

// asRelayd makes the test binary, started with this variable, be relayd.
const asRelayd = "RELAY_TEST_AS_RELAYD"

// name is the name of the site in the example.
const name = "chat.example.org"

func TestMain(m *testing.M) {
	sandbox.RunChildIfAsked(os.Args)
	if os.Getenv(asRelayd) != "" {
		os.Exit(daemon.Main(context.Background(), daemon.Env{
			Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}
	os.Exit(m.Run())
}

// mainConf is the nginx.conf around the shipped files: Debian's layout and its
// gzip, in a directory of the test's own. More workers than one, because the
// zone must hold for all of them together.
const mainConf = `
worker_processes 2;
pid nginx.pid;
error_log error.log info;
events {}
http {
	access_log access.log;
	client_body_temp_path tmp/body;
	proxy_temp_path tmp/proxy;
	fastcgi_temp_path tmp/fastcgi;
	uwsgi_temp_path tmp/uwsgi;
	scgi_temp_path tmp/scgi;
	gzip on;
	gzip_types *;
	include conf.d/*.conf;
	include sites-enabled/*;
}
`

// site is a running nginx with the shipped files.
type site struct {
	dir   string
	tls   string // the address that speaks TLS
	plain string // the address that does not
	roots *x509.CertPool
}

// siteOptions say what is particular about a site.
type siteOptions struct {
	// upstream is where relayd listens, or what stands for it.
	upstream string
	// site takes the place of the example.
	site string
	// edit changes a shipped file, as its comments say.
	edit *strings.Replacer
}

// startSite runs nginx until the test ends.
func startSite(t *testing.T, opts siteOptions) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	listeners := make([]*net.TCPListener, 4)
	for i := range listeners {
		listeners[i] = listen(t)
	}
	s.plain, s.tls = listeners[0].Addr().String(), listeners[2].Addr().String()
	s.install(t, opts, listeners)
	if out, err := s.command(t, "-t").CombinedOutput(); err != nil || bytes.Contains(out, []byte("[")) {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	s.run(t, listeners)
	return s
}

// install copies the shipped files to where Debian has them and fills in their
// placeholders: what they listen on, the certificate, and where relayd is.
func (s *site) install(t *testing.T, opts siteOptions, listeners []*net.TCPListener) {
	t.Helper()
	fill := strings.NewReplacer(
		"listen 80;", fmt.Sprintf("listen %s;", listeners[0].Addr()),
		"listen [::]:80;", fmt.Sprintf("listen %s;", listeners[1].Addr()),
		"listen 443 ssl", fmt.Sprintf("listen %s ssl", listeners[2].Addr()),
		"listen [::]:443 ssl", fmt.Sprintf("listen %s ssl", listeners[3].Addr()),
		"server 127.0.0.1:8640;", fmt.Sprintf("server %s;", opts.upstream),
		"/etc/letsencrypt/live/"+name+"/", s.dir+"/",
	)
	files := map[string]string{
		"conf.d/relayd.conf":         shipped(t, "conf.d/relayd.conf"),
		"snippets/relayd-chat.conf":  shipped(t, "snippets/relayd-chat.conf"),
		"snippets/relayd-proxy.conf": shipped(t, "snippets/relayd-proxy.conf"),
		"sites-enabled/relayd.conf":  shipped(t, "sites-available/relayd.conf"),
	}
	if opts.site != "" {
		files["sites-enabled/relayd.conf"] = opts.site
	}
	for path, text := range files {
		if opts.edit != nil {
			text = opts.edit.Replace(text)
		}
		s.write(t, path, fill.Replace(text))
	}
	s.write(t, "nginx.conf", mainConf+asThisUser())
	s.write(t, "tmp/README", "nginx keeps bodies here\n")
	s.makeCertificate(t)
}

// asThisUser lets the workers of an nginx that root starts stay what they are:
// the test's directories are for nobody else. Others cannot and need not say so.
func asThisUser() string {
	if os.Geteuid() != 0 {
		return ""
	}
	return "user root;\n"
}

// shipped returns the text of a file beside this test.
func shipped(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *site) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *site) read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// makeCertificate makes a certificate for the site that signs itself.
func (s *site) makeCertificate(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	s.write(t, "fullchain.pem", string(chain))
	s.write(t, "privkey.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(chain)
}

// command is nginx with this site's directory as its own.
func (s *site) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	args = append(args, "-p", s.dir, "-c", filepath.Join(s.dir, "nginx.conf"), "-e", "stderr", "-g", "daemon off;")
	return exec.CommandContext(t.Context(), nginxPath(t), args...)
}

func nginxPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx") // where users' commands are not looked for
	}
	if err != nil {
		t.Fatal("nginx is missing; scripts/setup (make setup) installs it")
	}
	return path
}

// run starts nginx on listeners that are open already, so that no port can be
// lost to somebody else and nobody has to wait until it listens: NGINX names
// them, as when one nginx hands over to a newer one.
func (s *site) run(t *testing.T, listeners []*net.TCPListener) {
	t.Helper()
	cmd := s.command(t)
	inherited := "NGINX="
	for i, listener := range listeners {
		file, err := listener.File()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		inherited += fmt.Sprintf("%d;", 3+i)
	}
	cmd.Env = append(os.Environ(), inherited)
	log := newOutput()
	cmd.Stderr = log
	startProcess(t, cmd)
	for _, listener := range listeners {
		_ = listener.Close() // nginx has it
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("nginx said:\n%s%s", log, s.read(t, "error.log"))
		}
	})
}

// startProcess starts cmd, ends it and its children by SIGTERM with the test, and
// waits for it. A worker of nginx that has just been started may miss the word of
// its master, which kills it seconds later; the group reaches it at once.
func startProcess(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // also when the test is killed
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
}

// listen returns a listener on a free port of loopback.
func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// startRelayd runs relayd on a free port until the test ends.
func startRelayd(t *testing.T, environ ...string) *relayd {
	t.Helper()
	// An address of its own: no other test's connection can take the port while
	// relayd is down.
	return startRelaydOn(t, "127.0.0.77:0", environ...)
}

// relayd is a running process.
type relayd struct {
	*exec.Cmd
	address string
	log     *output
}

func startRelaydOn(t *testing.T, address string, environ ...string) *relayd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "relayd.yaml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &relayd{log: newOutput()}
	r.Cmd = exec.CommandContext(t.Context(), exe, "serve", "--root", t.TempDir(), "--listen", address, "--config", config)
	r.Env = append(append(os.Environ(), asRelayd+"=1", "RELAYD_ADMIN_LISTEN=127.0.0.1:0", "GORACE=atexit_sleep_ms=0"), environ...)
	r.Stderr = r.log
	startProcess(t, r.Cmd)
	r.address = r.log.waitFor(t, regexp.MustCompile(`msg=serving address=(\S+)`))
	return r
}

// output keeps what a process writes.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // has a value after a write that nobody has looked at
}

func newOutput() *output { return &output{written: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.written <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// waitFor returns the group of the pattern once the output matches it.
func (o *output) waitFor(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		if found := pattern.FindStringSubmatch(o.String()); found != nil {
			return found[1]
		}
		select {
		case <-o.written:
		case <-timeout:
			t.Fatalf("%s never appears in:\n%s", pattern, o)
		}
	}
}
