package store

import (
	"context"
	"strconv"

	"github.com/newos4/relay/pkg/workspace"
)

// NewFile is a file whose bytes are stored and that is to enter the library.
// Name and MIMEType are clean already (section 9.5).
type NewFile struct {
	Name, MIMEType string
	Size           int64 // bytes
	Sender         workspace.Sender
	// SourcePath and Profile are set for files that an agent produced.
	SourcePath, Profile string
	// Path is where the bytes are, below the owner's folder; Digest is their
	// SHA-256 in hex.
	Path, Digest string
}

// Quota bounds the libraries, in bytes; 0 means no bound (section 9.5).
type Quota struct{ PerOwner, Total int64 }

// StoredFile is a file of the library with what never leaves the server of it.
type StoredFile struct {
	workspace.File
	// ItemID is the file's number, unique on the server and stable.
	ItemID int64
	// Path is where the bytes are, below the owner's folder.
	Path, Digest string
}

const fileColumns = `file.item_id, file.id, file.name, file.mime_type, file.size, file.created_at, file.sender, file.source_path, file.profile,
	file.conversation_id, file.message_id, file.path, file.digest`

// into returns where the columns of a file go.
func (f *StoredFile) into() []any {
	return []any{&f.ItemID, (*string)(&f.ID), &f.Name, &f.MIMEType, &f.Size, (*int64)(&f.CreatedAt), (*string)(&f.Sender), &f.SourcePath,
		&f.Profile, (*string)(&f.ConversationID), (*string)(&f.MessageID), &f.Path, &f.Digest}
}

func scanFile(r row) (StoredFile, error) {
	var f StoredFile
	err := r.Scan(f.into()...)
	return f, err
}

// AddFiles puts files into the library, all or none, in their order. More than
// the quota allows has the code [workspace.CodeQuotaExceeded].
func (s *Store) AddFiles(ctx context.Context, owner workspace.OwnerID, files []NewFile, quota Quota) (stored []StoredFile, err error) {
	err = s.write(ctx, owner, "adding files", func(t *tx) error {
		stored = make([]StoredFile, len(files))
		for i, f := range files {
			if stored[i], err = t.addFile(f); err != nil {
				return err
			}
		}
		return t.checkQuota(quota)
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

func (t *tx) addFile(in NewFile) (f StoredFile, err error) {
	f = StoredFile{Path: in.Path, Digest: in.Digest, File: workspace.File{
		ID:         workspace.FileID(t.newID()),
		Name:       in.Name,
		MIMEType:   in.MIMEType,
		Size:       in.Size,
		CreatedAt:  t.now,
		Sender:     in.Sender,
		SourcePath: in.SourcePath,
		Profile:    in.Profile,
	}}
	f.ItemID, err = t.insert(`INSERT INTO file (owner, id, name, name_key, mime_type, kind, size, created_at, sender, source_path, profile,
		conversation_id, message_id, path, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', ?, ?)`,
		t.owner, f.ID, f.Name, workspace.NameKey(f.Name), f.MIMEType, f.Kind(), f.Size, f.CreatedAt, f.Sender, f.SourcePath, f.Profile,
		f.Path, f.Digest)
	if err != nil {
		return f, err
	}
	return f, t.changed(workspace.FilesChanged(f.File))
}

func (t *tx) checkQuota(quota Quota) error {
	own, err := one(t.view, scalar[int64], `SELECT coalesce(sum(bytes), 0) FROM file_usage WHERE owner = ?`, t.owner)
	if err != nil {
		return err
	}
	total, err := one(t.view, scalar[int64], `SELECT coalesce(sum(bytes), 0) FROM file_usage`)
	if err != nil {
		return err
	}
	if quota.PerOwner > 0 && own > quota.PerOwner || quota.Total > 0 && total > quota.Total {
		return workspace.Fail(workspace.CodeQuotaExceeded)
	}
	return nil
}

// File returns a file by its id or by its number (section 3.7).
func (s *Store) File(ctx context.Context, owner workspace.OwnerID, ref string) (f StoredFile, err error) {
	err = s.peek(ctx, "reading a file", func(v view) error {
		if item, numeric := strconv.ParseInt(ref, 10, 64); numeric == nil {
			f, err = found(one(v, scanFile, `SELECT `+fileColumns+` FROM file WHERE item_id = ? AND owner = ?`, item, owner))
			return err
		}
		id, _ := workspace.ParseID[workspace.FileID](ref)
		f, err = found(one(v, scanFile, `SELECT `+fileColumns+` FROM file WHERE owner = ? AND id = ?`, owner, id))
		return err
	})
	return f, err
}

// FileStats returns how many files the owner's library has, and their bytes.
func (s *Store) FileStats(ctx context.Context, owner workspace.OwnerID) (files int, bytes int64, err error) {
	err = s.peek(ctx, "counting files", func(v view) error {
		return each(v, func(r row) error { return r.Scan(&files, &bytes) },
			`SELECT files, bytes FROM file_usage WHERE owner = ?`, owner)
	})
	return files, bytes, err
}

// HasPath reports whether a file of the owner has its bytes at the path, so that
// what nothing refers to can be removed from disk.
func (s *Store) HasPath(ctx context.Context, owner workspace.OwnerID, path string) (has bool, err error) {
	err = s.peek(ctx, "looking for a stored file", func(v view) error {
		has, err = one(v, scalar[bool], `SELECT EXISTS (SELECT 1 FROM file WHERE owner = ? AND path = ?)`, owner, path)
		return err
	})
	return has, err
}

// filesFor returns those of the files that the owner has, as a message of the
// chat shows them, and apart those that it is the first to link.
func (t *tx) filesFor(ids []workspace.FileID, c workspace.ConversationID, m workspace.MessageID) (map[workspace.FileID]workspace.File, []workspace.File, error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	stored, err := all(t.view, scanFile, `SELECT `+fileColumns+` FROM file
		WHERE owner = ? AND id IN (SELECT value FROM json_each(?))`, t.owner, encodeIDs(ids))
	owned := make(map[workspace.FileID]workspace.File, len(stored))
	var first []workspace.File
	for _, f := range stored {
		if f.MessageID == "" {
			f.ConversationID, f.MessageID = c, m
			first = append(first, f.File)
		}
		owned[f.ID] = f.File
	}
	return owned, first, err
}

// link stores which files a message carries. First are those whose row names the
// message, too: of several links of one file the first is shown.
func (t *tx) link(m workspace.Message, first []workspace.File) error {
	for i, f := range m.Attachments {
		_, err := t.exec(`INSERT INTO message_file (owner, message_id, ordinal, file_id) VALUES (?, ?, ?, ?)`, t.owner, m.ID, i, f.ID)
		if err != nil {
			return err
		}
	}
	for _, f := range first {
		_, err := t.exec(`UPDATE file SET conversation_id = ?, message_id = ? WHERE owner = ? AND id = ?`,
			f.ConversationID, f.MessageID, t.owner, f.ID)
		if err != nil {
			return err
		}
		if err := t.changed(workspace.FilesChanged(f)); err != nil {
			return err
		}
	}
	return nil
}
