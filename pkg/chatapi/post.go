package chatapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/ratelimit"
	"github.com/newos4/relay/pkg/storage"
)

// post answers POST of post.php. The order of its checks is the contract's
// (section 2).
func (a *API) post(e *exchange) error {
	id, err := authenticate(e.r)
	if err != nil {
		return err
	}
	e.thread = id
	data, err := a.readBody(e)
	if err != nil {
		return err
	}
	if err := checkContentType(e.r.Header); err != nil {
		return err
	}
	body, err := decodePost(data)
	if err != nil {
		return err
	}
	if err := chat.CheckText(body.text, a.limits.Load().Text); err != nil {
		return err
	}
	receipt, err := a.append(e, body)
	if err != nil {
		return err
	}
	a.warnOfThreads(receipt)
	e.reply(http.StatusCreated, func(dst []byte) []byte { return appendReceipt(dst, receipt) })
	return nil
}

// append stores the message if the windows have room for it. What is refused or
// fails costs nothing in them.
func (a *API) append(e *exchange, body postBody) (storage.Receipt, error) {
	a.recall(e.thread)
	posted, err := a.reserve(
		ratelimit.Claim{Window: WindowThread, Key: string(e.thread)},
		ratelimit.Claim{Window: WindowIP, Key: string(e.ip)},
	)
	if err != nil {
		return storage.Receipt{}, err
	}
	var started *ratelimit.Reservation
	receipt, err := a.store.Append(e.r.Context(), e.thread, storage.Post{
		Author: body.author,
		Text:   body.text,
		Create: true,
		// Of several posts that race to be the first, only one starts the thread.
		Admit: func() (err error) {
			started, err = a.reserve(ratelimit.Claim{Window: WindowIPThreads, Key: string(e.ip)})
			return err
		},
	})
	if err != nil {
		posted.Cancel()
		started.Cancel()
	}
	return receipt, err
}

func appendReceipt(dst []byte, r storage.Receipt) []byte {
	return fmt.Appendf(dst, `{"success":true,"id":"%s","epoch":%d,"ts":"%s","thread":"%s"}`,
		r.Message.ID, r.Message.Epoch, r.Message.TS(), r.Thread)
}

// readBody returns the request's body, of which it reads no more than one byte
// over the limit.
func (a *API) readBody(e *exchange) ([]byte, error) {
	limit := int64(a.limits.Load().Body)
	if e.r.ContentLength > limit {
		return nil, e.tooLarge(limit)
	}
	var body bytes.Buffer
	body.Grow(int(max(e.r.ContentLength, 0)) + bytes.MinRead)
	n, err := body.ReadFrom(io.LimitReader(e.r.Body, limit+1))
	if n > limit {
		return nil, e.tooLarge(limit)
	}
	if err != nil {
		e.closeConnection()
		return nil, chat.Errorf(chat.CodeBadRequest, "the body could not be read to its end")
	}
	return body.Bytes(), nil
}

// tooLarge refuses a body, and with it the connection: the rest of the body is
// not read.
func (e *exchange) tooLarge(limit int64) error {
	e.closeConnection()
	return chat.Errorf(chat.CodeTooLarge, "the body is larger than %d bytes", limit)
}

func checkContentType(h http.Header) error {
	types := h["Content-Type"]
	if len(h["Content-Encoding"]) > 0 {
		return chat.Errorf(chat.CodeBadRequest, "a Content-Encoding is not supported")
	}
	if len(types) == 0 {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" || len(types) > 1 {
		return chat.Errorf(chat.CodeBadRequest, "the Content-Type must be application/json")
	}
	return nil
}

// postBody is a decoded request.
type postBody struct {
	text   string
	author chat.Author
}

// decodePost reads the body of a post strictly (section 3): one JSON object of
// valid UTF-8 without duplicate members and with nothing behind it. Members
// that the contract does not know are skipped.
func decodePost(data []byte) (postBody, error) {
	if !utf8.Valid(data) {
		return postBody{}, chat.Errorf(chat.CodeBadRequest, "the body is not valid UTF-8")
	}
	d := jsontext.NewDecoder(bytes.NewReader(data))
	start, err := d.ReadToken()
	if err != nil {
		return postBody{}, badJSON(err)
	}
	if start.Kind() != jsontext.KindBeginObject {
		return postBody{}, chat.Errorf(chat.CodeBadRequest, "the body is not a JSON object")
	}
	body, hasText := postBody{author: chat.Operator}, false
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return postBody{}, badJSON(err)
		}
		switch name.String() {
		case "text":
			hasText = true
			body.text, err = readString(d, "text")
		case "kind":
			body.author, err = readKind(d)
		default:
			err = skipValue(d)
		}
		if err != nil {
			return postBody{}, err
		}
	}
	if err := readEnd(d); err != nil {
		return postBody{}, err
	}
	if !hasText {
		return postBody{}, chat.Errorf(chat.CodeBadRequest, "text is missing")
	}
	return body, nil
}

// readEnd reads the closing brace and makes sure that nothing follows it.
func readEnd(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return badJSON(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return chat.Errorf(chat.CodeBadRequest, "the body goes on behind the JSON object")
	}
	return nil
}

func readString(d *jsontext.Decoder, field string) (string, error) {
	value, err := d.ReadToken()
	if err != nil {
		return "", badJSON(err)
	}
	if value.Kind() != jsontext.KindString {
		return "", chat.Errorf(chat.CodeBadRequest, "%s must be a string", field)
	}
	return value.String(), nil
}

func readKind(d *jsontext.Decoder) (chat.Author, error) {
	kind, err := readString(d, "kind")
	if err != nil {
		return "", err
	}
	return chat.ParseKind(kind)
}

func skipValue(d *jsontext.Decoder) error {
	if err := d.SkipValue(); err != nil {
		return badJSON(err)
	}
	return nil
}

// badJSON says what is wrong with the body. The decoder's own words would quote
// it, which neither the answer nor the log may, so the place is told instead.
func badJSON(err error) error {
	syntactic, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return chat.Errorf(chat.CodeBadRequest, "the body is not JSON: it ends too early")
	}
	reason := "it is malformed, or holds half of a surrogate pair"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a member stands twice"
		if name := syntactic.JSONPointer.LastToken(); name == "text" || name == "kind" {
			reason = name + " stands twice"
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "it ends too early"
	}
	return chat.Errorf(chat.CodeBadRequest, "the body is not JSON: at byte %d %s", syntactic.ByteOffset, reason)
}

// reserve claims something in all of the windows, or refuses it with the one
// that waits longest (section 7).
func (a *API) reserve(claims ...ratelimit.Claim) (*ratelimit.Reservation, error) {
	reservation, full := a.limiter.Reserve(claims...)
	if full != nil {
		return nil, rateLimited(full)
	}
	return reservation, nil
}

// recall gives the limiter what the thread posted before this process started,
// so that a restart lifts no limit. An epoch ahead of the clock does not say
// when its message came; once this process has run for a whole window, it came
// before the window or was counted when it did.
func (a *API) recall(id chat.ThreadID) {
	if a.limiter.Known(WindowThread, string(id)) {
		return
	}
	now, span := a.opts.Now(), a.limiter.Span(WindowThread)
	epochs, err := a.store.PostsAfter(id, now.Add(-span).UnixMilli())
	if err != nil {
		return // the append that follows meets the same failure and reports it
	}
	ranAWindow := now.Sub(a.started) >= span
	times := make([]time.Time, 0, len(epochs))
	for _, epoch := range epochs {
		if at := time.UnixMilli(epoch); !at.After(now) || !ranAWindow {
			times = append(times, at)
		}
	}
	a.limiter.Seed(WindowThread, string(id), times)
}

// crowdedPercent is the share of the allowed threads from which on the operator
// is warned.
const crowdedPercent = 80

// IsCrowded reports whether so many of the allowed threads exist that the
// operator should know, while there is still room for new ones.
func IsCrowded(threads, limit int) bool { return threads*100 >= limit*crowdedPercent }

func (a *API) warnOfThreads(r storage.Receipt) {
	if limit := a.limits.Load().Threads; r.Created && IsCrowded(r.Threads, limit) {
		a.opts.Logger.Warn("most threads that the limit allows exist", "threads", r.Threads, "limit", limit)
	}
}
