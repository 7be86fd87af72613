package sandbox

import (
	"fmt"
	"log/slog"
	"time"
)

// Mode says what to do where the kernel cannot keep every promise.
type Mode int

const (
	// Strict makes [Start] fail with an [UnsupportedError].
	Strict Mode = iota
	// BestEffort enforces what the kernel can; [Reader.Report] says what is
	// missing, and the caller is expected to log it at each start.
	BestEffort
)

// Options says what may be read, and how much of it.
type Options struct {
	// Roots are the absolute paths of the readable directories; none means that
	// nothing is readable. A path that is a symbolic link is resolved once, by
	// [Start]. The root of the file system, /proc, /sys, /dev and what lies
	// beneath them are refused.
	Roots []string
	// Deny are absolute paths that stay closed, with all beneath them, even if a
	// root contains them. They need not exist.
	Deny []string
	// Mode is [Strict] unless set.
	Mode Mode
	// Limits bound each request and the child; zero fields take their defaults.
	Limits Limits
	// Logger is told when a child had to be replaced, and why. It never gets a
	// path, a pattern or a text. Nil discards.
	Logger *slog.Logger

	probe    func() support // asks the kernel; tests pretend another one
	childArg string         // the hidden argument; tests have children of their own
}

// Limits bound a request's result, its work, and the process that does it. Each
// is positive; zero stands for the default.
type Limits struct {
	// FileSize is the most bytes a file may have to be read or searched.
	// Default 1 MiB, at most 16 MiB.
	FileSize int64 `json:"file_size"`
	// ResultBytes is the most bytes of names and text in one result. Default
	// 32 KiB, at most 256 KiB.
	ResultBytes int `json:"result_bytes"`
	// Lines is the most lines one Read returns. Default 1000.
	Lines int `json:"lines"`
	// Entries is the most entries one List returns. Default 500.
	Entries int `json:"entries"`
	// Matches is the most matching lines one Search returns. Default 100.
	Matches int `json:"matches"`
	// SearchFiles is the most files one Search opens. Default 2000.
	SearchFiles int `json:"search_files"`
	// SearchBytes is the most bytes one Search reads. Default 32 MiB.
	SearchBytes int64 `json:"search_bytes"`
	// Time is the longest a request may take. A search ends early and says so; a
	// child that does not answer at all is killed a second later. Default 5 s.
	Time time.Duration `json:"-"`
	// Memory is how many bytes of writable memory the child may add to what it
	// has when it is confined. Default 128 MiB, at least 32 MiB.
	Memory int64 `json:"memory"`
	// Requests is how many requests one child serves before a fresh one takes
	// its place, which takes some milliseconds, so that a child that was taken
	// over does not stay. Default 16.
	Requests int `json:"requests"`
}

const (
	kib = 1 << 10
	mib = 1 << 20

	maxRoots     = 64
	maxDeny      = 256
	minMemory    = 32 * mib
	maxFileSize  = 16 * mib
	maxResult    = 256 * kib
	answerGrace  = time.Second      // between the child's own deadline and its end
	startTimeout = 30 * time.Second // from fork to the child's report
)

// withDefaults returns l with its zero fields set, or an error that names the
// field and its value.
func (l Limits) withDefaults() (Limits, error) {
	for _, field := range []struct {
		name               string
		value              *int64
		preset, least, top int64
	}{
		{"FileSize", &l.FileSize, 1 * mib, 1, maxFileSize},
		{"SearchBytes", &l.SearchBytes, 32 * mib, 1, 1 << 40},
		{"Memory", &l.Memory, 128 * mib, minMemory, 1 << 40},
		{"Time", (*int64)(&l.Time), int64(5 * time.Second), int64(time.Millisecond), int64(time.Hour)},
	} {
		if err := setLimit(field.name, field.value, field.preset, field.least, field.top); err != nil {
			return Limits{}, err
		}
	}
	for _, field := range []struct {
		name               string
		value              *int
		preset, least, top int
	}{
		{"ResultBytes", &l.ResultBytes, 32 * kib, 1, maxResult},
		{"Lines", &l.Lines, 1000, 1, 1 << 20},
		{"Entries", &l.Entries, 500, 1, 4096},
		{"Matches", &l.Matches, 100, 1, 4096},
		{"SearchFiles", &l.SearchFiles, 2000, 1, 1 << 20},
		{"Requests", &l.Requests, 16, 1, 1 << 20},
	} {
		if err := setLimit(field.name, field.value, field.preset, field.least, field.top); err != nil {
			return Limits{}, err
		}
	}
	return l, nil
}

func setLimit[T int | int64](name string, value *T, preset, least, top T) error {
	if *value == 0 {
		*value = preset
	}
	if *value < least || *value > top {
		return fmt.Errorf("sandbox: limit %s is %d, want %d to %d", name, *value, least, top)
	}
	return nil
}
