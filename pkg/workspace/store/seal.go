package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/workspace"
)

// errUnsealed says that a secret is not what was stored: the key is another one,
// or the row was changed or moved.
var errUnsealed = errors.New("the secret does not belong to this key and place\nhint: put the key file back that belongs to this database")

// place is where a secret is stored. It is sealed in with the secret, so that a
// row that was moved does not open (section 9.2).
type place struct {
	owner    workspace.OwnerID
	kind, id string
}

// additional returns the place as bytes that no other place has: none of its
// parts holds a NUL.
func (p place) additional() []byte {
	return []byte(strings.Join([]string{string(p.owner), p.kind, p.id}, "\x00"))
}

// sealer encrypts secrets with AES-256-GCM.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

// seal returns the value as JSON, encrypted under a fresh nonce that stands
// before it.
func (s sealer) seal(at place, value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a secret: %w", err)
	}
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return s.aead.Seal(nonce, nonce, plain, at.additional()), nil
}

// unseal reads what seal returned for the same place into value.
func (s sealer) unseal(at place, sealed []byte, value any) error {
	size := s.aead.NonceSize()
	if len(sealed) < size {
		return errUnsealed
	}
	plain, err := s.aead.Open(nil, sealed[:size], sealed[size:], at.additional())
	if err != nil {
		return errUnsealed
	}
	return json.Unmarshal(plain, value)
}

// putSecret stores the value encrypted.
func (t *tx) putSecret(at place, value any) error {
	sealed, err := t.store.sealer.seal(at, value)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO secret (owner, kind, id, sealed) VALUES (?, ?, ?, ?)
		ON CONFLICT (owner, kind, id) DO UPDATE SET sealed = excluded.sealed`, at.owner, at.kind, at.id, sealed)
	return err
}

func (t *tx) dropSecret(at place) error {
	_, err := t.exec(`DELETE FROM secret WHERE owner = ? AND kind = ? AND id = ?`, at.owner, at.kind, at.id)
	return err
}

// secret reads a stored secret into value. If there is none, the value stays.
func (s *Store) secret(v view, at place, value any) error {
	sealed, found, err := maybe(one(v, scalar[[]byte],
		`SELECT sealed FROM secret WHERE owner = ? AND kind = ? AND id = ?`, at.owner, at.kind, at.id))
	if err != nil || !found {
		return err
	}
	return s.sealer.unseal(at, sealed, value)
}
