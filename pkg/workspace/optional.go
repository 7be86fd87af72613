package workspace

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Optional is a field of a request that may be absent, null or a value. Absent
// is not null, and neither is the default: an absent field of a patch leaves
// what is stored, and null is a fault unless the field's rule allows it.
//
// The zero value is absent. As a struct field it needs ",omitzero" to be left
// out when it is encoded.
type Optional[T any] struct {
	state optionalState
	value T
}

type optionalState uint8

const (
	absent optionalState = iota
	null
	given
)

// Some returns an Optional that holds v.
func Some[T any](v T) Optional[T] { return Optional[T]{state: given, value: v} }

// Null returns an Optional that was given as null.
func Null[T any]() Optional[T] { return Optional[T]{state: null} }

// Get returns the value and whether there is one.
func (o Optional[T]) Get() (T, bool) { return o.value, o.state == given }

// Or returns the value, or other when there is none.
func (o Optional[T]) Or(other T) T {
	if o.state == given {
		return o.value
	}
	return other
}

// IsZero reports whether the field is absent.
func (o Optional[T]) IsZero() bool { return o.state == absent }

// IsNull reports whether the field was given as null.
func (o Optional[T]) IsNull() bool { return o.state == null }

// Present reports whether the field was given, be it as null.
func (o Optional[T]) Present() bool { return o.state != absent }

// MarshalJSONTo writes the value, or null when there is none.
func (o Optional[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if o.state != given {
		return enc.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(enc, &o.value)
}

// UnmarshalJSONFrom reads null or a value, under the decoder's own options, so
// that strictness about unknown members reaches into it.
func (o *Optional[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		_, err := dec.ReadToken()
		*o = Null[T]()
		return err
	}
	var value T
	if err := json.UnmarshalDecode(dec, &value); err != nil {
		return err
	}
	*o = Some(value)
	return nil
}
