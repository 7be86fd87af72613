package chat_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/chat"
)

const id = chat.ThreadID("60e05bd1b195af2f")

// base is 2026-10-23 18:00:00 UTC, the epoch of the contract's example.
const base = int64(1792778400123)

func keep(messages int) chat.Retention {
	return chat.Retention{Messages: messages, MaxAge: 720 * time.Hour}
}

// thread returns a thread of n messages, a second apart from base on; those
// with an index in hermes are by Hermes.
func thread(t testing.TB, n int, hermes ...int) *chat.Thread {
	t.Helper()
	var th *chat.Thread
	for i := range n {
		author := chat.Operator
		for _, h := range hermes {
			if h == i {
				author = chat.Hermes
			}
		}
		th = mustAppend(t, th, chat.Message{ID: fmt.Sprintf("MSG-%d", i), Epoch: base + int64(i)*1000, Author: author, Text: fmt.Sprintf("text %d", i)}, 1<<20)
	}
	return th
}

func mustAppend(t testing.TB, th *chat.Thread, m chat.Message, messages int) *chat.Thread {
	t.Helper()
	next, err := th.Append(id, m, m.Epoch, keep(messages))
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Ensures that ts and id are of the epoch's UTC second, with the contract's own
// example put right (section 1).
func TestMessage_TSAndIDComeFromTheEpoch(t *testing.T) {
	t.Parallel()
	m := chat.Message{Epoch: base}
	if got, want := m.TS(), "2026-10-23T18:00:00+00:00"; got != want {
		t.Errorf("TS = %s, want %s", got, want)
	}
	got, err := chat.NewID(base, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^MSG-20261023-180000-[0-9a-f]{6}$`).MatchString(got) {
		t.Errorf("NewID = %s", got)
	}
}

// Ensures that length is counted in code points, that nothing is cut, and that
// text must be more than white space (section 3).
func TestCheckText(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a", "é", "e\u0301", "界", "😀", "\x00"} {
		perUnit := len([]rune(unit))
		if err := chat.CheckText(strings.Repeat(unit, 4000/perUnit), 4000); err != nil {
			t.Errorf("4000 code points of %q: %v", unit, err)
		}
		if err := chat.CheckText(strings.Repeat(unit, 4000/perUnit)+"x", 4000); chat.CodeOf(err) != chat.CodeTooLong {
			t.Errorf("4001 code points of %q: %v", unit, err)
		}
	}
	if err := chat.CheckText("👨‍👩‍👧‍👦", 7); err != nil {
		t.Errorf("a family is 7 code points: %v", err)
	}
	if err := chat.CheckText(strings.Repeat("x", 4007), 4000); err == nil || !strings.Contains(err.Error(), "7 more") {
		t.Errorf("the error does not say by how many: %v", err)
	}
	for _, text := range []string{"", " ", " \n\t", "\u3000\u00a0", "a\xff"} {
		if err := chat.CheckText(text, 4000); chat.CodeOf(err) != chat.CodeBadRequest {
			t.Errorf("CheckText(%q) = %v, want bad_request", text, err)
		}
	}
	if err := chat.CheckText("\ufffd", 4000); err != nil {
		t.Errorf("a replacement character that somebody typed was refused: %v", err)
	}
}

// Ensures that a browser can never write as hermes (section 3).
func TestParseKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"operator", "agent"} {
		if author, err := chat.ParseKind(kind); err != nil || string(author) != kind {
			t.Errorf("ParseKind(%q) = %v, %v", kind, author, err)
		}
	}
	for _, kind := range []string{"", "hermes", "Agent", "operator ", "system"} {
		if _, err := chat.ParseKind(kind); chat.CodeOf(err) != chat.CodeBadRequest {
			t.Errorf("ParseKind(%q) was accepted", kind)
		}
	}
}

// Ensures that what is encoded parses to the same thread, is recognised as
// canonical, and is JSON with the contract's members.
func TestParse_RoundTrip(t *testing.T) {
	t.Parallel()
	th := mustAppend(t, thread(t, 3, 1), chat.Message{ID: "MSG-x", Epoch: base + 99999, Author: chat.Agent, Text: "quote \" \\ \u2028 \x01 </script> 😀"}, 10)
	data := th.Encode()
	parsed, canonical, err := chat.Parse(id, data)
	if err != nil || !canonical {
		t.Fatalf("Parse = %v, canonical %v\n%s", err, canonical, data)
	}
	if diff := cmp.Diff(th.Messages(), parsed.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	var generic struct {
		Thread   string
		Messages []map[string]any
	}
	if err := json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	if m := generic.Messages[3]; m["text"] != "quote \" \\ \u2028 \x01 </script> 😀" || m["author"] != "agent" || len(m) != 5 {
		t.Errorf("message is %v", m)
	}
}

// Ensures that a file that another program wrote in its own style is read, and
// is rewritten in ours.
func TestParse_AcceptsForeignStyle(t *testing.T) {
	t.Parallel()
	data := []byte(`{
  "messages": [ {"text": "h\u00e9", "author": "operator", "ts": "2026-10-23 18:00:00", "epoch": 1792778400123, "id": "MSG-1", "kind": "operator"} ],
  "thread": "60e05bd1b195af2f", "version": 3 }`)
	th, canonical, err := chat.Parse(id, data)
	if err != nil || canonical {
		t.Fatalf("Parse = %v, canonical %v", err, canonical)
	}
	want := `{"thread":"60e05bd1b195af2f","messages":[{"id":"MSG-1","epoch":1792778400123,"ts":"2026-10-23T18:00:00+00:00","author":"operator","text":"hé"}]}` + "\n"
	if got := string(th.Encode()); got != want {
		t.Errorf("Encode:\n%s\nwant:\n%s", got, want)
	}
}

// Ensures that each way in which a file can be no sound thread is recognised
// (section 6).
func TestParse_RecognisesCorruption(t *testing.T) {
	t.Parallel()
	sound := string(thread(t, 2).Encode())
	for name, data := range map[string]string{
		"empty":             "",
		"half":              sound[:len(sound)/2],
		"zeros":             strings.Repeat("\x00", 4096),
		"no json":           "hello",
		"null":              "null",
		"list":              "[]",
		"no thread":         `{"messages":[]}`,
		"no messages":       `{"thread":"60e05bd1b195af2f"}`,
		"null messages":     `{"thread":"60e05bd1b195af2f","messages":null}`,
		"foreign id":        strings.Replace(sound, string(id), "df0790f236013511", 1),
		"unknown author":    strings.Replace(sound, `"operator"`, `"system"`, 1),
		"equal epochs":      strings.ReplaceAll(sound, fmt.Sprint(base+1000), fmt.Sprint(base)),
		"descending epochs": strings.ReplaceAll(sound, fmt.Sprint(base+1000), fmt.Sprint(base-1)),
		"epoch text":        strings.Replace(sound, fmt.Sprint(base), `"x"`, 1),
		"epoch fraction":    strings.Replace(sound, fmt.Sprint(base), "1.5", 1),
		"epoch zero":        strings.Replace(sound, fmt.Sprint(base), "0", 1),
		"epoch beyond":      strings.Replace(sound, fmt.Sprint(base+1000), "999999999999999", 1),
		"same id":           strings.Replace(sound, "MSG-1", "MSG-0", 1),
		"bad id":            strings.Replace(sound, "MSG-1", "a b", 1),
		"no text":           strings.Replace(sound, `,"text":"text 0"`, "", 1),
		"no ts":             strings.Replace(sound, `,"ts":"2026-10-23T18:00:00+00:00"`, "", 1),
		"null text":         strings.Replace(sound, `"text 0"`, "null", 1),
		"invalid utf-8":     strings.Replace(sound, "text 0", "text \xff", 1),
		"lone surrogate":    strings.Replace(sound, "text 0", `\ud83d`, 1),
		"duplicate member":  strings.Replace(sound, `"text":"text 0"`, `"text":"a","text":"b"`, 1),
		"trailing data":     sound + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if data == sound {
				t.Fatal("the case changes nothing")
			}
			if _, _, err := chat.Parse(id, []byte(data)); chat.CodeOf(err) != chat.CodeCorrupt {
				t.Errorf("Parse = %v, want corrupt", err)
			}
		})
	}
}

// Ensures that epochs strictly increase under every clock, and never fall
// behind a floor (section 4).
func TestThread_NextEpoch(t *testing.T) {
	t.Parallel()
	th := thread(t, 1)
	for name, test := range map[string]struct{ now, floor, want int64 }{
		"clock runs":       {base + 5, 0, base + 5},
		"same millisecond": {base, 0, base + 1},
		"clock back":       {base - 3600000, 0, base + 1},
		"floor ahead":      {base + 5, base + 9, base + 10},
	} {
		if got := th.NextEpoch(test.now, test.floor); got != test.want {
			t.Errorf("%s: NextEpoch = %d, want %d", name, got, test.want)
		}
	}
	if got := (*chat.Thread)(nil).NextEpoch(-5, 0); got != 1 {
		t.Errorf("a clock before 1970 gives %d, want 1", got)
	}
}

// Ensures that an append drops what is too old or too much, in the same step,
// and never the message itself (section 4).
func TestThread_AppendKeepsToTheRetention(t *testing.T) {
	t.Parallel()
	th := thread(t, 200)
	month := (720 * time.Hour).Milliseconds()
	for name, test := range map[string]struct {
		epoch int64
		limit int
		want  int
	}{
		"room":            {base + 300000, 300, 201},
		"full":            {base + 300000, 200, 200},
		"limit lowered":   {base + 300000, 10, 10},
		"limit one":       {base + 300000, 1, 1},
		"half too old":    {base + 100*1000 + month, 300, 101},
		"exactly a month": {base + month, 300, 201},
		"all too old":     {base + 10*month, 300, 1},
		"clock far back":  {base + 200000 - 10*month, 300, 201},
	} {
		m := chat.Message{ID: "MSG-new", Epoch: th.NextEpoch(test.epoch, 0), Author: chat.Operator, Text: "new"}
		next, err := th.Append(id, m, test.epoch, keep(test.limit))
		if err != nil {
			t.Fatal(err)
		}
		if next.Len() != test.want {
			t.Errorf("%s: %d messages, want %d", name, next.Len(), test.want)
		}
		if last, _ := next.Last(); last.ID != "MSG-new" {
			t.Errorf("%s: the newest message is %s", name, last.ID)
		}
		if _, canonical, err := chat.Parse(id, next.Encode()); err != nil || !canonical {
			t.Errorf("%s: the result does not parse: %v", name, err)
		}
		if th.Len() != 200 {
			t.Errorf("%s: the old thread was changed", name)
		}
	}
}

// Ensures that no append makes a thread that would then be called corrupt, behind
// the last epoch that a file may hold.
func TestThread_AppendRefusesWhatWouldNotParse(t *testing.T) {
	t.Parallel()
	const lastEpoch = 253402300799999 // 9999-12-31T23:59:59.999Z
	th := mustAppend(t, nil, chat.Message{ID: "MSG-1", Epoch: lastEpoch, Author: chat.Operator, Text: "x"}, 9)
	if _, _, err := chat.Parse(id, th.Encode()); err != nil {
		t.Fatal(err)
	}
	next := th.NextEpoch(base, 0)
	_, err := th.Append(id, chat.Message{ID: "MSG-2", Epoch: next, Author: chat.Operator, Text: "x"}, base, keep(9))
	if chat.CodeOf(err) != chat.CodeStorage {
		t.Errorf("Append at epoch %d = %v, want storage", next, err)
	}
}

// Ensures that a thread whose epochs lie in the future, after a clock that once
// jumped, ages from the time of its file and so can be collected.
func TestThread_ExcessAgesFutureEpochsByTheFile(t *testing.T) {
	t.Parallel()
	ahead := mustAppend(t, nil, chat.Message{ID: "a", Epoch: base + 400*24*3600*1000, Author: chat.Operator, Text: "x"}, 9)
	if !ahead.FromTheFuture(base) {
		t.Error("400 days ahead are not the future")
	}
	if drop, gone := ahead.Excess(base, base-1000, keep(9)); drop != 0 || gone {
		t.Errorf("a file of now was dropped: %d, %v", drop, gone)
	}
	written := base - (721 * time.Hour).Milliseconds()
	if drop, gone := ahead.Excess(base, written, keep(9)); drop != 1 || !gone {
		t.Errorf("a file of a month ago was kept: %d, %v", drop, gone)
	}
}

// Ensures that a thread without messages is removed once its file is too old.
func TestThread_ExcessOfAnEmptyThread(t *testing.T) {
	t.Parallel()
	empty, _, err := chat.Parse(id, []byte(`{"thread":"60e05bd1b195af2f","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	month := (720 * time.Hour).Milliseconds()
	for written, want := range map[int64]bool{base: false, base - month: false, base - month - 1: true} {
		if drop, gone := empty.Excess(base, written, keep(9)); drop != 0 || gone != want {
			t.Errorf("written %d ms ago: %d, gone %v, want %v", base-written, drop, gone, want)
		}
	}
}

// Ensures the semantics of since, truncated, cursor and awaiting (section 5).
func TestThread_Page(t *testing.T) {
	t.Parallel()
	th := thread(t, 120, 119)
	for name, test := range map[string]struct {
		since         int64
		first, last   int // -1: none
		truncated     bool
		cursorIsSince bool
	}{
		"newest":         {since: 0, first: 70, last: 119, truncated: true},
		"from the start": {since: 1, first: 0, last: 49, truncated: true},
		"after a cursor": {since: base + 49*1000, first: 50, last: 99, truncated: true},
		"the rest":       {since: base + 99*1000, first: 100, last: 119},
		"between":        {since: base + 118*1000 + 1, first: 119, last: 119},
		"tail":           {since: base + 119*1000, first: -1, cursorIsSince: true},
		"beyond":         {since: 1 << 60, first: -1, cursorIsSince: true},
	} {
		page, ok := th.Page(id, test.since, 50)
		if !ok {
			t.Fatalf("%s: a whole thread lacks bytes", name)
		}
		messages := page.Messages()
		if test.first < 0 {
			if len(messages) != 0 || !page.Empty() {
				t.Errorf("%s: %d messages, want none", name, len(messages))
			}
		} else if len(messages) != test.last-test.first+1 || messages[0].Text != fmt.Sprintf("text %d", test.first) {
			t.Errorf("%s: %d messages from %v", name, len(messages), messages[0])
		}
		wantCursor := test.since
		if !test.cursorIsSince {
			wantCursor = base + int64(test.last)*1000
		}
		if page.Cursor != wantCursor || page.Truncated != test.truncated || page.Awaiting {
			t.Errorf("%s: cursor %d (want %d), truncated %v, awaiting %v", name, page.Cursor, wantCursor, page.Truncated, page.Awaiting)
		}
	}
	if page, _ := thread(t, 51).Page(id, 1, 50); !page.Awaiting {
		t.Error("awaiting looks at the page and not at the thread")
	}
	if page, ok := (*chat.Thread)(nil).Page(id, 7, 50); !ok || page.Cursor != 7 || page.Awaiting || !page.Empty() {
		t.Errorf("an unknown thread gives %+v", page)
	}
}

// Ensures that the body of a poll has exactly the contract's members, also when
// there is no message (section 5).
func TestPage_AppendJSON(t *testing.T) {
	t.Parallel()
	page, _ := thread(t, 1).Page(id, 0, 50)
	want := `{"success":true,"thread":"60e05bd1b195af2f","messages":[{"id":"MSG-0","epoch":1792778400123,"ts":"2026-10-23T18:00:00+00:00","author":"operator","text":"text 0"}],"awaiting":true,"truncated":false,"cursor":1792778400123}`
	if got := string(page.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	empty, _ := (*chat.Thread)(nil).Page(id, 0, 50)
	want = `{"success":true,"thread":"60e05bd1b195af2f","messages":[],"awaiting":false,"truncated":false,"cursor":0}`
	if got := string(empty.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensures that a tail answers what its bytes allow, says when they do not, and
// becomes the whole thread again with the file's bytes.
func TestThread_TailAndRefill(t *testing.T) {
	t.Parallel()
	th := thread(t, 120)
	tail := th.Tail(50)
	for _, since := range []int64{0, base + 69*1000, base + 100*1000, 1 << 60} {
		want, _ := th.Page(id, since, 50)
		got, ok := tail.Page(id, since, 50)
		if !ok || !bytes.Equal(got.AppendJSON(nil), want.AppendJSON(nil)) {
			t.Errorf("since %d: the tail answers otherwise (ok %v)", since, ok)
		}
	}
	if _, ok := tail.Page(id, base+68*1000, 50); ok {
		t.Error("the tail answers with bytes that it does not hold")
	}
	if tail.Len() != 120 || tail.LastEpoch() != th.LastEpoch() || tail.Whole() || tail.Size() >= th.Size() {
		t.Errorf("the tail is %d messages, %d bytes", tail.Len(), tail.Size())
	}
	whole := tail.Refill(th.Encode())
	if !whole.Whole() || !bytes.Equal(whole.Encode(), th.Encode()) {
		t.Error("the refilled thread differs")
	}
}

// Ensures that what an inbox and a rate limiter ask of a thread is answered
// from its authors.
func TestThread_UnansweredAndPosts(t *testing.T) {
	t.Parallel()
	th := thread(t, 10, 2, 6)
	if n, since := th.Unanswered(); n != 3 || since != base+7*1000 {
		t.Errorf("Unanswered = %d, %d", n, since)
	}
	if got := th.PostsAfter(base + 4*1000); len(got) != 4 || got[0] != base+5*1000 {
		t.Errorf("PostsAfter = %v", got)
	}
	if !th.HasID("MSG-3") || th.HasID("MSG-33") || th.HasID("text 3") {
		t.Error("HasID is wrong")
	}
}

// Ensures that paging loses and repeats nothing, for any thread and page size,
// while messages keep coming.
func TestThread_PagingIsComplete(t *testing.T) {
	t.Parallel()
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for range 200 {
		var th *chat.Thread
		var seen []string
		limit, cursor, total := 1+r.IntN(7), int64(1), 1+r.IntN(60)
		for n := 0; n < total || len(seen) < total; {
			for range r.IntN(4) {
				if n < total {
					m := chat.Message{ID: fmt.Sprint("m", n), Epoch: th.NextEpoch(base+r.Int64N(50), 0), Author: chat.Operator, Text: "x"}
					th = mustAppend(t, th, m, 1000)
					n++
				}
			}
			page, _ := th.Page(id, cursor, limit)
			for _, m := range page.Messages() {
				seen = append(seen, m.ID)
			}
			if page.Cursor < cursor {
				t.Fatalf("the cursor went back from %d to %d", cursor, page.Cursor)
			}
			cursor = page.Cursor
		}
		for i, got := range seen {
			if got != fmt.Sprint("m", i) {
				t.Fatalf("message %d is %s; seen %v", i, got, seen)
			}
		}
	}
}

// Ensures that no input makes Parse panic, and that whatever it accepts
// survives a round trip.
func FuzzParse(f *testing.F) {
	f.Add(thread(f, 3).Encode())
	f.Add([]byte(`{"thread":"60e05bd1b195af2f","messages":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		th, canonical, err := chat.Parse(id, data)
		if err != nil {
			if chat.CodeOf(err) != chat.CodeCorrupt {
				t.Errorf("code %s", chat.CodeOf(err))
			}
			return
		}
		again, isCanonical, err := chat.Parse(id, th.Encode())
		if err != nil || !isCanonical {
			t.Fatalf("the encoding of an accepted thread is refused: %v", err)
		}
		if canonical != bytes.Equal(th.Encode(), data) {
			t.Error("canonical is wrong")
		}
		if diff := cmp.Diff(th.Messages(), again.Messages()); diff != "" {
			t.Errorf("messages differ:\n%s", diff)
		}
	})
}

// Ensures that since takes decimal digits within 64 bits and nothing else.
func FuzzParseSince(f *testing.F) {
	for _, s := range []string{"0", "1792778400123", "-1", "1.5", "1e3", " 1", "", "9223372036854775807", "9223372036854775808", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		since, err := chat.ParseSince(s)
		isNumber := regexp.MustCompile(`^[0-9]+$`).MatchString(s)
		if err == nil && (!isNumber || since < 0) {
			t.Errorf("ParseSince(%q) = %d", s, since)
		}
		if err != nil && isNumber && len(s) < 19 {
			t.Errorf("ParseSince(%q): %v", s, err)
		}
	})
}
