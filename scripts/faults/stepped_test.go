package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// asStepped makes the test binary, started with this variable, put itself under
// a stepped clock or, when it already is, print the time.
const asStepped = "RELAY_TEST_STEPPED"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asStepped) == "":
		os.Exit(m.Run())
	case len(os.Args) > 1 && os.Args[1] == steppedCommand:
		os.Exit(fail(os.Stderr, runStepped(os.Args[2:])))
	}
	fmt.Println(time.Now().UnixMilli())
	os.Exit(0)
}

// Ensures that a process is under the clock that was set, and no other.
func TestClock(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{}
	for _, ahead := range []time.Duration{0, year, -day} {
		c.ahead.Store(int64(ahead))
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), asStepped+"=1", "GORACE=atexit_sleep_ms=0")
		started, err := c.wrap(cmd)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := started(); err != nil {
			t.Fatalf("%v: %s", err, cmd.Wait())
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		var epoch int64
		if _, err := fmt.Sscan(out.String(), &epoch); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if off := time.Since(time.UnixMilli(epoch).Add(-ahead)).Abs(); off > clockSlack {
			t.Errorf("with the clock %v ahead the process is %v off", ahead, off)
		}
	}
	c.wait()
	if c.changed.Load() == 0 {
		t.Error("the process asked nobody")
	}
}
