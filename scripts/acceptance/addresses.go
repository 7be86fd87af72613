package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// addressCases judge which address a post counts for (section 7). Each spends
// the window of one address by posts that name it in different ways.
func addressCases() []testCase {
	var cases []testCase
	for name, row := range addressRows() {
		cases = append(cases, testCase{
			name:  "address/" + name,
			wants: row.wants,
			judge: func(t *trial) { t.wantOneAddress(row.disguise(randomIPv4())) },
		})
	}
	cases = append(cases, testCase{
		name:  "address/one-64-network",
		wants: "IPv6 addresses count per /64, section 7.",
		judge: judgeNetwork,
	}, testCase{
		name:  "address/garbage-behind",
		wants: "Behind a right-most entry that is no address, the entries on its left, which a client may forge, do not count, section 7.",
		judge: judgeGarbage,
	})
	return sorted(cases)
}

// disguise changes the headers of a call, which come from one address all the
// same.
type disguise func(*call)

type addressRow struct {
	wants    string
	disguise func(address string) disguise
}

func addressRows() map[string]addressRow {
	const rightMost = "The right-most untrusted address of X-Forwarded-For counts, whatever stands on its left, section 7."
	const oneClient = "One address is one client however it is written, section 7."
	return map[string]addressRow{
		"forged-left": {rightMost, func(address string) disguise {
			return func(c *call) { c.from = []string{randomIPv4() + ", " + randomIPv6() + ", " + address} }
		}},
		"forged-garbage-left": {rightMost, func(address string) disguise {
			return func(c *call) { c.from = []string{"unknown, " + randomHex(8) + ",,\t" + address} }
		}},
		"several-headers": {rightMost, func(address string) disguise {
			return func(c *call) { c.from = []string{randomIPv4(), randomIPv4() + ", " + randomIPv4(), address} }
		}},
		"trusted-hops": {rightMost, func(address string) disguise {
			return func(c *call) { c.from = []string{randomIPv4() + ", " + address + ", 127.0.0.1", "::1, 127.1.2.3"} }
		}},
		"other-headers": {"Only X-Forwarded-For names the client, section 7.", func(address string) disguise {
			return func(c *call) {
				c.from = []string{address}
				c.header.Set("X-Real-IP", randomIPv4())
				c.header.Set("Forwarded", "for="+randomIPv4())
				c.header.Set("X-Client-IP", randomIPv4())
				c.header.Set("True-Client-IP", randomIPv4())
			}
		}},
		"with-port": {oneClient, func(address string) disguise {
			return func(c *call) { c.from = []string{fmt.Sprintf("%s:%d", address, 1024+rand.IntN(60000))} }
		}},
		"mapped": {oneClient, func(address string) disguise {
			forms := []string{address, "::ffff:" + address, " " + address + " ", "[::ffff:" + address + "]:443"}
			return func(c *call) { c.from = []string{forms[rand.IntN(len(forms))]} }
		}},
	}
}

// wantOneAddress checks that forty posts in disguise fill one address's window,
// and that another address is not touched by it.
func (t *trial) wantOneAddress(hide disguise) {
	tokens := []string{t.token(), t.token()}
	for i := range ipPosts {
		token := tokens[i/threadPosts]
		t.receipt(token, t.postHidden(token, hide))
	}
	third := t.token()
	t.wantLimited(t.postHidden(third, hide), "ip", ipPosts, windowSeconds)
	t.post(third, "from another address")
}

func (t *trial) postHidden(token string, hide disguise) answer {
	c := t.postCall(token, strings.NewReader(textBody("hello")))
	hide(&c)
	return t.do(c)
}

func judgeNetwork(t *trial) {
	network := randomNetwork()
	t.wantOneAddress(func(c *call) { c.from = []string{hostIn(network)} })
	t.from = randomIPv6()
	t.post(t.token(), "from another network")
}

// judgeGarbage does not ask which window such posts fill, which may be that of
// the judge itself and be full already; they must not be free of any.
func judgeGarbage(t *trial) {
	hide := func(c *call) { c.from = []string{randomIPv4() + ", unknown"} }
	var token string
	for i := range ipPosts + 1 {
		if i%threadPosts == 0 {
			token = t.token()
		}
		a := t.postHidden(token, hide)
		if a.status == http.StatusTooManyRequests {
			t.wantLimited(a, "ip", ipPosts, windowSeconds)
			return
		}
		t.receipt(token, a)
	}
	t.errorf("%d posts were accepted, each with another forged address", ipPosts+1)
}
