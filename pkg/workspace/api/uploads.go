package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/blob"
	"github.com/newos4/relay/pkg/workspace/store"
)

const (
	// framing is how many bytes of an upload may be no file: boundaries, headers
	// of parts, other fields.
	framing = 1 << 20
	// copyPiece is how many bytes of an upload are taken at a time.
	copyPiece = 64 << 10
)

type fileList struct {
	Files []workspace.File `json:"files"`
}

// upload answers POST /uploads (section 3.7). Bytes go to disk as they come; a
// request that is refused leaves nothing there (section 9.5).
func (a *API) upload(r *request) error {
	parts, end, err := r.parts()
	if err != nil {
		return err
	}
	_, used, err := a.opts.Store.FileStats(r.Context(), r.owner)
	if err != nil {
		return err
	}
	r.extend(transferTime)
	u := &uploading{api: a, request: r, end: end, held: a.usage.reserve(r.owner, used, a.opts.Quota), piece: make([]byte, copyPiece)}
	defer u.held.release()
	defer u.discard()
	if err := u.receive(parts); err != nil {
		return err
	}
	files, err := u.keep()
	if err != nil {
		return err
	}
	return r.json(http.StatusCreated, fileList{files})
}

// parts returns the reader of a multipart body whose size is bounded, and what
// knows whether the body came to its end.
func (r *request) parts() (*multipart.Reader, *ending, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, nil, workspace.Fail(workspace.CodeContentType)
	}
	const most = workspace.MaxUploadBytes + framing
	if r.ContentLength > most {
		return nil, nil, workspace.Fail(workspace.CodeUploadTooLarge)
	}
	end := newEnding(http.MaxBytesReader(r.w, r.Body, most), params["boundary"])
	return multipart.NewReader(end, params["boundary"]), end, nil
}

// ending is a multipart body that knows whether its last boundary has come. The
// reader of parts takes a body that was cut off between two parts, or in the
// header of one, for a whole one.
type ending struct {
	body io.Reader
	mark []byte
	// tail is what was read last and may be the beginning of the mark.
	tail []byte
	seen bool
}

func newEnding(body io.Reader, boundary string) *ending {
	return &ending{body: body, mark: []byte("--" + boundary + "--")}
}

// Read reads on and looks for the last boundary.
func (e *ending) Read(p []byte) (int, error) {
	n, err := e.body.Read(p)
	if !e.seen {
		window := append(e.tail, p[:n]...)
		e.seen = bytes.Contains(window, e.mark)
		e.tail = append(e.tail[:0], window[max(0, len(window)-len(e.mark)+1):]...)
	}
	return n, err
}

// uploading is one upload under way.
type uploading struct {
	api     *API
	request *request
	end     *ending
	held    *reservation
	piece   []byte
	// staged are the files so far, size their bytes together.
	staged []stagedFile
	size   int64
	kept   []string
}

type stagedFile struct {
	*blob.Staged

	name, mimeType string
}

// receive stages the files of all parts.
func (u *uploading) receive(parts *multipart.Reader) error {
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) && u.end.seen {
			break
		}
		if err != nil {
			return malformed(err)
		}
		if n >= workspace.MaxUploadParts {
			return workspace.Fail(workspace.CodeTooManyParts)
		}
		if part.FileName() == "" {
			continue // a field, or a file input without a file
		}
		if err := u.file(part); err != nil {
			return err
		}
	}
	if len(u.staged) == 0 {
		return workspace.Fail(workspace.CodeMissingFiles)
	}
	return nil
}

// malformed is the refusal of a body that is not what its type says, or is too
// long.
func malformed(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return workspace.Fail(workspace.CodeUploadTooLarge)
	}
	return workspace.FailCause(workspace.CodeInvalidUpload, err)
}

// file stages one file.
func (u *uploading) file(part *multipart.Part) error {
	if len(u.staged) >= workspace.MaxFiles {
		return workspace.Fail(workspace.CodeTooManyUploads)
	}
	staged, err := u.api.opts.Files.Stage(newName())
	if err != nil {
		return err
	}
	u.staged = append(u.staged, stagedFile{
		Staged: staged, name: workspace.CleanFileName(part.FileName()),
		mimeType: workspace.CleanMIMEType(part.Header.Get("Content-Type")),
	})
	return u.copy(staged, part)
}

// copy takes the bytes of a file, and stops at the first limit that they pass.
func (u *uploading) copy(to *blob.Staged, part io.Reader) error {
	for {
		n, err := part.Read(u.piece)
		u.size += int64(n)
		switch {
		case to.Size()+int64(n) > workspace.MaxFileBytes:
			return workspace.Fail(workspace.CodeFileTooLarge)
		case u.size > workspace.MaxUploadBytes:
			return workspace.Fail(workspace.CodeUploadTooLarge)
		}
		if err := u.held.take(int64(n)); err != nil {
			return err
		}
		if _, err := to.Write(u.piece[:n]); err != nil {
			return fmt.Errorf("writing an upload: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
	}
}

// keep makes the files durable and puts them into the library, all or none.
func (u *uploading) keep() ([]workspace.File, error) {
	rows := make([]store.NewFile, len(u.staged))
	for i, f := range u.staged {
		name := newName()
		rows[i] = store.NewFile{
			Name: f.name, MIMEType: f.mimeType, Size: f.Size(), Sender: workspace.SenderUser, Path: name, Digest: f.Digest(),
		}
		u.kept = append(u.kept, name)
		if err := f.Keep(string(u.request.owner), name); err != nil {
			return nil, err
		}
	}
	stored, err := u.api.opts.Store.AddFiles(u.request.Context(), u.request.owner, rows, u.api.opts.Quota)
	if err != nil {
		return nil, err
	}
	u.kept = nil
	files := make([]workspace.File, len(stored))
	for i, f := range stored {
		files[i] = f.File
	}
	return files, nil
}

// discard removes what is on disk and in no library.
func (u *uploading) discard() {
	var failed error
	for _, f := range u.staged {
		failed = errors.Join(failed, f.Discard())
	}
	for _, name := range u.kept {
		failed = errors.Join(failed, u.api.opts.Files.Remove(string(u.request.owner), name))
	}
	if failed != nil {
		u.api.opts.Logger.Warn("an upload that was refused left bytes on disk", "error", failed)
	}
}
