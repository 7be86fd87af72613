package hermesapi

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/newos4/relay/pkg/autoreply"
)

// maxBody is how many bytes of a response are read. An answer has some
// thousands, the list of tools some ten thousands.
const maxBody = 1 << 20

// response is a whole response in memory.
type response struct {
	status int
	header http.Header
	body   []byte
}

// send sends one request and reads the response, whatever its status.
func (b *Backend) send(ctx context.Context, method, path string, header http.Header, body []byte) (*response, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, transportFailure(err)
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("Accept", "application/json")
	if b.key != "" {
		request.Header.Set("Authorization", "Bearer "+b.key)
	}
	got, err := b.client.Do(request)
	if err != nil {
		return nil, transportFailure(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(got.Body, maxBody+1))
	if err != nil {
		return nil, transportFailure(err)
	}
	if len(text) > maxBody {
		return nil, autoreply.Failf(autoreply.ReasonUnavailable, true, "the server sent more than %d bytes", maxBody)
	}
	return &response{status: got.StatusCode, header: got.Header, body: text}, nil
}
