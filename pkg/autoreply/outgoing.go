package autoreply

import (
	"regexp"
	"strings"
	"unicode"
)

// Outgoing is the rule for what may leave. It is made once and used for every
// answer.
type Outgoing struct {
	secrets []string // without white space, at least minSecret bytes

	links       *strings.Replacer
	tag, scheme *regexp.Regexp
	marked      []*regexp.Regexp
}

// minSecret is how long a configured secret must be to be looked for; shorter
// ones would be found in ordinary words.
const minSecret = 8

// NewOutgoing returns the rule. secrets are the configured keys, none of which
// may stand in an answer.
func NewOutgoing(secrets []string) *Outgoing {
	o := &Outgoing{
		// Markdown's links and images, inline and by reference, all need one of
		// these pairs; apart they are plain brackets around words.
		links: strings.NewReplacer("](", "] (", "]:", "] :"),
		// HTML's tags need a letter or a sign right behind the bracket.
		tag:    regexp.MustCompile(`<([A-Za-z/!?])`),
		scheme: regexp.MustCompile(`(?i)\b(javascript|vbscript|data)(:\S)`),
		marked: []*regexp.Regexp{
			regexp.MustCompile(`(^|[^0-9A-Fa-f])[0-9A-Fa-f]{64}([^0-9A-Fa-f]|$)`), // a token, the key to somebody's thread
			regexp.MustCompile(`(?i)-----BEGIN [A-Z ]*PRIVATE KEY`),
			regexp.MustCompile(`\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,})`),
			regexp.MustCompile(`(?i)relay-secret`), // how an operator marks what must not be told
		},
	}
	for _, secret := range secrets {
		if secret = squeeze(secret); len(secret) >= minSecret {
			o.secrets = append(o.secrets, secret)
		}
	}
	return o
}

// Clean returns an answer as plain text in which nothing is fetched, run or
// hidden by whoever displays it: links, images, HTML and dangerous schemes are
// broken up so that they are words, and characters that do not show are dropped,
// other than the joiners that writing needs. An answer that carries a secret is a [Failure] with
// [ReasonSecret]; one that is empty has [ReasonNoAnswer].
func (o *Outgoing) Clean(text string) (string, error) {
	text = strings.TrimSpace(dropInvisible(text))
	if text == "" {
		return "", Failf(ReasonNoAnswer, true, "the answer has no words")
	}
	if o.HoldsSecret(text) {
		return "", Failf(ReasonSecret, false, "the answer carries a token, a key or a marked secret")
	}
	text = o.links.Replace(text)
	text = o.tag.ReplaceAllString(text, "< $1")
	for o.scheme.MatchString(text) { // one match may end where the next begins
		text = o.scheme.ReplaceAllString(text, "$1 $2")
	}
	return text, nil
}

// HoldsSecret reports whether text carries a token, a configured key or a marked
// secret.
func (o *Outgoing) HoldsSecret(text string) bool {
	text = dropJoiners(text)
	for _, pattern := range o.marked {
		if pattern.MatchString(text) {
			return true
		}
	}
	squeezed := squeeze(text)
	for _, secret := range o.secrets {
		if strings.Contains(squeezed, secret) {
			return true
		}
	}
	return false
}

// squeeze drops white space, so that a secret that was broken up is found.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// dropJoiners drops what dropInvisible leaves and yet does not show, so that a
// secret that was broken up by it is found.
func dropJoiners(s string) string {
	return strings.Map(func(r rune) rune {
		if isJoiner(r) {
			return -1
		}
		return r
	}, s)
}

// isJoiner reports whether r does not show and yet writing needs it.
func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' || r == '\ufe0f' }

// dropInvisible drops controls other than line feed and tab, and whatever
// else does not show, other than the joiners and the selector that writing needs.
func dropInvisible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', isJoiner(r):
			return r
		case r == unicode.ReplacementChar, unicode.IsControl(r), unicode.Is(unicode.Cf, r),
			unicode.Is(unicode.Co, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r),
			unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}
