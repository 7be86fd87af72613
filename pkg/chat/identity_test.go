package chat_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/chat"
)

// Ensures that thread ids are derived as the contract's vectors show (section 1).
func TestToken_Thread(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]chat.ThreadID{
		strings.Repeat("0", 64):                               "60e05bd1b195af2f",
		strings.Repeat("f", 64):                               "df0790f236013511",
		strings.Repeat("00112233445566778899aabbccddeeff", 2): "2a8abfa8cb990629",
	} {
		parsed, err := chat.ParseToken(token)
		if err != nil {
			t.Errorf("ParseToken(%s): %v", token, err)
		}
		if got := parsed.Thread(); got != want {
			t.Errorf("thread of %s = %s, want %s", token, got, want)
		}
	}
}

// Ensures that only 64 lower-case hex digits are a token, and that no error
// repeats what was sent.
func TestParseToken_RefusesAnythingElse(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("a1", 32)
	for _, s := range []string{"", "a", good[1:], good + "0", strings.ToUpper(good), good[:63] + "g", good[:63] + " ", good[:62] + "é"} {
		_, err := chat.ParseToken(s)
		if chat.CodeOf(err) != chat.CodeBadToken {
			t.Errorf("ParseToken(%q) = %v, want bad_token", s, err)
		}
		if len(s) > 1 && err != nil && strings.Contains(err.Error(), s) {
			t.Errorf("the error repeats the token: %v", err)
		}
	}
}

// Ensures that a token cannot slip into a print or a log.
func TestToken_PrintsAsPlaceholder(t *testing.T) {
	t.Parallel()
	token := chat.Token(strings.Repeat("ab", 32))
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", token)
	for _, printed := range []string{fmt.Sprint(token), fmt.Sprintf("%v %s %q", token, token, token), log.String()} {
		if strings.Contains(printed, "abab") {
			t.Errorf("the token was printed: %s", printed)
		}
	}
}

// Ensures that only 16 lower-case hex digits are a thread id.
func TestParseThreadID(t *testing.T) {
	t.Parallel()
	if id, err := chat.ParseThreadID("60e05bd1b195af2f"); err != nil || id != "60e05bd1b195af2f" {
		t.Errorf("a thread id was refused: %v", err)
	}
	for _, s := range []string{"", "60E05BD1B195AF2F", "60e05bd1b195af2", "60e05bd1b195af2ff", "../../etc/passwd"} {
		if _, err := chat.ParseThreadID(s); chat.CodeOf(err) != chat.CodeBadRequest {
			t.Errorf("ParseThreadID(%q) = %v, want bad_request", s, err)
		}
	}
}
