package workspace

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The words of the known providers; the first of each needs no settings
// (section 3.9).
var (
	ttsProviders = []string{"edge", "openai", "custom", "mimo", "doubao"}
	sttProviders = []string{"browser", "openai", "custom", "doubao"}
)

// baseURLPresets is the setting that holds the base URLs that a provider's form
// offers.
const baseURLPresets = "baseUrlPresets"

// Providers returns the words of the known providers, the default one first.
func (k SpeechKind) Providers() []string {
	if k == STT {
		return slices.Clone(sttProviders)
	}
	return slices.Clone(ttsProviders)
}

// DefaultProvider returns the provider that needs no settings (section 3.9).
func (k SpeechKind) DefaultProvider() string { return k.Providers()[0] }

// Edit returns the record after an administrator's edit. An absent key keeps the
// old one (section 3.9).
func (d DuplexVoice) Edit(in DuplexVoiceEdit, now Millis) (DuplexVoice, error) {
	var f faults
	required(&f, "voices", in.Voices)
	required(&f, "currentVoiceId", in.CurrentVoiceID)
	edited := DuplexVoice{
		Voices:         checked(&f, "voices", present(in.Voices), voices).Or([]Voice{}),
		CurrentVoiceID: present(in.CurrentVoiceID).Or(""),
		APIKey:         checked(&f, "apiKey", in.APIKey, textOf(0, MaxSecret)).Or(d.APIKey),
		UpdatedAt:      now,
	}
	if edited.CurrentVoiceID != "" && !edited.has(edited.CurrentVoiceID) {
		f.add("currentVoiceId", reasonVoice)
	}
	if err := f.err(); err != nil {
		return DuplexVoice{}, err
	}
	return edited, nil
}

// CheckChoice returns an error unless a user may choose the voice: one of the
// voices, or "" for the server's default.
func (d DuplexVoice) CheckChoice(id string) error {
	if id != "" && !d.has(id) {
		return Invalid(FieldError{"currentVoiceId", reasonVoice})
	}
	return nil
}

// Chosen returns the voice of a user: the own choice while it exists, else the
// server's default (section 3.9).
func (d DuplexVoice) Chosen(own string) string {
	if own != "" && d.has(own) {
		return own
	}
	return d.CurrentVoiceID
}

func (d DuplexVoice) has(id string) bool {
	return slices.ContainsFunc(d.Voices, func(v Voice) bool { return v.ID == id })
}

func voices(f *faults, field string, given []Voice) []Voice {
	if len(given) > MaxVoices {
		f.add(field, tooMany(MaxVoices))
		return nil
	}
	seen := make(map[string]bool)
	for i, v := range given {
		at := field + "." + strconv.Itoa(i)
		textOf(1, MaxVoiceName)(f, at+".id", v.ID)
		textOf(1, MaxVoiceName)(f, at+".name", v.Name)
		if seen[v.ID] {
			f.add(at+".id", reasonTwice)
		}
		seen[v.ID] = true
	}
	return given
}

// Active returns the active provider, the default one when none was chosen.
func (s SpeechSettings) Active(kind SpeechKind) string {
	if s.ActiveProvider == "" {
		return kind.DefaultProvider()
	}
	return s.ActiveProvider
}

// Activate returns the settings with another active provider, which must be
// configured or be the default one (section 3.9).
func (s SpeechSettings) Activate(kind SpeechKind, provider string) (SpeechSettings, error) {
	if _, ok := s.Providers[provider]; !ok && provider != kind.DefaultProvider() {
		return s, Invalid(FieldError{"provider", reasonProvider})
	}
	s.ActiveProvider = provider
	return s, nil
}

// Set returns the settings after an edit of one provider: given settings and
// secrets are merged into the stored ones, and a secret given as
// [StoredSecret] stays (section 3.9). Settings that grow too large have the code
// [CodeSettingsTooLarge].
func (s SpeechSettings) Set(kind SpeechKind, provider string, in SpeechEdit) (SpeechSettings, error) {
	var f faults
	textOf(1, MaxProviderName)(&f, "provider", provider)
	settings, _ := value(&f, "settings", in.Settings)
	secrets := checked(&f, "secrets", in.Secrets, checkSecrets).Or(nil)
	active, activates := value(&f, "activeProvider", in.ActiveProvider)
	if err := f.err(); err != nil {
		return s, err
	}
	p := s.Providers[provider].clone()
	maps.Copy(p.Settings, settings)
	for name, secret := range secrets {
		if secret != StoredSecret {
			p.Secrets[name] = secret
		}
	}
	if err := p.checkSize(); err != nil {
		return s, err
	}
	s = s.with(provider, p)
	if activates {
		return s.Activate(kind, active)
	}
	return s, nil
}

func checkSecrets(f *faults, field string, secrets map[string]string) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		textOf(1, MaxProviderName)(f, field, name)
		textOf(0, MaxSecret)(f, field+"."+name, secrets[name])
	}
	return secrets
}

func (p SpeechProvider) clone() SpeechProvider {
	c := SpeechProvider{Settings: make(map[string]jsontext.Value), Secrets: make(map[string]string)}
	maps.Copy(c.Settings, p.Settings)
	maps.Copy(c.Secrets, p.Secrets)
	return c
}

func (p SpeechProvider) checkSize() error {
	text, err := json.Marshal(p.Settings)
	if err != nil {
		return FailCause(CodeInvalidRequest, err)
	}
	if len(text) > MaxSpeechSettingsBytes {
		return Fail(CodeSettingsTooLarge)
	}
	return nil
}

func (s SpeechSettings) with(provider string, p SpeechProvider) SpeechSettings {
	s.Providers = maps.Clone(s.Providers)
	if s.Providers == nil {
		s.Providers = make(map[string]SpeechProvider)
	}
	s.Providers[provider] = p
	return s
}

// Remove returns the settings without a provider. If it was active, the default
// one is from then on.
func (s SpeechSettings) Remove(kind SpeechKind, provider string) SpeechSettings {
	s.Providers = maps.Clone(s.Providers)
	delete(s.Providers, provider)
	if s.ActiveProvider == provider {
		s.ActiveProvider = kind.DefaultProvider()
	}
	return s
}

// RemoveSecret returns the settings without one secret of a provider.
func (s SpeechSettings) RemoveSecret(provider, name string) SpeechSettings {
	p, ok := s.Providers[provider]
	if !ok {
		return s
	}
	p = p.clone()
	delete(p.Secrets, name)
	return s.with(provider, p)
}

// RemoveBaseURL returns the settings without one of the base URLs that a
// provider's form offers.
func (s SpeechSettings) RemoveBaseURL(provider, baseURL string) SpeechSettings {
	p, ok := s.Providers[provider]
	if !ok {
		return s
	}
	var offered []string
	if err := json.Unmarshal(p.Settings[baseURLPresets], &offered); err != nil {
		return s
	}
	text, err := json.Marshal(without(offered, baseURL))
	if err != nil {
		return s
	}
	p = p.clone()
	p.Settings[baseURLPresets] = text
	return s.with(provider, p)
}

// Shown returns a provider's secrets as clients see them: their names alone.
func (p SpeechProvider) Shown() map[string]string {
	shown := make(map[string]string, len(p.Secrets))
	for name := range p.Secrets {
		shown[name] = StoredSecret
	}
	return shown
}
