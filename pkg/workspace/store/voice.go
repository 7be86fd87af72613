package store

import (
	"context"

	"github.com/newos4/relay/pkg/workspace"
)

// systemOwner owns the records of the whole server. No user's id equals it, since
// those are UUIDs (section 9.1).
const systemOwner workspace.OwnerID = "system"

// Where the voice records are.
func duplexPlace() place { return place{systemOwner, "voice", "duplex"} }
func speechPlace(kind workspace.SpeechKind) place {
	return place{systemOwner, "voice", string(kind)}
}

// DuplexVoice returns the server's record of duplex voices, with its key. It is
// empty before the first edit.
func (s *Store) DuplexVoice(ctx context.Context) (d workspace.DuplexVoice, err error) {
	err = s.peek(ctx, "reading the duplex voices", func(v view) error {
		d, err = s.duplex(v)
		return err
	})
	return d, err
}

func (s *Store) duplex(v view) (workspace.DuplexVoice, error) {
	d := workspace.DuplexVoice{Voices: []workspace.Voice{}}
	err := s.secret(v, duplexPlace(), &d)
	return d, err
}

// EditDuplexVoice sets the server's duplex voices (section 3.9).
func (s *Store) EditDuplexVoice(ctx context.Context, in workspace.DuplexVoiceEdit) (d workspace.DuplexVoice, err error) {
	err = s.maintain(ctx, "editing the duplex voices", func(t *tx) error {
		if d, err = s.duplex(t.view); err != nil {
			return err
		}
		if d, err = d.Edit(in, t.now); err != nil {
			return err
		}
		return t.putSecret(duplexPlace(), d)
	})
	return d, err
}

// SelectedVoice returns the duplex voices and the owner's own choice among them,
// which may be empty or gone: see [workspace.DuplexVoice.Chosen].
func (s *Store) SelectedVoice(ctx context.Context, owner workspace.OwnerID) (d workspace.DuplexVoice, own string, err error) {
	err = s.read(ctx, "reading the selected voice", func(v view) error {
		if d, err = s.duplex(v); err != nil {
			return err
		}
		own, _, err = maybe(one(v, scalar[string], `SELECT voice_id FROM selected_voice WHERE owner = ?`, owner))
		return err
	})
	return d, own, err
}

// SelectVoice stores the owner's own choice: one of the voices, or "" for the
// server's default (section 3.9).
func (s *Store) SelectVoice(ctx context.Context, owner workspace.OwnerID, id string) (d workspace.DuplexVoice, err error) {
	err = s.write(ctx, owner, "selecting a voice", func(t *tx) error {
		if d, err = s.duplex(t.view); err != nil {
			return err
		}
		if err := d.CheckChoice(id); err != nil {
			return err
		}
		_, err := t.exec(`INSERT INTO selected_voice (owner, voice_id) VALUES (?, ?)
			ON CONFLICT (owner) DO UPDATE SET voice_id = excluded.voice_id`, owner, id)
		return err
	})
	return d, err
}

// Speech returns the server's settings of one kind of speech, with their secrets.
func (s *Store) Speech(ctx context.Context, kind workspace.SpeechKind) (settings workspace.SpeechSettings, err error) {
	err = s.peek(ctx, "reading speech settings", func(v view) error {
		return s.secret(v, speechPlace(kind), &settings)
	})
	return settings, err
}

// EditSpeech changes the server's settings of one kind of speech by what edit
// makes of them. Edit is called inside the transaction and must not wait.
func (s *Store) EditSpeech(ctx context.Context, kind workspace.SpeechKind,
	edit func(workspace.SpeechSettings) (workspace.SpeechSettings, error)) (settings workspace.SpeechSettings, err error) {
	err = s.maintain(ctx, "editing speech settings", func(t *tx) error {
		if err := s.secret(t.view, speechPlace(kind), &settings); err != nil {
			return err
		}
		if settings, err = edit(settings); err != nil {
			return err
		}
		return t.putSecret(speechPlace(kind), settings)
	})
	return settings, err
}
