package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

type intValue struct {
	p        *int
	min, max int
}

func (v intValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("is not a whole number")
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("is not between %d and %d", v.min, v.max)
	}
	*v.p = n
	return nil
}

func (v intValue) String() string { return strconv.Itoa(*v.p) }

type boolValue struct{ p *bool }

func (v boolValue) Set(s string) error {
	switch s {
	case "true", "false":
		*v.p = s == "true"
		return nil
	}
	return errors.New("is neither true nor false")
}

func (v boolValue) String() string { return strconv.FormatBool(*v.p) }

type durationValue struct {
	p        *time.Duration
	min, max time.Duration
}

func (v durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("is not a duration such as 90s, 10m or 720h")
	}
	if d < v.min || d > v.max {
		return fmt.Errorf("is not between %s and %s", formatDuration(v.min), formatDuration(v.max))
	}
	*v.p = d
	return nil
}

func (v durationValue) String() string { return formatDuration(*v.p) }

// formatDuration prints a duration without the zero parts that
// [time.Duration.String] adds.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

type pathValue struct {
	p       *string
	orEmpty bool
}

func (v pathValue) Set(s string) error {
	if s == "" && v.orEmpty {
		*v.p = ""
		return nil
	}
	if s == "" {
		return errors.New("is empty")
	}
	if strings.ContainsRune(s, 0) {
		return errors.New("holds a NUL character")
	}
	abs, err := filepath.Abs(s)
	if err != nil {
		return fmt.Errorf("cannot be made absolute: %w", err)
	}
	*v.p = abs
	return nil
}

func (v pathValue) String() string { return *v.p }

// nameValue is one segment of a path and of a URL.
type nameValue struct{ p *string }

func (v nameValue) Set(s string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if s == "" || len(s) > 64 || strings.Trim(s, letters) != "" {
		return errors.New("is not a name of 1 to 64 letters, digits, _ and -")
	}
	*v.p = s
	return nil
}

func (v nameValue) String() string { return *v.p }

type addressValue struct {
	p          *string
	isOptional bool
}

func (v addressValue) Set(s string) error {
	if s == "" && v.isOptional {
		*v.p = s
		return nil
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("is not an address and port such as 127.0.0.1:8640")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return errors.New("does not end in a port between 0 and 65535")
	}
	*v.p = s
	return nil
}

func (v addressValue) String() string { return *v.p }

type choiceValue struct {
	p       *string
	choices []string
}

func (v choiceValue) Set(s string) error {
	if !slices.Contains(v.choices, s) {
		return fmt.Errorf("is not one of: %s", strings.Join(v.choices, ", "))
	}
	*v.p = s
	return nil
}

func (v choiceValue) String() string { return *v.p }

type levelValue struct{ p *slog.Level }

func (v levelValue) Set(s string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[s]
	if !ok {
		return errors.New("is not one of: debug, info, warn, error")
	}
	*v.p = level
	return nil
}

func (v levelValue) String() string { return strings.ToLower(v.p.String()) }

type scheduleValue struct{ p *string }

func (v scheduleValue) Set(s string) error {
	if strings.Contains(s, "TZ=") {
		return errors.New("names a time zone; the schedule is in UTC")
	}
	if _, err := ParseSchedule(s); err != nil {
		return errors.New("is not five cron fields, @hourly, @daily or @every DURATION")
	}
	*v.p = s
	return nil
}

func (v scheduleValue) String() string { return *v.p }

type prefixesValue struct{ p *[]netip.Prefix }

func (v prefixesValue) Set(s string) error {
	var prefixes []netip.Prefix
	for _, item := range splitList(s) {
		prefix, err := parsePrefix(item)
		if err != nil {
			return fmt.Errorf("holds %q, which is no address and no network", item)
		}
		prefixes = append(prefixes, prefix)
	}
	*v.p = prefixes
	return nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.Masked(), nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.Unmap().Prefix(addr.Unmap().BitLen())
}

func (v prefixesValue) String() string {
	items := make([]string, len(*v.p))
	for i, prefix := range *v.p {
		items[i] = prefix.String()
	}
	return joinList(items)
}

type originsValue struct{ p *[]string }

func (v originsValue) Set(s string) error {
	origins := splitList(s)
	for _, origin := range origins {
		u, err := url.Parse(origin)
		// Browsers send origins in lower case and without the scheme's own port,
		// and they are compared as they stand.
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ToLower(u.Scheme+"://"+u.Host) != origin || isDefaultPort(u) {
			return fmt.Errorf("holds %q, which is no origin as browsers send it, such as https://app.example", origin)
		}
	}
	*v.p = origins
	return nil
}

func isDefaultPort(u *url.URL) bool {
	return u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
}

func (v originsValue) String() string { return joinList(*v.p) }

// pathsValue is a list of paths.
type pathsValue struct{ p *[]string }

func (v pathsValue) Set(s string) error {
	var paths []string
	for _, item := range splitList(s) {
		var path string
		if err := (pathValue{&path, false}).Set(item); err != nil {
			return fmt.Errorf("holds %q, which %w", item, err)
		}
		paths = append(paths, path)
	}
	*v.p = paths
	return nil
}

func (v pathsValue) String() string { return joinList(*v.p) }

// wordsValue is a list of anything.
type wordsValue struct{ p *[]string }

func (v wordsValue) Set(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("holds a NUL character")
	}
	*v.p = splitList(s)
	return nil
}

func (v wordsValue) String() string { return joinList(*v.p) }

// textValue is one line of anything.
type textValue struct{ p *string }

func (v textValue) Set(s string) error {
	if strings.ContainsAny(s, "\x00\r\n") {
		return errors.New("is more than one line")
	}
	*v.p = s
	return nil
}

func (v textValue) String() string { return *v.p }

// urlValue is the address of a server, or empty. It holds no password: what it
// holds is printed.
type urlValue struct{ p *string }

func (v urlValue) Set(s string) error {
	if s == "" {
		*v.p = ""
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("is not a URL such as http://127.0.0.1:8080/v1")
	case u.User != nil:
		return errors.New("holds a user or password; name a key_file instead")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("has a query or a fragment")
	}
	*v.p = strings.TrimSuffix(s, "/")
	return nil
}

func (v urlValue) String() string { return *v.p }

// CredentialPrefix begins the name of a key that systemd hands over.
const CredentialPrefix = "credential:"

// keyFileValue is a path, the name of a systemd credential, or empty.
type keyFileValue struct{ p *string }

func (v keyFileValue) Set(s string) error {
	name, isCredential := strings.CutPrefix(s, CredentialPrefix)
	if !isCredential {
		return pathValue{v.p, true}.Set(s)
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return errors.New("does not name a credential")
	}
	*v.p = s
	return nil
}

func (v keyFileValue) String() string { return *v.p }

// splitList splits at commas and drops blanks around the items. A backslash
// takes the comma or backslash behind it for what it is.
func splitList(s string) []string {
	var items []string
	var item strings.Builder
	end := func() {
		if text := strings.TrimSpace(item.String()); text != "" {
			items = append(items, text)
		}
		item.Reset()
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == ',' || s[i+1] == '\\'):
			i++
			item.WriteByte(s[i])
		case s[i] == ',':
			end()
		default:
			item.WriteByte(s[i])
		}
	}
	end()
	return items
}

// joinList is the inverse of splitList.
func joinList(items []string) string {
	escaped := make([]string, len(items))
	for i, item := range items {
		escaped[i] = strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(item)
	}
	return strings.Join(escaped, ",")
}
