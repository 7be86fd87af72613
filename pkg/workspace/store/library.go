package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/newos4/relay/pkg/workspace"
)

// LibraryQuery chooses files of the library (section 3.7). Empty fields choose
// nothing.
type LibraryQuery struct {
	// Search is a part of the name, whatever its case.
	Search  string
	Profile string
	// ConversationID chooses files that any message of the chat carries.
	ConversationID workspace.ConversationID
	Sender         workspace.Sender
	Kind           workspace.FileKind
	// Cursor is the NextCursor of the page before, or empty.
	Cursor string
	// Limit is brought within 1 and 200.
	Limit int
}

// LibraryFile is a file with the name of the chat that it was first linked to.
type LibraryFile struct {
	StoredFile
	ConversationName string
}

// LibraryPage is a piece of the library, newest first.
type LibraryPage struct {
	Files []LibraryFile
	// Total is how many files the query chooses on all pages.
	Total int
	// NextCursor is empty on the last page.
	NextCursor string
}

// Library returns a page of the owner's library (section 3.7). A cursor that
// none of its answers gave has the code [workspace.CodeInvalidRequest].
func (s *Store) Library(ctx context.Context, owner workspace.OwnerID, q LibraryQuery) (page LibraryPage, err error) {
	where, args := q.conditions(owner)
	from, fromArgs, err := q.after()
	if err != nil {
		return page, err
	}
	limit := min(max(q.Limit, 1), workspace.MaxFilePage)
	err = s.read(ctx, "listing files", func(v view) error {
		if page.Total, err = one(v, scalar[int], `SELECT count(*) FROM file WHERE `+where, args...); err != nil {
			return err
		}
		page.Files, err = all(v, scanLibraryFile, `SELECT `+fileColumns+`, coalesce(conversation.name, '') FROM file
			LEFT JOIN conversation ON conversation.owner = file.owner AND conversation.id = file.conversation_id
			WHERE `+where+from+` ORDER BY file.created_at DESC, file.id LIMIT ?`, append(append(args, fromArgs...), limit+1)...)
		return err
	})
	if len(page.Files) > limit {
		page.Files = page.Files[:limit]
		last := page.Files[limit-1]
		page.NextCursor = fmt.Sprintf("%d_%s", last.CreatedAt, last.ID)
	}
	return page, err
}

func scanLibraryFile(r row) (LibraryFile, error) {
	var f LibraryFile
	err := r.Scan(append(f.into(), &f.ConversationName)...)
	return f, err
}

// conditions returns what a file must be, as SQL and its arguments. There are as
// many different texts as sets of fields, so that statements stay prepared.
func (q LibraryQuery) conditions(owner workspace.OwnerID) (string, []any) {
	where, args := "file.owner = ?", []any{owner}
	add := func(condition string, values ...any) {
		where += " AND " + condition
		args = append(args, values...)
	}
	if key := workspace.NameKey(q.Search); key != "" {
		add("instr(file.name_key, ?) > 0", key)
	}
	if q.Profile != "" {
		add("file.profile = ?", q.Profile)
	}
	if q.Sender != "" {
		add("file.sender = ?", q.Sender)
	}
	if q.Kind != "" {
		add("file.kind = ?", q.Kind)
	}
	if q.ConversationID != "" {
		add(`EXISTS (SELECT 1 FROM message_file AS link JOIN message ON message.owner = link.owner AND message.id = link.message_id
			WHERE link.owner = file.owner AND link.file_id = file.id AND message.conversation_id = ?)`, q.ConversationID)
	}
	return where, args
}

// after returns the condition that a file comes after the cursor.
func (q LibraryQuery) after() (string, []any, error) {
	if q.Cursor == "" {
		return "", nil, nil
	}
	at, text, _ := strings.Cut(q.Cursor, "_")
	created, err := strconv.ParseInt(at, 10, 64)
	id, ok := workspace.ParseID[workspace.FileID](text)
	if err != nil || !ok {
		return "", nil, workspace.Invalid(workspace.FieldError{Field: "cursor", Reason: "取值无效"})
	}
	return " AND (file.created_at < ? OR file.created_at = ? AND file.id > ?)", []any{created, created, id}, nil
}

// MessageFiles returns the files that each of the messages carries, in their
// order. Messages without files, and messages of somebody else, are not in it.
func (s *Store) MessageFiles(ctx context.Context, owner workspace.OwnerID, ids []workspace.MessageID) (files map[workspace.MessageID][]StoredFile, err error) {
	files = make(map[workspace.MessageID][]StoredFile)
	err = s.peek(ctx, "reading the files of messages", func(v view) error {
		return each(v, func(r row) error {
			var message workspace.MessageID
			var f StoredFile
			if err := r.Scan(append(f.into(), (*string)(&message))...); err != nil {
				return err
			}
			files[message] = append(files[message], f)
			return nil
		}, `SELECT `+fileColumns+`, link.message_id FROM message_file AS link
			JOIN file ON file.owner = link.owner AND file.id = link.file_id
			WHERE link.owner = ? AND link.message_id IN (SELECT value FROM json_each(?)) ORDER BY link.message_id, link.ordinal`,
			owner, encodeIDs(parsed(ids)))
	})
	return files, err
}
