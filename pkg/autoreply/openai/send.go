package openai

import (
	"context"
	"errors"
	"time"

	"github.com/newos4/relay/pkg/autoreply"
)

const (
	// firstBackoff is about how long the first repetition waits; each one more
	// waits twice as long.
	firstBackoff = 500 * time.Millisecond
	// maxWait is the longest that a repetition waits. A server that asks for more
	// is left to whoever asked for the answer.
	maxWait = 15 * time.Second
)

// send makes a request, and repeats it while the connection fails or the server
// is busy. Its error is a [*autoreply.Failure], the last there was; with it
// comes the response, if there was one.
func (b *Backend) send(ctx context.Context, method, path string, body []byte) (response, error) {
	for try := 0; ; try++ {
		resp, err := b.client.do(ctx, method, path, body)
		failure := b.failureOf(resp, err)
		if failure == nil {
			return resp, nil
		}
		if try >= b.opts.Retries || !mayPass(resp, err) {
			return resp, failure
		}
		if !b.pause(ctx, try, failure) {
			return resp, failure
		}
	}
}

// mayPass reports whether the same request may fare better in a moment. One
// that ran into its time-out would hardly.
func mayPass(resp response, err error) bool {
	if err == nil {
		return isBusy(statusOf(resp)) && !isHermes(resp)
	}
	return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !errors.Is(err, errTooLarge)
}

// pause waits before repetition try, counted from 0, and reports whether there
// should be one.
func (b *Backend) pause(ctx context.Context, try int, failure *autoreply.Failure) bool {
	if failure.After > maxWait {
		return false
	}
	backoff := min(firstBackoff<<min(try, 10), maxWait)
	backoff = backoff/2 + b.opts.Jitter(backoff/2)
	return b.opts.Wait(ctx, max(backoff, failure.After)) == nil
}
