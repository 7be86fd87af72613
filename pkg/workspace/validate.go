package workspace

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/newos4/relay/pkg/jsonbody"
)

// Reasons why a field is refused, as users see them.
const (
	reasonEmpty    = "不能为空"
	reasonText     = "不是有效的文本"
	reasonAt       = "不能包含 @"
	reasonControl  = "不能包含控制字符"
	reasonReserved = "不能使用 all 或 所有人"
	reasonID       = "不是有效的编号"
	reasonChoice   = "取值无效"
	reasonAvatar   = "头像格式无效"
	reasonRounds   = "只能是 -1 或 1～100"
	reasonNegative = "不能小于 0"
	reasonPositive = "必须大于 0"
	reasonContent  = "内容和附件不能同时为空"
	reasonTwice    = "不能重复"
	reasonVoice    = "不是已设置的音色"
	reasonProvider = "该服务尚未设置"
)

// faults collects what is wrong with the fields of a request.
type faults []FieldError

func (f *faults) add(field, reason string) { *f = append(*f, FieldError{field, reason}) }

// err returns all faults as one error, or nil.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return Invalid(f...)
}

// value returns what was given in o. A null is a fault.
func value[T any](f *faults, field string, o Optional[T]) (T, bool) {
	if o.IsNull() {
		f.add(field, jsonbody.Null)
	}
	return o.Get()
}

// required is value for a field that must not be absent.
func required[T any](f *faults, field string, o Optional[T]) (T, bool) {
	if !o.Present() {
		f.add(field, jsonbody.Missing)
	}
	return value(f, field, o)
}

// checked returns o with its value replaced by what check makes of it. What is
// absent stays absent, and null is a fault.
func checked[T any](f *faults, field string, o Optional[T], check func(*faults, string, T) T) Optional[T] {
	v, ok := value(f, field, o)
	if !ok {
		return Optional[T]{}
	}
	return Some(check(f, field, v))
}

// textOf returns a check for text of at least low and at most high code points.
func textOf(low, high int) func(*faults, string, string) string {
	return func(f *faults, field, s string) string {
		n := utf8.RuneCountInString(s)
		switch {
		case !utf8.ValidString(s):
			f.add(field, reasonText)
		case n == 0 && low > 0:
			f.add(field, reasonEmpty)
		case n > high:
			f.add(field, tooLong(high))
		}
		return s
	}
}

func tooLong(limit int) string { return fmt.Sprintf("不能超过 %d 个字符", limit) }

func tooMany(limit int) string { return fmt.Sprintf("不能超过 %d 项", limit) }

func outside(low, high int) string { return fmt.Sprintf("数量应为 %d～%d", low, high) }

// trim removes white space at both ends as clients do, which count the byte
// order mark as such.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}

// plainName is the check of a name: trimmed, in Unicode's form C, 1 to
// [MaxName] code points, without "@" and control characters (sections 2.1, 5.2).
func plainName(f *faults, field, s string) string {
	s = norm.NFC.String(trim(s))
	if strings.ContainsRune(s, '@') {
		f.add(field, reasonAt)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		f.add(field, reasonControl)
	}
	return textOf(1, MaxName)(f, field, s)
}

// agentName is plainName without the words of a broadcast. Groups may bear
// them: nobody mentions a group.
func agentName(f *faults, field, s string) string {
	s = plainName(f, field, s)
	if isBroadcast(s) {
		f.add(field, reasonReserved)
	}
	return s
}

func avatar(f *faults, field, s string) string {
	switch {
	case utf8.RuneCountInString(s) > MaxAvatar:
		f.add(field, tooLong(MaxAvatar))
	case !ValidAvatar(s):
		f.add(field, reasonAvatar)
	}
	return s
}

// uuid is the check of an id. It returns it in lower case.
func uuid[ID ~string](f *faults, field string, id ID) ID {
	parsed, ok := ParseID[ID](string(id))
	if !ok {
		f.add(field, reasonID)
		return id
	}
	return parsed
}

// uuids returns a check for at most limit ids.
func uuids[ID ~string](limit int) func(*faults, string, []ID) []ID {
	return func(f *faults, field string, ids []ID) []ID {
		if len(ids) > limit {
			f.add(field, tooMany(limit))
			return nil
		}
		checked := make([]ID, len(ids))
		for i, id := range ids {
			checked[i] = uuid(f, field+"."+strconv.Itoa(i), id)
		}
		return checked
	}
}

// oneOf returns a check for one of the given words.
func oneOf[T comparable](words ...T) func(*faults, string, T) T {
	return func(f *faults, field string, v T) T {
		for _, word := range words {
			if v == word {
				return v
			}
		}
		f.add(field, reasonChoice)
		return v
	}
}

// anything is the check of a field whose type is all its rule.
func anything[T any](_ *faults, _ string, v T) T { return v }

func notNegative[T int64 | float64](f *faults, field string, v T) T {
	if v < 0 {
		f.add(field, reasonNegative)
	}
	return v
}
