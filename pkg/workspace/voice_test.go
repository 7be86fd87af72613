package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that voices are unique, at most 100, that the current one is one of
// them, and that an absent key keeps the old one (sections 2.15 and 3.9).
func TestEditDuplexVoice(t *testing.T) {
	t.Parallel()
	many := make([]workspace.Voice, 101)
	for i := range many {
		many[i] = workspace.Voice{ID: fmt.Sprint(i), Name: "n"}
	}
	old := workspace.DuplexVoice{APIKey: "key"}
	tests := map[string]struct {
		voices  []workspace.Voice
		current string
		want    workspace.Code
	}{
		"100 voices":      {many[:100], "99", ""},
		"101 voices":      {many, "", workspace.CodeInvalidRequest},
		"no voices":       {nil, "", ""},
		"unknown current": {many[:1], "7", workspace.CodeInvalidRequest},
		"twice":           {[]workspace.Voice{many[0], many[0]}, "", workspace.CodeInvalidRequest},
		"without id":      {[]workspace.Voice{{Name: "n"}}, "", workspace.CodeInvalidRequest},
		"long name":       {[]workspace.Voice{{ID: "1", Name: strings.Repeat("n", 201)}}, "", workspace.CodeInvalidRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := old.Edit(workspace.DuplexVoiceEdit{Voices: workspace.Some(tt.voices), CurrentVoiceID: workspace.Some(tt.current)}, now)
			wantCode(t, err, tt.want)
			if err == nil && (got.APIKey != "key" || got.UpdatedAt != now) {
				t.Errorf("edited: %+v", got)
			}
		})
	}
	_, err := old.Edit(workspace.DuplexVoiceEdit{}, now)
	wantCode(t, err, workspace.CodeInvalidRequest)
}

// Ensure that each user keeps an own voice while it exists (scenario 35).
func TestChosenVoice(t *testing.T) {
	t.Parallel()
	d := workspace.DuplexVoice{Voices: []workspace.Voice{{ID: "a"}, {ID: "b"}}, CurrentVoiceID: "a"}
	for own, want := range map[string]string{"": "a", "b": "b", "gone": "a"} {
		if got := d.Chosen(own); got != want {
			t.Errorf("chosen %q: %q, want %q", own, got, want)
		}
	}
	wantCode(t, d.CheckChoice("b"), "")
	wantCode(t, d.CheckChoice(""), "")
	wantCode(t, d.CheckChoice("c"), workspace.CodeInvalidRequest)
}

// Ensure that speech settings merge, that a shown secret given back stays, and
// that no secret is shown (section 3.9).
func TestSpeechSettings(t *testing.T) {
	t.Parallel()
	var empty workspace.SpeechSettings
	if got := []string{empty.Active(workspace.TTS), empty.Active(workspace.STT)}; !cmp.Equal(got, []string{"edge", "browser"}) {
		t.Errorf("default providers: %v", got)
	}
	first, err := empty.Set(workspace.TTS, "openai", workspace.SpeechEdit{
		Settings:       workspace.Some(map[string]jsontext.Value{"voice": []byte(`"x"`), "baseUrlPresets": []byte(`["u","v"]`)}),
		Secrets:        workspace.Some(map[string]string{"apiKey": "k", "other": "o"}),
		ActiveProvider: workspace.Some("openai"),
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.Set(workspace.TTS, "openai", workspace.SpeechEdit{
		Settings: workspace.Some(map[string]jsontext.Value{"speed": []byte("2")}),
		Secrets:  workspace.Some(map[string]string{"apiKey": workspace.StoredSecret, "other": "p"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"apiKey": "k", "other": "p"}
	if diff := cmp.Diff(want, second.Providers["openai"].Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if len(second.Providers["openai"].Settings) != 3 || first.Providers["openai"].Secrets["other"] != "o" {
		t.Errorf("settings were replaced, or the old record changed: %+v, %+v", second, first)
	}
	for name, shown := range second.Providers["openai"].Shown() {
		if shown != workspace.StoredSecret {
			t.Errorf("secret %s is shown", name)
		}
	}
	less := second.RemoveSecret("openai", "other").RemoveBaseURL("openai", "u")
	if got := less.Providers["openai"]; len(got.Secrets) != 1 || string(got.Settings["baseUrlPresets"]) != `["v"]` {
		t.Errorf("after the removals: %+v", got)
	}
	if gone := second.Remove(workspace.TTS, "openai"); gone.ActiveProvider != "edge" || len(gone.Providers) != 0 || len(second.Providers) != 1 {
		t.Errorf("after the provider's removal: %+v", gone)
	}
	if same := second.RemoveSecret("none", "x").RemoveBaseURL("none", "u"); !cmp.Equal(same, second) {
		t.Errorf("removals of an unknown provider: %+v", same)
	}
}

// Ensure that an unconfigured provider is not activated, and that settings have
// a bound (section 3.9).
func TestSpeechRefusals(t *testing.T) {
	t.Parallel()
	var empty workspace.SpeechSettings
	_, err := empty.Activate(workspace.STT, "openai")
	wantCode(t, err, workspace.CodeInvalidRequest)
	_, err = empty.Activate(workspace.STT, "browser")
	wantCode(t, err, "")
	large := jsontext.Value(`"` + strings.Repeat("x", workspace.MaxSpeechSettingsBytes) + `"`)
	_, err = empty.Set(workspace.TTS, "openai", workspace.SpeechEdit{Settings: workspace.Some(map[string]jsontext.Value{"a": large})})
	wantCode(t, err, workspace.CodeSettingsTooLarge)
	_, err = empty.Set(workspace.TTS, "openai", workspace.SpeechEdit{Secrets: workspace.Some(map[string]string{"k": strings.Repeat("x", 4097)})})
	wantCode(t, err, workspace.CodeInvalidRequest)
	_, err = empty.Set(workspace.TTS, "", workspace.SpeechEdit{})
	wantCode(t, err, workspace.CodeInvalidRequest)
}
