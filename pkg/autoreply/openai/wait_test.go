package openai

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Ensures that waiting takes as long as it should, and ends with the context.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		if err := wait(t.Context(), 10*time.Second); err != nil || time.Since(started) != 10*time.Second {
			t.Errorf("waited %v, %v", time.Since(started), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		started = time.Now()
		if err := wait(ctx, 10*time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != 3*time.Second {
			t.Errorf("waited %v, %v", time.Since(started), err)
		}
	})
}
