package workspace

// Bounds of what people and agents may write, in code points unless a line says
// otherwise. They stand here and nowhere else.
const (
	// MaxName bounds names of agents, groups, roles and nodes (2.1, 2.3, 2.4, 3.8).
	MaxName = 100
	// MaxInstructions bounds an agent's and a group's rules (2.1, 2.3).
	MaxInstructions = 24_000
	// MaxAvatar bounds an avatar string (2.14).
	MaxAvatar = 2_800_000
	// MaxProfile bounds the name of an upstream profile (2.1).
	MaxProfile = 256
	// MaxRoleDescription bounds the duty of a member role (2.4).
	MaxRoleDescription = 500
	// MaxRoles is the number of member roles of one group (2.4).
	MaxRoles = 8
	// MaxMembers is the number of members of a group (2.3).
	MaxMembers = 8
	// MinMembersNew is the number of members that a new group needs (2.3).
	MinMembersNew = 2
	// MinMembers is the number of members that a group keeps (2.3).
	MinMembers = 1
	// MaxAutoReply is the number of automatic members of a group (2.3).
	MaxAutoReply = 8
	// UnlimitedRounds as a group's maxReplyRounds means no limit (6.7).
	UnlimitedRounds = -1
	// MaxReplyRounds is the highest limit of rounds (6.7).
	MaxReplyRounds = 100
	// DefaultReplyRounds is the limit of rounds of a new group (6.7).
	DefaultReplyRounds = 3
	// directReplyRounds is the limit of rounds of a direct chat, which has no
	// relay at all (2.3, 5.4).
	directReplyRounds = 1

	// MaxContent bounds the text of a user message (3.3).
	MaxContent = 65_536
	// MaxMentions is the number of ids in a send's mentionIds (3.3).
	MaxMentions = 8
	// MaxFiles is the number of files of one message and of one upload (3.3, 9.5).
	MaxFiles = 8
	// MaxPreview bounds a conversation's preview (2.3).
	MaxPreview = 160
	// MaxAnswer bounds the answer to an interaction (3.6).
	MaxAnswer = 16_000
	// MaxFileQuery is the number of message ids of one file query (3.7).
	MaxFileQuery = 500

	// MaxFileBytes bounds one uploaded file, in bytes (9.5).
	MaxFileBytes = 25 << 20
	// MaxUploadBytes bounds one upload request, in bytes (9.5).
	MaxUploadBytes = 50 << 20
	// MaxUploadParts is the number of parts of one upload request (9.5).
	MaxUploadParts = 16
	// DefaultQuotaBytes bounds the library of one user, in bytes (9.5).
	DefaultQuotaBytes = 2 << 30
	// MaxFileName bounds a file's name (9.5).
	MaxFileName = 240
	// MaxMIMEType bounds a declared MIME type, in bytes (9.5).
	MaxMIMEType = 127

	// MaxNodeURL bounds a node's URL (3.8).
	MaxNodeURL = 2048
	// MaxNodeUsername bounds the account name on a node (3.8).
	MaxNodeUsername = 256
	// MaxSecret bounds passwords of nodes and keys of voice providers (2.15, 3.8).
	MaxSecret = 4096
	// MaxVoices is the number of duplex voices (2.15).
	MaxVoices = 100
	// MaxVoiceName bounds a duplex voice's id and name (2.15).
	MaxVoiceName = 200
	// MaxSpeechSettingsBytes bounds one provider's settings as JSON, in bytes (3.9).
	MaxSpeechSettingsBytes = 32_000
	// MaxProviderName bounds the name of a speech provider and of its secrets.
	MaxProviderName = 100

	// MaxContextModel bounds the model of a session-context snapshot (2.16).
	MaxContextModel = 512
	// MaxContextProvider bounds the provider of a session-context snapshot (2.16).
	MaxContextProvider = 256

	// HistoryPage is the number of messages of a detail and of a page whose
	// size was not given (3.2, 3.3).
	HistoryPage = 100
	// MaxHistoryPage is the number of messages of one page (3.3).
	MaxHistoryPage = 200
	// FilePage is the number of files of a page whose size was not given (3.7).
	FilePage = 50
	// MaxFilePage is the number of files of one page (3.7).
	MaxFilePage = 200
	// EventPage is the number of events of one answer (4.1).
	EventPage = 250
	// MaxEventWaitSeconds bounds how long a read of events waits, in seconds (4.4).
	MaxEventWaitSeconds = 25
	// SupersededAge is how old an event must be before a newer one of its
	// entity lets it be pruned (4.4).
	SupersededAge Millis = 10 * 60 * 1000

	// MaxRunningGlobal is the number of executions on the whole server (6.4).
	MaxRunningGlobal = 4
	// MaxRunningConversation is the number of executions in one chat (6.4).
	MaxRunningConversation = 3
)
