package runtime

import (
	"errors"
	"strings"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
)

// What people read in errors of tasks and of their rows.
const (
	textAbandoned    = "执行意外中断，正在核对这一轮的结果"
	textDisconnected = "与上游的连接中断，正在核对这一轮的结果"
	textLostAck      = "未收到上游的确认，正在核对这一轮的结果"
	textUnconfirmed  = "停止尚未得到上游确认"
	textUnanswered   = "上游会话已空闲，但没有找到这一轮的答复"
	textNotAccepted  = "消息未送达上游，请重新发送"
	textLocalStop    = "已在本地停止，远端是否仍在执行未知"
	textStale        = "上游会话已属于另一个任务，无法核对"
	textTruncated    = "答复不完整，已被截断"
	textNoNode       = "节点已不存在"
	textBusy         = "上游会话一直被占用"
	textFiles        = "附件无法读取"
)

// texts are what the classes of failures are called.
var texts = map[hermes.Class]string{
	hermes.ClassUnreachable:        "上游不可用",
	hermes.ClassRejected:           "上游拒绝了请求",
	hermes.ClassLostAck:            "上游没有回应",
	hermes.ClassBusy:               textBusy,
	hermes.ClassIdentityMismatch:   "上游的身份不符",
	hermes.ClassRunFailed:          "执行失败",
	hermes.ClassInterrupted:        "执行被中断",
	hermes.ClassHistoryUnavailable: "上游的历史记录无法读取",
}

// maxReason bounds what the upstream itself says in such a text, in bytes.
const maxReason = 500

// explain returns what people read of a failure: what kind it is, and what the
// upstream says of it, which was made safe to show.
func explain(err error) string {
	if errors.Is(err, ErrNoNode) {
		return textNoNode
	}
	failure, ok := errors.AsType[*hermes.Error](err)
	if !ok {
		return texts[hermes.ClassUnreachable]
	}
	text := texts[failure.Class()]
	if text == "" {
		text = texts[hermes.ClassUnreachable]
	}
	if reason := workspace.StripMarkers(failure.Text); reason != "" {
		text += "：" + strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	}
	return text
}
