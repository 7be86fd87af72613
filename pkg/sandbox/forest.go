package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// forest is all that is readable.
type forest struct {
	trees  []*tree
	limits Limits
}

// walk opens the directory at a location below a root.
func (f *forest) walk(at location) (*directory, error) {
	for _, t := range f.trees {
		if t.name == at.root {
			return t.walk(at.names)
		}
	}
	return nil, ErrNotReadable
}

// open opens a readable file that is not too large.
func (f *forest) open(dir *directory, name string) (file *os.File, size int64, err error) {
	file, info, err := dir.open(name)
	if err != nil {
		return nil, 0, err
	}
	if info.Size() > f.limits.FileSize {
		_ = file.Close()
		return nil, 0, ErrTooLarge
	}
	return file, info.Size(), nil
}

// serve does one request.
func (f *forest) serve(req request) response {
	resp := response{ID: req.ID}
	var err error
	switch req.Op {
	case opList:
		resp.Listing, err = f.list(req)
	case opRead:
		resp.Excerpt, err = f.read(req)
	case opSearch:
		resp.Matches, err = f.search(req)
	default:
		err = fmt.Errorf("%w: unknown operation", ErrInvalid)
	}
	if err != nil {
		return refusal(req.ID, err)
	}
	return resp
}

func refusal(id uint64, err error) response {
	for code, known := range refusals() {
		if !errors.Is(err, known) {
			continue
		}
		resp := response{ID: id, Code: code}
		if code == codeInvalid {
			resp.Detail = strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": ")
		}
		return resp
	}
	return response{ID: id, Code: codeNotReadable}
}
