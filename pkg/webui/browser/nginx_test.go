package browser_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// nginx runs the real nginx with the files of etc/nginx before relayd until the
// test ends, and returns its URL. Only the placeholders of the files are filled
// in; the browser is told to take the certificate.
func nginx(t *testing.T, r *relayd) string {
	t.Helper()
	dir := t.TempDir()
	listeners := make([]*net.TCPListener, 4)
	for i := range listeners {
		var err error
		if listeners[i], err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	fill := strings.NewReplacer(
		"listen 80;", fmt.Sprintf("listen %s;", listeners[0].Addr()),
		"listen [::]:80;", fmt.Sprintf("listen %s;", listeners[1].Addr()),
		"listen 443 ssl", fmt.Sprintf("listen %s ssl", listeners[2].Addr()),
		"listen [::]:443 ssl", fmt.Sprintf("listen %s ssl", listeners[3].Addr()),
		"server 127.0.0.1:8640;", fmt.Sprintf("server %s;", strings.TrimPrefix(r.url, "http://")),
		"/etc/letsencrypt/live/chat.example.org/", dir+"/",
	)
	for _, name := range []string{"conf.d/relayd.conf", "snippets/relayd-chat.conf", "snippets/relayd-proxy.conf", "sites-available/relayd.conf"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "etc", "nginx", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), fill.Replace(string(text)))
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the test's directories are for nobody else
	}
	writeFile(t, filepath.Join(dir, "nginx.conf"), user+`
		pid nginx.pid;
		error_log error.log;
		events {}
		http {
			access_log off;
			client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
			gzip on;
			gzip_types *;
			include conf.d/*.conf;
			include sites-available/*;
		}`)
	writeCertificate(t, dir)
	runNginx(t, dir, listeners)
	return "https://" + listeners[2].Addr().String()
}

// runNginx starts nginx on listeners that are open already, so that nobody has to
// wait until it listens: NGINX names them, as when one nginx follows another.
func runNginx(t *testing.T, dir string, listeners []*net.TCPListener) {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx" // where users' commands are not looked for
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, path, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr", "-g", "daemon off;")
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
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // its workers too
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting nginx: %v\nhint: make setup installs it", err)
	}
	for _, listener := range listeners {
		_ = listener.Close() // nginx has it
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx said:\n%s", &log)
		}
	})
}

// writeCertificate makes a certificate that signs itself.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	chain, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "fullchain.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain})))
	writeFile(t, filepath.Join(dir, "privkey.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// client makes requests beside the browser and asks for no compression by itself.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is the test's own
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// get asks for a URL and returns the status, the header and the body's length.
func get(ctx context.Context, c *http.Client, url string, header http.Header) (int, http.Header, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, 0, err
	}
	req.Header = header
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, len(body), err
}

func mustGet(t *testing.T, c *http.Client, url string, header http.Header) (int, http.Header, int) {
	t.Helper()
	status, got, size, err := get(t.Context(), c, url, header)
	if err != nil {
		t.Fatal(err)
	}
	return status, got, size
}

// Ensures that nginx's own 503 of its rate zone, which is HTML, delays a message
// and does not lose it.
func TestNginx_RateZone(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	url := nginx(t, r)
	p := newBrowser(t).open(t, url, tabOptions{refusals: true})
	p.waitForText("#connection", "connected")
	crowd := startCrowd(t, url+"/spaces/newos4/api/chat/poll.php")
	<-crowd.refused
	p.write("patience")
	p.waitForText(".pending .state", "The server is busy. Sending again in")
	crowd.stop()
	p.waitForText(".operator:not(.pending) .text", "patience")
	if n := strings.Count(r.stored(t), "patience"); n != 1 {
		t.Errorf("the message stands %d times", n)
	}
}

// crowd is somebody at the same address who asks without a pause.
type crowd struct {
	refused chan struct{} // closed when the zone has refused him
	stop    func()        // may be called twice
}

func startCrowd(t *testing.T, url string) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c, asks := client(t), &crowd{refused: make(chan struct{})}
	var asking sync.WaitGroup
	asking.Go(func() {
		told := sync.OnceFunc(func() { close(asks.refused) })
		for ctx.Err() == nil {
			if status, _, _, err := get(ctx, c, url, http.Header{}); err == nil && status == http.StatusServiceUnavailable {
				told()
			}
		}
	})
	asks.stop = func() { cancel(); asking.Wait() }
	t.Cleanup(asks.stop)
	return asks
}

// Ensures that what nginx hands on of the page is what relayd sent: compressed
// once, with its strong tag, its policy and a 304 for who has it already.
func TestNginx_HandsThePageOn(t *testing.T) {
	t.Parallel()
	r := startRelayd(t)
	front, c := nginx(t, r), client(t)
	for _, path := range []string{"/", "/spaces/newos4/", "/spaces/newos4/hermes-chat.js", "/page.css"} {
		header := http.Header{"Accept-Encoding": {"gzip"}}
		_, direct, length := mustGet(t, c, r.url+path, header)
		status, got, size := mustGet(t, c, front+path, header)
		if status != http.StatusOK || size != length {
			t.Errorf("%s: %d with %d bytes, want %d", path, status, size, length)
		}
		for _, name := range []string{"Etag", "Content-Encoding", "Content-Type", "Vary", "Cache-Control", "Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"} {
			if got.Get(name) != direct.Get(name) || got.Get(name) == "" {
				t.Errorf("%s: %s is %q, relayd sent %q", path, name, got.Get(name), direct.Get(name))
			}
		}
		header.Set("If-None-Match", got.Get("Etag"))
		if status, _, size := mustGet(t, c, front+path, header); status != http.StatusNotModified || size != 0 {
			t.Errorf("%s: %d with %d bytes for who has it", path, status, size)
		}
	}
}
