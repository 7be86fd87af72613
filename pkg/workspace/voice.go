package workspace

import "github.com/go-json-experiment/json/jsontext"

// Voice is one voice of the duplex provider (section 2.15).
type Voice struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// DuplexVoice is the server's record of duplex voices, stored encrypted
// (section 2.15). Its JSON form is for storage: what clients may see of it is
// the HTTP side's business.
type DuplexVoice struct {
	Voices []Voice `json:"voices"`
	// CurrentVoiceID is empty or the id of one of the voices.
	CurrentVoiceID string `json:"currentVoiceId"`
	APIKey         string `json:"apiKey"`
	UpdatedAt      Millis `json:"updatedAt"`
}

// DuplexVoiceEdit is the body of a request that sets the duplex voices
// (section 3.9). An absent key keeps the old one.
type DuplexVoiceEdit struct {
	APIKey         Optional[string]  `json:"apiKey,omitzero"`
	Voices         Optional[[]Voice] `json:"voices,omitzero"`
	CurrentVoiceID Optional[string]  `json:"currentVoiceId,omitzero"`
}

// SpeechKind tells the settings of text-to-speech from those of speech-to-text.
type SpeechKind string

// The kinds of speech settings (section 2.15).
const (
	TTS SpeechKind = "tts"
	STT SpeechKind = "stt"
)

// SpeechSettings is the server's record of one kind of speech, stored encrypted
// (section 2.15). Its JSON form is for storage.
type SpeechSettings struct {
	ActiveProvider string                    `json:"activeProvider"`
	Providers      map[string]SpeechProvider `json:"providers"`
}

// SpeechProvider holds the settings and the secrets of one provider.
type SpeechProvider struct {
	Settings map[string]jsontext.Value `json:"settings"`
	Secrets  map[string]string         `json:"secrets"`
}

// SpeechEdit is the body of a request that sets one provider (section 3.9).
type SpeechEdit struct {
	Settings       Optional[map[string]jsontext.Value] `json:"settings,omitzero"`
	Secrets        Optional[map[string]string]         `json:"secrets,omitzero"`
	ActiveProvider Optional[string]                    `json:"activeProvider,omitzero"`
}

// StoredSecret stands for a stored secret wherever settings are shown; given
// back in an edit it keeps the stored one (section 3.9).
const StoredSecret = "[stored]"
