package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/blob"
	"github.com/newos4/relay/pkg/workspace/store"
)

// How a client shall take a file.
const (
	asAttachment = "attachment"
	inline       = "inline"
)

// download answers GET /files/:id/download.
func (a *API) download(r *request) error { return a.serveFile(r, asAttachment) }

// preview answers GET /files/:id/preview. What a browser might execute is an
// attachment here too (section 9.6).
func (a *API) preview(r *request) error { return a.serveFile(r, inline) }

func (a *API) serveFile(r *request, disposition string) error {
	row, err := a.opts.Store.File(r.Context(), r.owner, r.PathValue("file"))
	if err != nil {
		return err
	}
	file, err := a.openFile(r.owner, row)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	r.extend(transferTime)
	setFileHeaders(r.w.Header(), row.File, disposition)
	piece, status, err := r.piece(row.Size)
	if err != nil {
		return err
	}
	return r.sendPiece(file, piece, status)
}

// openFile opens the bytes of a file, which must be as many as its row says.
func (a *API) openFile(owner workspace.OwnerID, row store.StoredFile) (*os.File, error) {
	file, err := a.opts.Files.Open(string(owner), row.Path)
	switch {
	case errors.Is(err, blob.ErrMissing):
		return nil, workspace.FailCause(workspace.CodeFileMissing, err)
	case errors.Is(err, blob.ErrUnsafe):
		return nil, workspace.FailCause(workspace.CodeUnsafeUpload, err)
	case err != nil:
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != row.Size {
		err = workspace.Fail(workspace.CodeUnsafeUpload)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// setFileHeaders sets what every answer about a file has (sections 3.7 and 9.6).
func setFileHeaders(h http.Header, f workspace.File, disposition string) {
	kind := f.MIMEType
	if f.IsActive() {
		kind, disposition = workspace.NeutralMIMEType, asAttachment
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", dispositionOf(disposition, f.Name))
	h.Set("Accept-Ranges", "bytes")
	h.Set("Cache-Control", "private, no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// dispositionOf returns the header with the name as RFC 5987 writes it, and in
// plain ASCII for those who cannot read that.
func dispositionOf(disposition, name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	return disposition + `; filename="` + plain + `"; filename*=UTF-8''` + extValue(name)
}

// extValue returns s in the form of a value that has its character set before it:
// only attr-char of RFC 5987 stays as it is.
func extValue(s string) string {
	const attrChar = "!#$&+-.^_`|~"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte(attrChar, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// piece returns what of a file the request asks for. Without a condition that
// could hold, If-Range asks for the whole file: it has no validator.
func (r *request) piece(size int64) (span, int, error) {
	ranges := r.Header.Values("Range")
	if len(ranges) == 0 || r.Method != http.MethodGet || r.Header.Get("If-Range") != "" {
		return span{0, size}, http.StatusOK, nil
	}
	piece, ok := parseRange(ranges[0], size)
	if !ok || len(ranges) > 1 {
		return span{}, 0, notInRange(r.w.Header(), size)
	}
	r.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", piece.start, piece.start+piece.length-1, size))
	return piece, http.StatusPartialContent, nil
}

// notInRange is the refusal of a range. The headers of the file are not those of
// the refusal.
func notInRange(h http.Header, size int64) error {
	h.Del("Content-Disposition")
	return &account.Refusal{
		Status: http.StatusRequestedRangeNotSatisfiable, Code: account.Code(workspace.CodeInvalidRange), Text: workspace.CodeInvalidRange.Text(),
		Header: map[string]string{"Content-Range": "bytes */" + strconv.FormatInt(size, 10)},
	}
}

// sendPiece sends a piece of a file. A client that leaves in the middle is no
// fault of the server.
func (r *request) sendPiece(file *os.File, piece span, status int) error {
	if _, err := file.Seek(piece.start, io.SeekStart); err != nil {
		return fmt.Errorf("seeking in a file: %w", err)
	}
	r.w.Header().Set("Content-Length", strconv.FormatInt(piece.length, 10))
	r.w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := io.CopyN(r.w, file, piece.length)
	if err != nil && r.Context().Err() == nil {
		return fmt.Errorf("sending a file: %w", err)
	}
	return nil
}
