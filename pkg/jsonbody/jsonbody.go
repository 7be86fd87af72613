// Package jsonbody reads the JSON bodies of the workspace contract strictly: a
// member that the schema does not know, that stands twice or that is null where a
// value belongs is an error, and an absent member can be told from all values.
//
// Reasons are in Chinese, because existing clients show them as they are
// (workspace contract, section 1.8).
package jsonbody

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Reasons why a member is not as the schema wants it.
const (
	Missing = "必填"
	Null    = "不能为 null"
	Unknown = "不支持的字段"
)

// maxField bounds how much of a name that a client made up is said back to it, in
// bytes.
const maxField = 100

// Violation says what is wrong with one member.
type Violation struct {
	// Field is the member's path with dots between its parts, or "body".
	Field string
	// Reason is a few words in Chinese.
	Reason string
}

// Violations is an error that lists what is wrong with a body.
type Violations []Violation

// Error lists the violations as `field: reason`, joined with `; ` (section 1.8).
func (v Violations) Error() string {
	pairs := make([]string, len(v))
	for i, violation := range v {
		pairs[i] = violation.Field + ": " + violation.Reason
	}
	return strings.Join(pairs, "; ")
}

// Err returns the list as an error, or nil if it is empty.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return v
}

// Add adds a violation.
func (v *Violations) Add(field, reason string) { *v = append(*v, Violation{field, reason}) }

// Require adds a violation if the member is absent.
func (v *Violations) Require(field string, set bool) {
	if !set {
		v.Add(field, Missing)
	}
}

// Optional is a member that may be absent but not null.
type Optional[T any] struct {
	Value T
	// Set reports that the member is there.
	Set bool
}

// errNull is what an Optional says of a null.
var errNull = errors.New("null is no value")

// UnmarshalJSONFrom reads a value that is not null.
func (o *Optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == jsontext.KindNull {
		return errNull
	}
	o.Set = true
	return json.UnmarshalDecode(d, &o.Value)
}

// IsJSON reports whether the body is one JSON value in valid UTF-8 without
// members that stand twice. An empty body counts as one.
func IsJSON(body []byte) bool { return isBlank(body) || jsontext.Value(body).IsValid() }

// Decode reads a body for which [IsJSON] holds into the struct that into points
// to. An empty body is an empty object. The error is of type [Violations].
func Decode(body []byte, into any) error {
	if isBlank(body) {
		return nil
	}
	if jsontext.Value(body).Kind() != jsontext.KindBeginObject {
		return Violations{{"body", expected(reflect.Struct)}}
	}
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(refuseNullText)))
	if err == nil {
		return nil
	}
	return Violations{violationOf(err)}
}

// refuseNullText keeps a null inside a list or an object from being read as an
// empty text.
func refuseNullText(d *jsontext.Decoder, _ *string) error {
	if d.PeekKind() == jsontext.KindNull {
		return errNull
	}
	return errors.ErrUnsupported // the usual way
}

func isBlank(body []byte) bool { return len(strings.Trim(string(body), " \t\r\n")) == 0 }

func violationOf(err error) Violation {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return Violation{"body", "不是有效的 JSON"}
	}
	v := Violation{Field: fieldOf(semantic.JSONPointer), Reason: "格式不正确"}
	switch {
	case errors.Is(err, json.ErrUnknownName):
		v.Reason = Unknown
	case errors.Is(err, errNull):
		v.Reason = Null
	case semantic.GoType != nil:
		v.Reason = expected(semantic.GoType.Kind())
	}
	return v
}

// fieldOf turns a pointer into a path with dots. A long one is cut at a whole
// character.
func fieldOf(pointer jsontext.Pointer) string {
	var parts []string
	for part := range pointer.Tokens() {
		parts = append(parts, part)
	}
	field := strings.Join(parts, ".")
	if field == "" {
		return "body"
	}
	if len(field) > maxField {
		return strings.ToValidUTF8(field[:maxField], "") + "…"
	}
	return field
}

// expected says what kind of value belongs there.
func expected(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "须为字符串"
	case reflect.Bool:
		return "须为布尔值"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "须为整数"
	case reflect.Float32, reflect.Float64:
		return "须为数字"
	case reflect.Slice, reflect.Array:
		return "须为数组"
	case reflect.Map, reflect.Struct:
		return "须为对象"
	default:
		return "格式不正确"
	}
}
