package main

import (
	"bytes"
	"net/http"
	"strings"
)

const corruptCode = "thread file is corrupt"

// corruptCases judge threads whose file is damaged (section 6).
func corruptCases() []testCase {
	var cases []testCase
	for name, damage := range damages() {
		cases = append(cases, testCase{
			name:  "corrupt/" + name,
			wants: "A corrupt thread is 500 with the code \"thread file is corrupt\" and stays as it is, byte for byte, section 6.",
			needs: needRoot,
			judge: func(t *trial) { t.wantCorrupt(damage) },
		})
	}
	cases = append(cases, testCase{
		name:  "corrupt/others-go-on",
		wants: "A corrupt thread does not touch another one, section 6.",
		needs: needRoot,
		judge: func(t *trial) {
			t.wantCorrupt(func(string, []byte) []byte { return nil })
			token := t.token()
			t.post(token, "hello")
			t.wantTexts(token, "hello")
		},
	}, testCase{
		name:  "corrupt/found-later",
		wants: "A thread that is damaged while the server knows it is corrupt from the next poll on, section 6.",
		needs: needRoot,
		judge: judgeDamagedLater,
	})
	return sorted(cases)
}

// damage makes the bytes of a corrupt file out of a sound one's.
type damage func(thread string, sound []byte) []byte

// damages returns ways to damage a file, by name.
func damages() map[string]damage {
	replaced := func(old, by string) damage {
		return func(_ string, sound []byte) []byte { return bytes.Replace(sound, []byte(old), []byte(by), 1) }
	}
	fixed := func(data string) damage {
		return func(string, []byte) []byte { return []byte(data) }
	}
	return map[string]damage{
		"empty":          fixed(""),
		"nul-bytes":      fixed(strings.Repeat("\x00", 4096)),
		"not-json":       fixed("hello\n"),
		"null":           fixed("null\n"),
		"array":          fixed("[]\n"),
		"no-members":     fixed("{}\n"),
		"half":           func(_ string, sound []byte) []byte { return sound[:len(sound)/2] },
		"trailing":       func(_ string, sound []byte) []byte { return append(bytes.TrimSpace(sound), '}') },
		"no-messages":    func(thread string, _ []byte) []byte { return []byte(`{"thread":"` + thread + `"}`) },
		"messages-null":  func(thread string, _ []byte) []byte { return []byte(`{"thread":"` + thread + `","messages":null}`) },
		"foreign-thread": func(thread string, sound []byte) []byte { return replaced(thread, "0123456789abcdef")(thread, sound) },
		"unknown-author": replaced(`"operator"`, `"root"`),
		"number-as-text": replaced(`"message 2"`, `2`),
		"invalid-utf-8":  replaced("message 2", "message \xff"),
		"equal-epochs":   withEpochs(0),
		"falling-epochs": withEpochs(-1),
	}
}

// withEpochs makes a thread whose second epoch is the first plus step.
func withEpochs(step int64) damage {
	return func(thread string, _ []byte) []byte {
		messages := conversation(2, "operator")
		messages[1].Epoch = messages[0].Epoch + step
		data, _ := encodeThread(thread, messages) // plain messages always encode
		return data
	}
}

// placeDamaged places a corrupt thread and returns its bytes.
func (t *trial) placeDamaged(r tree, thread string, d damage) []byte {
	sound, err := encodeThread(thread, conversation(3, "operator"))
	t.must(err)
	data := d(thread, sound)
	t.place(r, thread, data)
	return data
}

func (t *trial) wantCorrupt(d damage) {
	token := t.token()
	data := t.placeDamaged(t.tree(), threadOf(token), d)
	t.wantCorruptAnswers(token)
	t.unchanged(t.tree(), threadOf(token), data)
}

// wantCorruptAnswers checks all that a client can ask of a corrupt thread.
func (t *trial) wantCorruptAnswers(token string) {
	answers := []answer{
		t.do(t.pollCall(token, "")),
		t.do(t.pollCall(token, "since=1")),
		t.postBody(token, textBody("hello")),
		t.do(t.pollCall(token, "")),
	}
	for _, a := range answers {
		t.wantError(a, http.StatusInternalServerError, corruptCode)
		if bytes.Contains(a.body, []byte(".json")) {
			t.errorf("%s: the answer names a file: %s", a.asked, clip(a.body))
		}
	}
}

func judgeDamagedLater(t *trial) {
	token := t.token()
	t.post(token, "hello")
	t.poll(token, 0)
	data := t.placeDamaged(t.tree(), threadOf(token), damages()["half"])
	t.wantCorruptAnswers(token)
	t.unchanged(t.tree(), threadOf(token), data)
}
