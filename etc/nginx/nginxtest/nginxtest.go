// Package nginxtest runs the real nginx with the shipped files of etc/nginx, for
// the tests of whatever stands behind it.
package nginxtest

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
	"strings"
	"syscall"
	"testing"
	"time"
)

// Name is the name of the site in the example.
const Name = "chat.example.org"

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

// Site is a running nginx with the shipped files.
type Site struct {
	// TLS is the address that speaks TLS, Plain the one that does not.
	TLS, Plain string
	// Roots hold the certificate of the site, which signs itself.
	Roots *x509.CertPool

	dir string
}

// Options say what is particular about a site.
type Options struct {
	// Files is the directory etc/nginx, as seen from the test.
	Files string
	// Upstream is where relayd listens, or what stands for it.
	Upstream string
	// Site takes the place of the example.
	Site string
	// Edit changes a shipped file, as its comments say.
	Edit *strings.Replacer
}

// Start runs nginx until the test ends.
func Start(t *testing.T, opts Options) *Site {
	t.Helper()
	s := &Site{dir: t.TempDir()}
	listeners := make([]*net.TCPListener, 4)
	for i := range listeners {
		listeners[i] = Listen(t)
	}
	s.Plain, s.TLS = listeners[0].Addr().String(), listeners[2].Addr().String()
	s.install(t, opts, listeners)
	if out, err := s.command(t, "-t").CombinedOutput(); err != nil || bytes.Contains(out, []byte("[")) {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	s.run(t, listeners)
	return s
}

// install copies the shipped files to where Debian has them and fills in their
// placeholders: what they listen on, the certificate, and where relayd is.
func (s *Site) install(t *testing.T, opts Options, listeners []*net.TCPListener) {
	t.Helper()
	fill := strings.NewReplacer(
		"listen 80;", fmt.Sprintf("listen %s;", listeners[0].Addr()),
		"listen [::]:80;", fmt.Sprintf("listen %s;", listeners[1].Addr()),
		"listen 443 ssl", fmt.Sprintf("listen %s ssl", listeners[2].Addr()),
		"listen [::]:443 ssl", fmt.Sprintf("listen %s ssl", listeners[3].Addr()),
		"server 127.0.0.1:8640;", fmt.Sprintf("server %s;", opts.Upstream),
		"/etc/letsencrypt/live/"+Name+"/", s.dir+"/",
	)
	files := map[string]string{
		"conf.d/relayd.conf":         shipped(t, opts.Files, "conf.d/relayd.conf"),
		"snippets/relayd-chat.conf":  shipped(t, opts.Files, "snippets/relayd-chat.conf"),
		"snippets/relayd-proxy.conf": shipped(t, opts.Files, "snippets/relayd-proxy.conf"),
		"sites-enabled/relayd.conf":  shipped(t, opts.Files, "sites-available/relayd.conf"),
	}
	if opts.Site != "" {
		files["sites-enabled/relayd.conf"] = opts.Site
	}
	for path, text := range files {
		if opts.Edit != nil {
			text = opts.Edit.Replace(text)
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

// shipped returns the text of a file of dir.
func shipped(t *testing.T, dir, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *Site) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Read returns a file of the directory in which nginx runs, such as a log.
func (s *Site) Read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// makeCertificate makes a certificate for the site that signs itself.
func (s *Site) makeCertificate(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: Name}, DNSNames: []string{Name},
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
	s.Roots = x509.NewCertPool()
	s.Roots.AppendCertsFromPEM(chain)
}

// command is nginx with this site's directory as its own.
func (s *Site) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	args = append(args, "-p", s.dir, "-c", filepath.Join(s.dir, "nginx.conf"), "-e", "stderr", "-g", "daemon off;")
	return exec.CommandContext(context.WithoutCancel(t.Context()), Path(t), args...)
}

// Path returns where nginx is.
func Path(t *testing.T) string {
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
func (s *Site) run(t *testing.T, listeners []*net.TCPListener) {
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
	log := new(bytes.Buffer)
	cmd.Stderr = log
	t.Cleanup(func() { // after the end of nginx
		if t.Failed() {
			t.Logf("nginx said:\n%s%s", log, s.Read(t, "error.log"))
		}
	})
	StartProcess(t, cmd)
	for _, listener := range listeners {
		mustNotBlock(t, listener)
		_ = listener.Close() // nginx has it
	}
}

// mustNotBlock undoes what handing a file to a process does, for it and for
// nginx, which has the same one: of two workers that are woken for one client the
// second would wait in accept for another, and its own clients for it.
func mustNotBlock(t *testing.T, listener *net.TCPListener) {
	t.Helper()
	raw, err := listener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.SetNonblock(int(fd), true) }); err != nil || failed != nil {
		t.Fatalf("making a listener of nginx not block: %v, %v", err, failed)
	}
}

// StartProcess starts cmd, and ends it and its children by SIGTERM after the
// clean-up of whatever was begun later, such as clients, and waits for it. A
// worker of nginx that has just been started may miss the word of its master,
// which kills it seconds later; the group reaches it at once.
func StartProcess(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // also when the test is killed
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return // the test has ended it
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // one that has gone by itself is only waited for
		_ = cmd.Wait()
	})
}

// Listen returns a listener on a free port of loopback.
func Listen(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
