package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
)

// Send is a checked request that sends a message (section 3.3).
type Send struct {
	RequestID      RequestID
	ConversationID ConversationID
	// Content is the text as the client sent it; it is stored trimmed.
	Content    string
	MentionIDs []AgentID
	FileIDs    []FileID
}

// CheckSend returns the request with its defaults filled in and its ids in
// lower case. Blank content without a file is a fault (section 3.3).
func CheckSend(to ConversationID, in SendMessage) (Send, error) {
	var f faults
	required(&f, "requestId", in.RequestID)
	s := Send{
		ConversationID: to,
		RequestID:      checked(&f, "requestId", present(in.RequestID), uuid[RequestID]).Or(""),
		Content:        checked(&f, "content", in.Content, textOf(0, MaxContent)).Or(""),
		MentionIDs:     checked(&f, "mentionIds", in.MentionIDs, uuids[AgentID](MaxMentions)).Or(nil),
		FileIDs:        checked(&f, "fileIds", in.FileIDs, uuids[FileID](MaxFiles)).Or(nil),
	}
	if trim(s.Content) == "" && len(s.FileIDs) == 0 {
		f.add("content", reasonContent)
	}
	return s, f.err()
}

// Fingerprint returns what makes two sends with one request id the same send:
// a digest of the conversation, the content, the mentions and the files, after
// defaults (section 3.3). The order of the ids counts.
func (s Send) Fingerprint() string {
	h := sha256.New()
	hashText(h, string(s.ConversationID))
	hashText(h, s.Content)
	hashList(h, s.MentionIDs)
	hashList(h, s.FileIDs)
	return hex.EncodeToString(h.Sum(nil))
}

// hashText adds s behind its length, so that neighbours cannot be shifted into
// each other.
func hashText(h hash.Hash, s string) {
	_, _ = h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // a hash never fails
}

func hashList[ID ~string](h hash.Hash, ids []ID) {
	hashText(h, strconv.Itoa(len(ids)))
	for _, id := range ids {
		hashText(h, string(id))
	}
}

// CheckRepeat decides about a request id that was used before: nil when the
// send is the one of the stored fingerprint, whose run is the answer, else an
// error with code [CodeIdempotency].
func (s Send) CheckRepeat(stored string) error {
	if s.Fingerprint() != stored {
		return Fail(CodeIdempotency)
	}
	return nil
}

// Arrival is what a send meets: the conversation as it is, its members, the
// files that belong to the owner, and the ids and the time to give.
type Arrival struct {
	Conversation Conversation
	Members      map[AgentID]Agent
	Files        map[FileID]File
	MessageID    MessageID
	RunID        RunID
	Now          Millis
}

// Admission is what a send stores: the user's message, the conversation after
// it, its run, and the turns of depth 0 that become tasks.
type Admission struct {
	Conversation Conversation
	Message      Message
	Run          Run
	Turns        []Turn
}

// Admit returns what a send stores (sections 3.3 and 6.5). An archived chat, a
// mention of a non-member and a file that does not belong to the owner are
// errors, looked for in this order. A chat that is busy is none.
func Admit(s Send, at Arrival) (Admission, error) {
	c := at.Conversation
	if c.Archived {
		return Admission{}, Fail(CodeArchived)
	}
	mentions, err := Mentions(c, at.Members, s.MentionIDs, s.Content)
	if err != nil {
		return Admission{}, err
	}
	files, err := attached(s.FileIDs, at.Files)
	if err != nil {
		return Admission{}, err
	}
	c, message := c.Append(Message{
		ID:             at.MessageID,
		ConversationID: c.ID,
		Role:           RoleUser,
		Content:        trim(s.Content),
		RunID:          at.RunID,
		Status:         MessageComplete,
		Attachments:    files,
		Tools:          []Tool{},
		CreatedAt:      at.Now,
	})
	run := Run{
		ID:             at.RunID,
		ConversationID: c.ID,
		MessageID:      message.ID,
		MentionIDs:     mentions,
		Status:         RunQueued,
		CreatedAt:      at.Now,
		UpdatedAt:      at.Now,
	}
	turns := firstTurns(c, at.Members, mentions, BatchID(run.ID), message.Seq)
	run.ActiveAgentID = turns[0].AgentID
	return Admission{Conversation: c, Message: message, Run: run, Turns: turns}, nil
}

// attached returns the files of a message as it shows them, each once.
func attached(ids []FileID, owned map[FileID]File) ([]File, error) {
	files := make([]File, 0, len(ids))
	for _, id := range unique(ids) {
		file, ok := owned[id]
		if !ok {
			return nil, Fail(CodeUploadNotFound)
		}
		files = append(files, file)
	}
	return files, nil
}

// firstTurns returns the turns of depth 0, of which there is at least one: the
// table of section 6.5.
func firstTurns(c Conversation, members map[AgentID]Agent, mentions []AgentID, batch BatchID, trigger int64) []Turn {
	turn := Turn{BatchID: batch, TriggerSeq: trigger, ReplyMode: ReplyMentioned}
	if c.Kind == Direct {
		return turn.forEach([]AgentID{c.AdministratorID})
	}
	if c.Mode == ModeFree && len(mentions) > 0 {
		return turn.forEach(mentions)
	}
	turn.ReplyMode = ReplyAutomatic
	administrator := turn
	administrator.RequiredReply = true
	turns := administrator.forEach([]AgentID{c.AdministratorID})
	if c.Mode == ModeHost {
		return turns
	}
	return slices.Concat(turns, turn.forEach(automatic(c, members, c.AdministratorID)))
}

// automatic returns the automatic members that may be asked without a mention:
// present, not archived, and not the one who spoke.
func automatic(c Conversation, members map[AgentID]Agent, speaker AgentID) []AgentID {
	return keep(c.AutoReplyIDs, func(id AgentID) bool {
		return id != speaker && c.HasMember(id) && !members[id].Archived
	})
}
