package workspace

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// ParseMentions returns the members of roster that text mentions, in order of
// first appearance and without repetitions (section 5.3). What is quoted, code,
// a web address or a mail address mentions nobody. A broadcast mentions the
// whole roster in its own order.
func ParseMentions(text string, roster []RosterEntry) []AgentID {
	if !strings.Contains(text, "@") {
		return []AgentID{}
	}
	candidates := mentionables(roster)
	runes := []rune(maskUnspoken(norm.NFC.String(text)))
	var found []AgentID
	for i, r := range runes {
		if r == '@' && (i == 0 || !joinsMention(runes[i-1])) {
			found = append(found, match(runes[i+1:], candidates)...)
		}
	}
	return unique(found)
}

// mentionable is a word that may follow "@", without its case, and whom it
// means.
type mentionable struct {
	word []rune
	ids  []AgentID
}

// mentionables returns the names of the roster and the broadcast words, longest
// first.
func mentionables(roster []RosterEntry) []mentionable {
	everyone := make([]AgentID, len(roster))
	words := make([]mentionable, 0, len(roster)+len(broadcasts))
	for i, member := range roster {
		everyone[i] = member.ID
		if key := NameKey(member.Name); key != "" {
			words = append(words, mentionable{[]rune(key), []AgentID{member.ID}})
		}
	}
	for _, word := range broadcasts {
		words = append(words, mentionable{foldRunes(word), everyone})
	}
	slices.SortStableFunc(words, func(a, b mentionable) int { return cmp.Compare(len(b.word), len(a.word)) })
	return words
}

// match returns whom the text right after an "@" means: the longest word that
// stands there whole, or nobody.
func match(rest []rune, words []mentionable) []AgentID {
	for _, m := range words {
		if beginsWith(rest, m.word) && (len(rest) == len(m.word) || !continuesWord(rest[len(m.word)])) {
			return m.ids
		}
	}
	return nil
}

func beginsWith(text, word []rune) bool {
	if len(text) < len(word) {
		return false
	}
	for i, r := range word {
		if foldRune(text[i]) != r {
			return false
		}
	}
	return true
}

// joinsMention reports whether an "@" right after r is part of a longer word,
// an address or a path.
func joinsMention(r rune) bool {
	return continuesWord(r) || slices.Contains([]rune(".%+/@-"), r)
}

// continuesWord reports whether r would make a name before it a longer word.
// Chinese has no such boundary.
func continuesWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

// Mentions returns whom a user message in a conversation names: explicit, then
// whom the text mentions, without repetitions. In a direct chat mentions have
// no effect (section 5.4). An explicit id of a non-member is an error with code
// [CodeInvalidMentions].
func Mentions(c Conversation, members map[AgentID]Agent, explicit []AgentID, text string) ([]AgentID, error) {
	for _, id := range explicit {
		if !slices.Contains(c.MemberIDs, id) {
			return nil, Fail(CodeInvalidMentions)
		}
	}
	if c.Kind == Direct {
		return []AgentID{}, nil
	}
	return unique(slices.Concat(explicit, ParseMentions(text, Roster(c, members)))), nil
}

// Roster returns the members of a conversation with their present names, in
// display order. A member without an entry in members is left out.
func Roster(c Conversation, members map[AgentID]Agent) []RosterEntry {
	roster := make([]RosterEntry, 0, len(c.MemberIDs))
	for _, id := range c.MemberIDs {
		if agent, ok := members[id]; ok {
			roster = append(roster, RosterEntry{id, agent.Name})
		}
	}
	return roster
}
