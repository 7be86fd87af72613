package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/permission"
	"github.com/newos4/relay/pkg/untrusted"
)

// failure is an error with what the user is told besides it.
type failure struct {
	code exitCode
	// err is what went wrong; nil means that the code says it all.
	err error
	// hint, unless empty, is one line on how to go on.
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.code.meaning()
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usagef returns a failure of the user's wording, with a hint that may be empty.
func usagef(hint, format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// nothing ends a poll whose time was up.
func nothing() error { return &failure{code: exitNothing} }

// exitOf returns the exit code for what the layers below report. An error that
// carries no code is a failure.
func exitOf(err error) exitCode {
	switch chat.CodeOf(err) {
	case chat.CodeBadRequest:
		return exitUsage
	case chat.CodeNotFound:
		return exitNoThread
	case chat.CodeTooLong, chat.CodeConflict, chat.CodeThreadLimit:
		return exitRefused
	case chat.CodeCorrupt:
		return exitCorrupt
	}
	_, isConfig := errors.AsType[*config.Error](err)
	if isConfig && !errors.Is(err, fs.ErrPermission) {
		return exitUsage
	}
	return exitFailed
}

// report prints err as the user is to read it and returns the exit code.
func (a *app) report(err error) exitCode {
	if err == nil {
		return exitDone
	}
	if errors.Is(err, syscall.EPIPE) {
		// The reader has gone; there is nobody left to tell.
		return exitFailed
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{code: exitOf(err), err: err, hint: permission.Hint(err, permission.Current)}
	}
	if f.err == nil {
		return f.code
	}
	a.printError(f.err.Error())
	a.printHint(f.hint)
	return f.code
}

// printError prints an error, which has a line for each thing that is wrong.
// Error texts may quote files and arguments, so they are made safe to look at
// like any other text, and no line of theirs stands without its label.
func (a *app) printError(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		a.printLine("chat: ", line)
	}
}

// printHint prints how to go on, if there is something to say.
func (a *app) printHint(text string) {
	if text != "" {
		a.printLine("hint: ", text)
	}
}

func (a *app) printLine(label, text string) {
	a.errMu.Lock()
	defer a.errMu.Unlock()
	fmt.Fprintf(a.env.Stderr, "%s%s\n", label, untrusted.Line(hideTokens(text)))
}

// hideTokens replaces what is, or is most of, a browser's token. Whoever reads
// a log or looks over a shoulder could use one.
func hideTokens(text string) string {
	const mostOfAToken = `[0-9A-Fa-f]{48,}`
	return regexp.MustCompile(mostOfAToken).ReplaceAllString(text, "[token]")
}
