package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/crypto/argon2"
)

// Cost is what one password hash takes.
type Cost struct {
	// Memory is in KiB.
	Memory uint32
	// Passes is how often the memory is gone over.
	Passes uint32
}

// DefaultCost returns 19 MiB and three passes: one more than OWASP recommends at
// least, so that a hash takes no less memory and about as long as the scrypt that
// the contract names.
func DefaultCost() Cost { return Cost{Memory: 19 * 1024, Passes: 3} }

// Bounds of what a stored digest may ask for, so that a damaged row cannot take
// all memory.
const (
	maxMemory = 1 << 20 // KiB
	maxPasses = 64
)

const (
	saltSize = 16
	keySize  = 32
	// lanes is 1 because as many hashes run at once as there are cores anyway.
	lanes = 1
	// maxHashes bounds the hashes that run at once, and with them their memory.
	maxHashes = 4
	// maxWaiting bounds those that wait for their turn.
	maxWaiting = 64
)

// digestFormat is the PHC string of argon2id. It begins with the algorithm and
// its version, so that another can be told from it later.
const digestFormat = "$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s"

// digest is what a password is checked against.
type digest struct {
	cost Cost
	salt []byte
	key  []byte
}

// String returns the form in which the digest is stored.
func (d digest) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf(digestFormat, argon2.Version, d.cost.Memory, d.cost.Passes, lanes, b64.EncodeToString(d.salt), b64.EncodeToString(d.key))
}

// parseDigest reads what [digest.String] wrote, and nothing else: the digest has
// to be the same when it is written again.
func parseDigest(stored string) (digest, error) {
	var d digest
	var version, parallel int
	var encoded string
	_, err := fmt.Sscanf(stored, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &d.cost.Memory, &d.cost.Passes, &parallel, &encoded)
	if err != nil {
		return digest{}, errors.New("the stored password digest is of no known kind")
	}
	if d.cost.Memory > maxMemory || d.cost.Passes > maxPasses || d.cost.Passes == 0 {
		return digest{}, errors.New("the stored password digest asks for too much work, or none")
	}
	b64 := base64.RawStdEncoding
	const saltChars = (saltSize*8 + 5) / 6
	if len(encoded) <= saltChars {
		return digest{}, errors.New("the stored password digest is cut off")
	}
	d.salt, err = b64.DecodeString(encoded[:saltChars])
	if err == nil {
		d.key, err = b64.DecodeString(encoded[saltChars+1:])
	}
	if err != nil || len(d.key) != keySize || d.String() != stored {
		return digest{}, errors.New("the stored password digest is damaged")
	}
	return d, nil
}

// hasher derives keys from passwords, a bounded number at once.
type hasher struct {
	cost    Cost
	derive  func(password string, salt []byte, cost Cost) []byte
	running chan struct{}
	waiting chan struct{}
	// dummy stands in for the digest of a user that does not exist.
	dummy string
}

func newHasher(cost Cost) *hasher {
	h := &hasher{
		cost:    cost,
		derive:  argon2id,
		running: make(chan struct{}, min(runtime.GOMAXPROCS(0), maxHashes)),
		waiting: make(chan struct{}, maxWaiting),
	}
	// No password has a key of zeros, as far as anybody can tell.
	h.dummy = digest{cost: cost, salt: randomBytes(saltSize), key: make([]byte, keySize)}.String()
	return h
}

func argon2id(password string, salt []byte, cost Cost) []byte {
	return argon2.IDKey([]byte(password), salt, cost.Passes, cost.Memory, lanes, keySize)
}

// hash returns a fresh digest of the password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	d := digest{cost: h.cost, salt: randomBytes(saltSize)}
	var err error
	d.key, err = h.run(ctx, password, d)
	if err != nil {
		return "", err
	}
	return d.String(), nil
}

// matches reports whether the password has the stored digest. It takes the same
// time wherever they differ.
func (h *hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	d, err := parseDigest(stored)
	if err != nil {
		return false, err
	}
	key, err := h.run(ctx, password, d)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, d.key) == 1, nil
}

// isOutdated reports whether a fresh digest would have another cost.
func (h *hasher) isOutdated(stored string) bool {
	d, err := parseDigest(stored)
	return err != nil || d.cost != h.cost
}

// run derives the key when it is its turn. When too many wait already it refuses
// at once, because a client that is answered late has long asked again.
func (h *hasher) run(ctx context.Context, password string, d digest) ([]byte, error) {
	select {
	case h.waiting <- struct{}{}:
	default:
		return nil, &Error{Code: CodeThrottled, Message: "too many passwords are being checked", RetryAfter: time.Second}
	}
	defer func() { <-h.waiting }()
	select {
	case h.running <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to check a password: %w", context.Cause(ctx))
	}
	defer func() { <-h.running }()
	return h.derive(password, d.salt, d.cost), nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}
