package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// The contract's numbers.
const (
	textLimit     = 4000  // code points
	bodyLimit     = 32768 // bytes
	pageLimit     = 50
	threadPosts   = 20
	ipPosts       = 40
	windowSeconds = 600
	threadLimit   = 500
	messageLimit  = 200
	retention     = 30 * 24 * time.Hour
)

// message is a message as a poll shows it and as a thread file holds it.
type message struct {
	ID     string `json:"id"`
	Epoch  int64  `json:"epoch"` // ms
	TS     string `json:"ts"`
	Author string `json:"author"`
	Text   string `json:"text"`
}

// newMessage makes a message of its time.
func newMessage(at time.Time, author, text string) message {
	at = at.UTC()
	return message{
		ID:     at.Format("MSG-20060102-150405-") + randomHex(3),
		Epoch:  at.UnixMilli(),
		TS:     at.Format("2006-01-02T15:04:05+00:00"),
		Author: author,
		Text:   text,
	}
}

// encodeThread writes a thread as it lies in its file. It is the only place that
// knows that format, which the contract leaves to the implementation.
func encodeThread(thread string, messages []message) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Thread   string    `json:"thread"`
		Messages []message `json:"messages"`
	}{thread, messages})
	if err != nil {
		return nil, fmt.Errorf("encoding a thread: %w", err)
	}
	return []byte(b.String()), nil
}

// threadOf derives the thread id from a token (section 1).
func threadOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])[:16]
}

// checkStamps returns an error unless id and ts name the UTC second of epoch
// (sections 1 and 4).
func checkStamps(id, ts string, epoch int64) error {
	at := time.UnixMilli(epoch).UTC()
	if want := at.Format("2006-01-02T15:04:05+00:00"); ts != want {
		return fmt.Errorf("ts is %q, epoch %d is %s", ts, epoch, want)
	}
	form := regexp.MustCompile(`^MSG-` + at.Format("20060102-150405") + `-[0-9a-f]{6}$`)
	if !form.MatchString(id) {
		return fmt.Errorf("id is %q, which is not %s", id, form)
	}
	return nil
}

// randomHex returns n random bytes in lower-case hexadecimal digits.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// randomToken returns a token that no one has used.
func randomToken() string { return randomHex(32) }

// randomNetwork returns the first eight bytes of an address in a /64 of its own,
// in the range that is kept for documentation.
func randomNetwork() [8]byte {
	network := [8]byte{0x20, 0x01, 0x0d, 0xb8}
	_, _ = rand.Read(network[4:]) // never fails
	return network
}

// hostIn returns a random address in a /64.
func hostIn(network [8]byte) string {
	var a [16]byte
	copy(a[:], network[:])
	_, _ = rand.Read(a[8:]) // never fails
	return netip.AddrFrom16(a).String()
}

// randomIPv6 returns an address in a /64 of its own.
func randomIPv6() string { return hostIn(randomNetwork()) }

// randomIPv4 returns an address of the range that is kept for benchmarks, which
// is large enough that two runs hardly meet.
func randomIPv4() string {
	a := [4]byte{198}
	_, _ = rand.Read(a[1:]) // never fails
	a[1] = 18 | a[1]&1
	return netip.AddrFrom4(a).String()
}

// isThreadID reports whether a string has the form of a thread id.
func isThreadID(s string) bool {
	return regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(s)
}
