package workspace

import "slices"

// Code is the machine word of a failure, as it stands in the "code" field of an
// error body (section 1.8). Which HTTP status goes with each is the HTTP side's
// business. The codes of sign-in and accounts belong to the accounts.
type Code string

// The codes of the workspace part (section 1.8).
const (
	CodeInternal          Code = "internal_error"
	CodeNotFound          Code = "not_found"
	CodeMethodNotAllowed  Code = "method_not_allowed"
	CodeInvalidRequest    Code = "invalid_workspace_request"
	CodeInvalidMembers    Code = "invalid_members"
	CodeAdminRequired     Code = "administrator_required"
	CodeEditAgentInstead  Code = "edit_agent_instead"
	CodeInvalidMentions   Code = "invalid_mentions"
	CodeInvalidApproval   Code = "invalid_approval"
	CodeInvalidUpload     Code = "invalid_upload"
	CodeMissingFiles      Code = "missing_files"
	CodeInvalidNode       Code = "invalid_node"
	CodeNativeGateway     Code = "native_gateway_required"
	CodeNodeUnavailable   Code = "node_unavailable"
	CodeRowNotFound       Code = "workspace_not_found"
	CodeUploadNotFound    Code = "upload_not_found"
	CodeSessionNotFound   Code = "session_not_found"
	CodeFileMissing       Code = "file_missing"
	CodeDuplicateName     Code = "duplicate_agent_name"
	CodeSourceUnavailable Code = "source_unavailable"
	CodeAgentArchived     Code = "agent_archived"
	CodeArchived          Code = "conversation_archived"
	CodeIdempotency       Code = "idempotency_conflict"
	CodeAnswerConflict    Code = "interaction_answer_conflict"
	CodeAnswerUncertain   Code = "interaction_uncertain"
	CodeAnswerOffline     Code = "interaction_offline"
	CodeUnsafeUpload      Code = "unsafe_upload"
	CodeRetiredPlugin     Code = "retired_plugin_api"
	CodeHTTPSSERequired   Code = "http_sse_required"
	CodeFileTooLarge      Code = "upload_file_too_large"
	CodeUploadTooLarge    Code = "upload_request_too_large"
	CodeTooManyUploads    Code = "too_many_uploads"
	CodeTooManyParts      Code = "too_many_parts"
	CodeQuotaExceeded     Code = "upload_quota_exceeded"
	CodeSettingsTooLarge  Code = "settings_too_large"
	CodeInvalidBody       Code = "invalid_json_body"
	CodeContentType       Code = "invalid_content_type"
	CodeInvalidRange      Code = "invalid_range"
)

// texts holds what existing clients show for a code when nothing more precise
// is known: short Chinese sentences, but for the two whose text the contract
// fixes in English.
var texts = map[Code]string{
	CodeInternal:          "Internal server error",
	CodeNotFound:          "接口不存在",
	CodeMethodNotAllowed:  "该接口不支持此请求方法",
	CodeInvalidRequest:    "请求内容不符合要求",
	CodeInvalidMembers:    "群成员设置无效",
	CodeAdminRequired:     "当前管理员不能移除，请先更换管理员并保存",
	CodeEditAgentInstead:  "单聊信息跟随角色，请编辑角色",
	CodeInvalidMentions:   "只能提及群内成员",
	CodeInvalidApproval:   "审批选项无效",
	CodeInvalidUpload:     "文件引用无效",
	CodeMissingFiles:      "请选择要上传的文件",
	CodeInvalidNode:       "节点地址无效",
	CodeNativeGateway:     "该地址是聊天服务，请填写 Hermes 服务地址",
	CodeNodeUnavailable:   "无法连接节点，请检查地址和账号",
	CodeRowNotFound:       "内容不存在或已被删除",
	CodeUploadNotFound:    "附件不存在",
	CodeSessionNotFound:   "会话不存在",
	CodeFileMissing:       "文件内容已丢失",
	CodeDuplicateName:     "角色名称已存在",
	CodeSourceUnavailable: "所选来源当前不可用",
	CodeAgentArchived:     "已归档的角色不能加入群聊",
	CodeArchived:          "聊天已归档，恢复后才能发送",
	CodeIdempotency:       "该请求编号已用于其他内容",
	CodeAnswerConflict:    "该请求已有不同的答复",
	CodeAnswerUncertain:   "上次答复的结果尚未确认，请先核对",
	CodeAnswerOffline:     "对应的执行当前不在线，暂时无法答复",
	CodeUnsafeUpload:      "文件存储异常，已拒绝访问",
	CodeRetiredPlugin:     "旧版插件接口已停用",
	CodeHTTPSSERequired:   "实时连接已改为 HTTP 接口",
	CodeFileTooLarge:      "单个文件不能超过 25 MiB",
	CodeUploadTooLarge:    "一次上传不能超过 50 MiB",
	CodeTooManyUploads:    "一次最多上传 8 个文件",
	CodeTooManyParts:      "上传内容的分段过多",
	CodeQuotaExceeded:     "文件空间已满",
	CodeSettingsTooLarge:  "设置内容过大",
	CodeInvalidBody:       "请求内容无法解析或过大",
	CodeContentType:       "请使用 multipart 表单上传",
	CodeInvalidRange:      "请求的文件范围无效",
}

// Codes returns every code in alphabetical order.
func Codes() []Code {
	codes := make([]Code, 0, len(texts))
	for code := range texts {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}

// Text returns the sentence that users see for the code.
func (c Code) Text() string {
	if text, ok := texts[c]; ok {
		return text
	}
	return texts[CodeInternal]
}
