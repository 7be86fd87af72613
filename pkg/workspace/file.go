package workspace

// Sender says who brought a file into the library.
type Sender string

// The senders of files (section 2.12).
const (
	SenderUser  Sender = "user"
	SenderAgent Sender = "agent"
)

// File is a file of the library as uploads and messages show it
// (section 2.12). Its path on disk and its digest are no part of it.
type File struct {
	ID        FileID `json:"id"`
	Name      string `json:"name"`
	MIMEType  string `json:"mimeType"`
	Size      int64  `json:"size"` // bytes
	CreatedAt Millis `json:"createdAt"`
	Sender    Sender `json:"sender"`
	// SourcePath is the path as it stood in the agent's reply.
	SourcePath     string         `json:"sourcePath,omitzero"`
	ConversationID ConversationID `json:"conversationId,omitzero"`
	// MessageID is the first message that the file was linked to.
	MessageID MessageID `json:"messageId,omitzero"`
	Profile   string    `json:"profile,omitzero"`
}

// FileKind is a file's rough kind, which follows from its MIME type
// (section 2.12).
type FileKind string

// The kinds of file.
const (
	KindImage FileKind = "image"
	KindVideo FileKind = "video"
	KindText  FileKind = "text"
	KindFile  FileKind = "file"
)
