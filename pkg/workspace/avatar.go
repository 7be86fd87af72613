package workspace

import (
	"encoding/base64"
	"hash/fnv"
	"regexp"
	"strings"
)

// The words of a drawn portrait (section 2.14). Only the first three shapes are
// ever derived.
const (
	avatarShapes      = "circle|square|triangle|ellipse|capsule|hexagon|cloud|droplet"
	avatarExpressions = "friendly|focused|curious|calm"
	avatarAnimals     = "fox|whale|owl|rabbit|bear"
	avatarPalette     = "009957|377fe6|d94b52|e78531|8057c8|0ea5c6|d84f8b|d8a729|01a492|e5634e"
	derivedShapes     = 3
	mascotPrefix      = legacyName + "-mascot:v1:"
)

var (
	drawnAvatar = regexp.MustCompile(`^(?:` + mascotPrefix + `(?:` + avatarShapes + `):[0-9A-Fa-f]{6}:(?:` + avatarExpressions + `)` +
		`|builtin:team-animal:(?:` + avatarAnimals + `))$`)
	pictureAvatar = regexp.MustCompile(`^data:image/(?:png|jpeg|webp);base64,`)
)

// ValidAvatar reports whether s is one of the accepted avatar strings, the
// empty one included (section 2.14).
func ValidAvatar(s string) bool {
	if s == "" || drawnAvatar.MatchString(s) {
		return true
	}
	// A data URL is ASCII, so that its bytes are its code points.
	if len(s) > MaxAvatar {
		return false
	}
	head := pictureAvatar.FindString(s)
	return head != "" && isBase64(s[len(head):])
}

// isBase64 reports whether s is base64 that is not empty, with or without
// padding. Line breaks are no part of it.
func isBase64(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" || len(s)-len(body) > 2 || strings.ContainsAny(body, "\r\n") {
		return false
	}
	_, err := base64.RawStdEncoding.DecodeString(body)
	return err == nil && (len(s) == len(body) || len(s)%4 == 0)
}

// DerivedAvatar returns the portrait of an agent without one. It depends on the
// id alone, so that renaming does not change it (section 2.14).
func DerivedAvatar(id AgentID) string {
	shapes := strings.Split(avatarShapes, "|")[:derivedShapes]
	return mascotPrefix + pick(shapes, id, "shape") +
		":" + pick(strings.Split(avatarPalette, "|"), id, "color") +
		":" + pick(strings.Split(avatarExpressions, "|"), id, "expression")
}

func pick(words []string, id AgentID, trait string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(id) + ":" + trait)) // a hash never fails
	return words[h.Sum32()%uint32(len(words))]
}

// Public returns the agent as clients see it: an empty avatar is replaced by
// the derived one (section 2.1).
func (a Agent) Public() Agent {
	if a.Avatar == "" {
		a.Avatar = DerivedAvatar(a.ID)
	}
	return a
}

// Public returns the conversation as clients see it: a direct chat without an
// avatar shows the portrait of its agent (section 2.1).
func (c Conversation) Public() Conversation {
	if c.Kind == Direct && c.Avatar == "" {
		c.Avatar = DerivedAvatar(c.AdministratorID)
	}
	return c
}
