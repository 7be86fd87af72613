package browser_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// front is a front end before relayd that fails when it is told to.
type front struct {
	url   string
	posts int // that it saw; read under mu

	mu     sync.Mutex
	faults []fault
}

// fault is what happens to the next request for a route of the chat.
type fault struct {
	route string // such as post.php
	// answer takes the place of relayd's. It may call relayd itself.
	answer func(w http.ResponseWriter, relayd func(http.ResponseWriter))
}

// startFront runs a front end before relayd until the test ends.
func startFront(t *testing.T, r *relayd) *front {
	t.Helper()
	target, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	f := new(front)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.SetXForwarded()
	}, ErrorLog: log.New(io.Discard, "", 0)} // of clients that have gone
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := f.next(r.URL.Path)
		if next == nil {
			proxy.ServeHTTP(w, r)
			return
		}
		next.answer(w, func(w http.ResponseWriter) { proxy.ServeHTTP(w, r) })
	}))
	// Chromium itself repeats a request, also a POST, whose connection had been
	// used before and is cut before the first byte of an answer. A page can
	// neither prevent nor notice that, so connections are used once here.
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// next takes the fault that a request meets, if any.
func (f *front) next(path string) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasSuffix(path, "post.php") {
		f.posts++
	}
	for i, candidate := range f.faults {
		if strings.HasSuffix(path, candidate.route) {
			f.faults = append(f.faults[:i], f.faults[i+1:]...)
			return &candidate
		}
	}
	return nil
}

func (f *front) fail(faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

func (f *front) postsSeen() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.posts
}

// answers is a fault that answers by itself.
func answers(route string, status int, contentType, body string) fault {
	return fault{route: route, answer: func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}}
}

// busy is nginx's own page of its rate zone.
func busy(route string) fault {
	return answers(route, http.StatusServiceUnavailable, "text/html", "<html><head><title>503 Service Temporarily Unavailable</title></head></html>")
}

// loses is a fault that hands the request on and cuts the connection before the
// answer.
func loses(route string) fault {
	return fault{route: route, answer: func(_ http.ResponseWriter, relayd func(http.ResponseWriter)) {
		relayd(httptest.NewRecorder()) // relayd has stored it by then
		panic(http.ErrAbortHandler)
	}}
}
