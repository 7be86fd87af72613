package main

import (
	"strings"
	"testing"
	"time"
)

// Ensures that the driver waits for the whole of an answer, and does not count
// what it does not understand.
func TestParseAnswer(t *testing.T) {
	t.Parallel()
	const whole = "HTTP/1.1 201 Created\r\nX-Y: z\r\nContent-Length: 5\r\n\r\nhello"
	for n := range len(whole) {
		if _, done, err := parseAnswer([]byte(whole[:n])); done || err != nil {
			t.Fatalf("%q: whole %v, %v", whole[:n], done, err)
		}
	}
	a, done, err := parseAnswer([]byte(whole))
	if err != nil || !done || a.status != 201 || string(a.body) != "hello" {
		t.Errorf("answer %+v, whole %v, %v", a, done, err)
	}
	for _, bad := range []string{"HTTP/1.1 200 OK\r\n\r\n", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"} {
		if _, _, err := parseAnswer([]byte(bad)); err == nil {
			t.Errorf("%q was understood", bad)
		}
	}
}

// Ensures that the mix has one post in 20 requests and reaches every thread
// with both kinds.
func TestMixRequests(t *testing.T) {
	t.Parallel()
	site, err := seedThreads(t.TempDir(), 500, 1)
	if err != nil {
		t.Fatal(err)
	}
	posts, posted, polled := 0, map[string]bool{}, map[string]bool{}
	requests := mixRequests(site.tokens)
	for _, r := range requests {
		_, rest, _ := strings.Cut(string(r), "X-Chat-Token: ")
		token := rest[:64]
		if strings.HasPrefix(string(r), "POST ") {
			posts++
			posted[token] = true
			continue
		}
		polled[token] = true
	}
	if posts*mixShare != len(requests) || len(posted) != 500 || len(polled) != 500 {
		t.Errorf("%d posts in %d requests, %d threads posted to, %d polled", posts, len(requests), len(posted), len(polled))
	}
}

// Ensures that ratios are compared inside a round before the median is taken.
func TestObservations_Against(t *testing.T) {
	t.Parallel()
	o := observations{rates: map[string][]float64{
		"x": {100, 10, 90}, "floor": {100, 20, 100}, mixed: {1, 1, 1},
	}}
	r := o.against("what", "x", "floor", 0.95)
	if r.ratio != "0.90" || r.reached || r.measured != "90/s" || r.floor != "100/s" {
		t.Errorf("row %+v", r)
	}
	if got := medianOf([]time.Duration{4, 1, 3, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
}
