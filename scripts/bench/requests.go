package main

import (
	"fmt"
	"strconv"

	"github.com/newos4/relay/pkg/chat"
)

// newest as a cursor asks for the newest page, future for what no message is
// newer than.
const (
	newest int64 = 0
	future int64 = 4102444800000 // the year 2100
)

// pollRequests returns a poll of each thread.
func pollRequests(tokens []chat.Token, since int64) [][]byte {
	query := ""
	if since != newest {
		query = "?since=" + strconv.FormatInt(since, 10)
	}
	requests := make([][]byte, len(tokens))
	for i, token := range tokens {
		requests[i] = fmt.Appendf(nil, "GET /spaces/newos4/api/chat/poll.php%s HTTP/1.1\r\n%s\r\n", query, headers(i, token))
	}
	return requests
}

// postRequests returns a post to each thread.
func postRequests(tokens []chat.Token) [][]byte {
	body := fmt.Sprintf(`{"text":%q}`, sampleText())
	requests := make([][]byte, len(tokens))
	for i, token := range tokens {
		requests[i] = fmt.Appendf(nil, "POST /spaces/newos4/api/chat/post.php HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			headers(i, token), len(body), body)
	}
	return requests
}

// headers are those of a browser behind a front end, each with an address of
// its own.
func headers(i int, token chat.Token) string {
	return fmt.Sprintf("Host: localhost\r\nX-Chat-Token: %s\r\nX-Forwarded-For: 10.0.%d.%d\r\n", string(token), i/250, 1+i%250)
}

// mixShare is how many requests of the mix there are to one post.
const mixShare = 20

// mixRequests returns polls with nothing new and, as each 20th request, a post,
// over all threads.
func mixRequests(tokens []chat.Token) [][]byte {
	polls, posts := pollRequests(tokens, future), postRequests(tokens)
	requests := make([][]byte, mixShare*len(tokens))
	for i := range requests {
		if i%mixShare == 0 {
			requests[i] = posts[i/mixShare]
		} else {
			requests[i] = polls[(i-i/mixShare-1)%len(polls)]
		}
	}
	return requests
}
