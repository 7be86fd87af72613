package account

import (
	"crypto/sha256"
	"time"

	"github.com/newos4/relay/pkg/ratelimit"
)

// Windows of failed attempts to prove a password. From one address few names can
// be tried, and one name not often. The limit of a name from everywhere is higher,
// so that one address alone cannot lock its owner out, and still leaves less than
// 10,000 guesses a day.
const (
	windowNameAddress = "name_address"
	windowAddress     = "address"
	windowName        = "name"

	attemptSpan         = 15 * time.Minute
	attemptsNameAddress = 10
	attemptsAddress     = 30
	attemptsName        = 100
	// maxAttemptKeys bounds the names and the addresses that are remembered.
	maxAttemptKeys = 1 << 14
)

// throttle counts attempts to prove a password. An attempt counts from its
// beginning, so that many at once do not exceed a limit together, and is taken
// back if it succeeds.
type throttle struct{ limiter *ratelimit.Limiter }

func newThrottle(now func() time.Time) *throttle {
	return &throttle{ratelimit.New(now, maxAttemptKeys,
		ratelimit.Window{Name: windowNameAddress, Limit: attemptsNameAddress, Span: attemptSpan},
		ratelimit.Window{Name: windowAddress, Limit: attemptsAddress, Span: attemptSpan},
		ratelimit.Window{Name: windowName, Limit: attemptsName, Span: attemptSpan},
	)}
}

// attempt counts one, or refuses it with [CodeThrottled]. Whether a user of that
// name exists makes no difference.
func (t *throttle) attempt(username, address string) (*ratelimit.Reservation, error) {
	// A hash, so that long names take no more memory than short ones.
	sum := sha256.Sum256([]byte(UsernameKey(username)))
	name := string(sum[:16])
	reservation, full := t.limiter.Reserve(
		ratelimit.Claim{Window: windowNameAddress, Key: name + address},
		ratelimit.Claim{Window: windowAddress, Key: address},
		ratelimit.Claim{Window: windowName, Key: name},
	)
	if full != nil {
		return nil, &Error{Code: CodeThrottled, Message: "too many attempts failed", RetryAfter: full.Wait}
	}
	return reservation, nil
}
