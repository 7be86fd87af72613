package api

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

type libraryPage struct {
	Items []libraryFile `json:"items"`
	Total int           `json:"total"`
	// NextCursor is nil on the last page.
	NextCursor *string `json:"nextCursor"`
}

// library answers GET /files (section 3.7).
func (a *API) library(r *request) error {
	query := r.URL.Query()
	limit := r.queryInt("limit", workspace.FilePage)
	if limit < 1 {
		limit = workspace.FilePage
	}
	page, err := a.opts.Store.Library(r.Context(), r.owner, store.LibraryQuery{
		Search:         query.Get("search"),
		Profile:        query.Get("profile"),
		ConversationID: workspace.ConversationID(strings.ToLower(query.Get("session_id"))),
		Sender:         workspace.Sender(query.Get("sender")),
		Kind:           workspace.FileKind(query.Get("kind")),
		Cursor:         query.Get("cursor"),
		Limit:          int(min(limit, math.MaxInt32)),
	})
	if err != nil {
		return err
	}
	body := libraryPage{Items: make([]libraryFile, len(page.Files)), Total: page.Total, NextCursor: orNull(page.NextCursor)}
	for i, f := range page.Files {
		body.Items[i] = shownInLibrary(f)
	}
	return r.json(http.StatusOK, body)
}

type libraryStats struct {
	Count      int   `json:"count"`
	TotalBytes int64 `json:"totalBytes"`
}

// libraryStats answers GET /files/stats.
func (a *API) libraryStats(r *request) error {
	files, bytes, err := a.opts.Store.FileStats(r.Context(), r.owner)
	if err != nil {
		return err
	}
	return r.json(http.StatusOK, libraryStats{files, bytes})
}

// Words of the library that are the same for every file: all of them are here,
// and whole.
const (
	archiveReady = "ready"
	archived     = "archived"
)

// libraryFile is a file as the library shows it: the names are those that
// clients know from elsewhere, several of them for the same thing
// (section 2.12).
type libraryFile struct {
	ID               int64                     `json:"id"`
	ItemID           int64                     `json:"itemId"`
	Name             string                    `json:"name"`
	DisplayName      string                    `json:"displayName"`
	MIMEType         string                    `json:"mimeType"`
	ContentType      string                    `json:"contentType"`
	Size             int64                     `json:"size"`
	ByteCount        int64                     `json:"byteCount"`
	SizeBytes        int64                     `json:"sizeBytes"`
	Extension        string                    `json:"extension"`
	Kind             workspace.FileKind        `json:"kind"`
	Path             string                    `json:"path"`
	DownloadURL      string                    `json:"downloadUrl"`
	PreviewURL       string                    `json:"previewUrl"`
	ModifiedAt       workspace.Millis          `json:"modifiedAt"`
	FirstSeenAt      workspace.Millis          `json:"firstSeenAt"`
	LastSeenAt       workspace.Millis          `json:"lastSeenAt"`
	ArchivedAt       workspace.Millis          `json:"archivedAt"`
	MessageTimestamp workspace.Millis          `json:"messageTimestamp"`
	CreatedAt        string                    `json:"createdAt"`
	Exists           bool                      `json:"exists"`
	ArchiveStatus    string                    `json:"archiveStatus"`
	Availability     string                    `json:"availability"`
	Sender           workspace.Sender          `json:"sender"`
	Profile          string                    `json:"profile"`
	SourcePath       *string                   `json:"sourcePath"`
	ConversationID   *workspace.ConversationID `json:"conversationId"`
	MessageID        *workspace.MessageID      `json:"messageId"`
	SessionID        *workspace.ConversationID `json:"sessionId"`
	Origins          []fileOrigin              `json:"origins"`
}

// fileOrigin says where a file came from.
type fileOrigin struct {
	ID                      int64                     `json:"id"`
	SourceKind              string                    `json:"sourceKind"`
	EventKind               string                    `json:"eventKind"`
	Username                string                    `json:"username"`
	Profile                 string                    `json:"profile"`
	Agent                   string                    `json:"agent"`
	ContextType             string                    `json:"contextType"`
	SessionID               *workspace.ConversationID `json:"sessionId"`
	SessionTitle            string                    `json:"sessionTitle"`
	WorkspaceConversationID *workspace.ConversationID `json:"workspaceConversationId"`
	MessageID               *workspace.MessageID      `json:"messageId"`
	RunID                   string                    `json:"runId"`
	Workspace               string                    `json:"workspace"`
	OriginalPath            string                    `json:"originalPath"`
	ReferencePath           string                    `json:"referencePath"`
	ObservedAt              workspace.Millis          `json:"observedAt"`
	MessageTimestamp        workspace.Millis          `json:"messageTimestamp"`
	AuthorKind              workspace.Sender          `json:"authorKind"`
}

// orNull returns nil for what is empty, which clients see as null.
func orNull[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

func shownInLibrary(f store.LibraryFile) libraryFile {
	url := prefix + "/files/" + string(f.ID)
	return libraryFile{
		ID: f.ItemID, ItemID: f.ItemID,
		Name: f.Name, DisplayName: f.Name,
		MIMEType: f.MIMEType, ContentType: f.MIMEType,
		Size: f.Size, ByteCount: f.Size, SizeBytes: f.Size,
		Extension: f.Extension(), Kind: f.Kind(),
		Path: url + "/download", DownloadURL: url + "/download", PreviewURL: url + "/preview",
		ModifiedAt: f.CreatedAt, FirstSeenAt: f.CreatedAt, LastSeenAt: f.CreatedAt, ArchivedAt: f.CreatedAt,
		MessageTimestamp: f.CreatedAt,
		CreatedAt:        time.UnixMilli(int64(f.CreatedAt)).UTC().Format("2006-01-02T15:04:05.000Z"),
		Exists:           true, ArchiveStatus: archiveReady, Availability: archived,
		Sender: f.Sender, Profile: f.Profile, SourcePath: orNull(f.SourcePath),
		ConversationID: orNull(f.ConversationID), MessageID: orNull(f.MessageID), SessionID: orNull(f.ConversationID),
		Origins: []fileOrigin{originOf(f)},
	}
}

func originOf(f store.LibraryFile) fileOrigin {
	origin := fileOrigin{
		ID: f.ItemID, SourceKind: "upload", EventKind: "uploaded",
		Profile: f.Profile, Agent: f.Profile, ContextType: "session",
		SessionID: orNull(f.ConversationID), SessionTitle: f.ConversationName,
		WorkspaceConversationID: orNull(f.ConversationID), MessageID: orNull(f.MessageID),
		OriginalPath: f.SourcePath, ReferencePath: f.SourcePath,
		ObservedAt: f.CreatedAt, MessageTimestamp: f.CreatedAt, AuthorKind: f.Sender,
	}
	if f.Sender == workspace.SenderAgent {
		origin.SourceKind, origin.EventKind = "agent_generated", "generated"
	}
	return origin
}

// fileQuery is the body of a query for the files of messages. Ids of native
// messages are numbers, of which this server has none.
type fileQuery struct {
	MessageIDs workspace.Optional[[]jsontext.Value] `json:"messageIds"`
}

type messageFile struct {
	ItemID        int64               `json:"itemId"`
	MessageID     workspace.MessageID `json:"messageId"`
	Ordinal       int                 `json:"ordinal"`
	OriginalPath  string              `json:"originalPath"`
	ReferencePath string              `json:"referencePath"`
	Name          string              `json:"name"`
	Size          int64               `json:"size"`
	MIMEType      string              `json:"mimeType"`
	ArchiveStatus string              `json:"archiveStatus"`
	ArchivedAt    workspace.Millis    `json:"archivedAt"`
	Availability  string              `json:"availability"`
}

type messageFileList struct {
	Messages map[string][]messageFile `json:"messages"`
}

// messageFiles answers POST /message-files/query. A message without files is not
// in the answer.
func (a *API) messageFiles(r *request) error {
	var in fileQuery
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	asked, err := in.ids()
	if err != nil {
		return err
	}
	ids := make([]workspace.MessageID, len(asked))
	for i, word := range asked {
		ids[i] = workspace.MessageID(strings.ToLower(word))
	}
	found, err := a.opts.Store.MessageFiles(r.Context(), r.owner, ids)
	if err != nil {
		return err
	}
	list := messageFileList{Messages: make(map[string][]messageFile)}
	for i, word := range asked {
		if files := found[ids[i]]; len(files) > 0 {
			list.Messages[word] = shownForMessage(ids[i], files)
		}
	}
	return r.json(http.StatusOK, list)
}

// ids returns the ids as the client wrote them.
func (q fileQuery) ids() ([]string, error) {
	values, err := required("messageIds", q.MessageIDs)
	if err != nil {
		return nil, err
	}
	if len(values) > workspace.MaxFileQuery {
		return nil, workspace.Invalid(workspace.FieldError{Field: "messageIds", Reason: "不能超过 500 项"})
	}
	ids := make([]string, 0, len(values))
	for i, v := range values {
		switch v.Kind() {
		case jsontext.KindNumber:
			ids = append(ids, string(v))
		case jsontext.KindString:
			text, err := jsontext.AppendUnquote(nil, v)
			if err != nil {
				return nil, workspace.FailCause(workspace.CodeInvalidRequest, err)
			}
			ids = append(ids, string(text))
		default:
			return nil, workspace.Invalid(workspace.FieldError{Field: "messageIds." + strconv.Itoa(i), Reason: "须为字符串或数字"})
		}
	}
	return ids, nil
}

func shownForMessage(id workspace.MessageID, files []store.StoredFile) []messageFile {
	shown := make([]messageFile, len(files))
	for i, f := range files {
		shown[i] = messageFile{
			ItemID: f.ItemID, MessageID: id, Ordinal: i, OriginalPath: f.SourcePath, ReferencePath: f.SourcePath,
			Name: f.Name, Size: f.Size, MIMEType: f.MIMEType,
			ArchiveStatus: archiveReady, ArchivedAt: f.CreatedAt, Availability: archived,
		}
	}
	return shown
}
