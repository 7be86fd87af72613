package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/newos4/relay/pkg/workspace"
)

const (
	// portraitName begins the name of a portrait that is kept apart. No portrait
	// begins so.
	portraitName = "sha256:"
	// longPortrait is the length in bytes from which a portrait is kept apart.
	longPortrait = 256
)

// expanded is the SQL of a column with portraits: where it holds a name, the
// portrait of that name. %s is the table.
const expanded = `CASE WHEN substr(%[1]s.avatar, 1, 7) = 'sha256:'
	THEN (SELECT value FROM portrait WHERE portrait.owner = %[1]s.owner AND portrait.name = %[1]s.avatar)
	ELSE %[1]s.avatar END`

// Inside a write transaction agents and conversations hold portraits as they are
// stored: a long one by its name. It gets its name by intern when it comes in
// and becomes itself again by expand when it goes out.

// intern returns a portrait as it is stored.
func (t *tx) intern(portrait string) (string, error) {
	if len(portrait) < longPortrait {
		return portrait, nil
	}
	digest := sha256.Sum256([]byte(portrait))
	name := portraitName + hex.EncodeToString(digest[:])
	_, err := t.exec(`INSERT INTO portrait (owner, name, value) VALUES (?, ?, ?)
		ON CONFLICT (owner, name) DO NOTHING`, t.owner, name, portrait)
	return name, err
}

// expand returns a portrait that is stored as the given text.
func (v view) expand(owner workspace.OwnerID, stored string) (string, error) {
	if !strings.HasPrefix(stored, portraitName) {
		return stored, nil
	}
	return one(v, scalar[string], `SELECT value FROM portrait WHERE owner = ? AND name = ?`, owner, stored)
}
