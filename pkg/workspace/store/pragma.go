package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

const (
	// busyTimeout bounds how long anything waits for another process.
	busyTimeout = 10 * time.Second
	// busyStep is how long SQLite itself waits at a time once the writer is open and
	// begins its transactions by asking again and again. SQLite's waits grow to a
	// tenth of a second, within which a process that writes all the time begins
	// anew each time; shorter ones find the moment between two of its writes.
	// Opening and migrating ask once, and so wait for all of busyTimeout.
	busyStep = 20 * time.Millisecond
	// walLimit is how much of the log stays on disk after a checkpoint, in bytes.
	walLimit = 64 << 20
	// cacheKiB bounds the page cache of each connection, in KiB.
	cacheKiB = 8 << 10
)

// access is what a connection may do.
type access int

const (
	readWrite access = iota
	readOnly
)

// setting is a pragma that is set on every connection and read back, since
// SQLite ignores what it does not know, and a database that is not durable must
// not be opened by mistake.
type setting struct{ name, value, shown string }

func settings(a access) []setting {
	queryOnly := "0"
	if a == readOnly {
		queryOnly = "1"
	}
	return []setting{
		{"busy_timeout", milliseconds(busyTimeout), ""},
		{"journal_mode", "WAL", "wal"},
		{"synchronous", "FULL", "2"}, // the log is synced with every commit
		{"foreign_keys", "1", ""},
		{"trusted_schema", "0", ""},
		{"journal_size_limit", strconv.Itoa(walLimit), ""},
		{"cache_size", strconv.Itoa(-cacheKiB), ""},
		{"query_only", queryOnly, ""},
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dataSource returns the name by which the driver opens the file at path.
func dataSource(path string, a access) string {
	query := url.Values{"_defensive": {"1"}, "_dqs": {"0"}}
	for _, s := range settings(a) {
		query.Add("_pragma", fmt.Sprintf("%s(%s)", s.name, s.value))
	}
	return uri(path, query)
}

// uri returns SQLite's URI of the file at path, whatever characters it has.
func uri(path string, query url.Values) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	return u.String()
}

// assertSettings returns an error unless the connection has all of its settings.
func assertSettings(ctx context.Context, c *sql.Conn, a access) error {
	for _, s := range settings(a) {
		want := s.shown
		if want == "" {
			want = s.value
		}
		var got string
		if err := c.QueryRowContext(ctx, "PRAGMA "+s.name).Scan(&got); err != nil {
			return fmt.Errorf("reading the setting %s: %w", s.name, err)
		}
		if got != want {
			return fmt.Errorf("the database has %s = %s, not %s", s.name, got, want)
		}
	}
	return nil
}

// shortenWaits lets SQLite wait for no more than busyStep at a time, for a
// connection whose transactions begin with begun.
func shortenWaits(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, "PRAGMA busy_timeout = "+milliseconds(busyStep)); err != nil {
		return fmt.Errorf("shortening the waits: %w", err)
	}
	return nil
}
