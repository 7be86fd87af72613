package account

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/newos4/relay/pkg/jsonbody"
)

// Code is the machine word of an error.
type Code string

// Codes of accounts and of the guard (sections 1.4, 1.6 and 1.8).
const (
	CodeInvalidHost      Code = "invalid_host"
	CodeInvalidOrigin    Code = "invalid_origin"
	CodeInvalidCSRF      Code = "invalid_csrf"
	CodeInvalidJSON      Code = "invalid_json_body"
	CodeUnauthenticated  Code = "authentication_required"
	CodePasswordDue      Code = "password_change_required"
	CodeAdminRequired    Code = "admin_required"
	CodeNotFound         Code = "not_found"
	CodeMethodNotAllowed Code = "method_not_allowed"
	CodeInvalidRequest   Code = "invalid_workspace_request"
	CodeInternal         Code = "internal_error"

	CodeInvalidCredentials Code = "invalid_credentials"
	CodeLoginFailed        Code = "login_failed"
	CodeThrottled          Code = "login_throttled"
	CodeSetupComplete      Code = "setup_complete"
	CodeWrongPassword      Code = "invalid_current_password"
	CodeInvalidPassword    Code = "invalid_password"
	CodeInvalidUsername    Code = "invalid_username"
	CodeUsernameExists     Code = "username_exists"
	CodeAdminProtected     Code = "admin_account_protected"
	CodeUserNotFound       Code = "user_not_found"
)

// Error is a refusal of a rule of accounts. Its message is for the operator;
// clients get the text that the table of this package has for its code.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is when to try again, for [CodeThrottled].
	RetryAfter time.Duration
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// CodeOf returns the code of an error of this package, or [CodeInternal].
func CodeOf(err error) Code {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	return CodeInternal
}

func errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Refusal is an answer that says why a request is refused (section 1.8). A
// handler returns one as its error.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// Code is the machine word.
	Code Code
	// Text is shown to the user as it is: a short Chinese sentence.
	Text string
	// Header is added to the answer.
	Header map[string]string
}

// Error returns status and code; the text is for the user.
func (r *Refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, r.Code) }

// tableRow is one row of the contract's error table.
type tableRow struct {
	status int
	text   string
}

// errorTable holds the status and the text of every code of this package.
func errorTable() map[Code]tableRow {
	return map[Code]tableRow{
		CodeInvalidHost:      {http.StatusMisdirectedRequest, "请求的主机名不被允许"},
		CodeInvalidOrigin:    {http.StatusForbidden, "请求来源不被允许"},
		CodeInvalidCSRF:      {http.StatusForbidden, "安全令牌无效或已过期，请刷新后重试"},
		CodeInvalidJSON:      {http.StatusBadRequest, "请求内容不是有效的 JSON"},
		CodeUnauthenticated:  {http.StatusUnauthorized, "请先登录"},
		CodePasswordDue:      {http.StatusPreconditionRequired, "请先修改密码"},
		CodeAdminRequired:    {http.StatusForbidden, "需要管理员权限"},
		CodeNotFound:         {http.StatusNotFound, "接口不存在"},
		CodeMethodNotAllowed: {http.StatusMethodNotAllowed, "不支持该请求方法"},
		CodeInternal:         {http.StatusInternalServerError, "Internal server error"},

		CodeInvalidCredentials: {http.StatusBadRequest, "请输入有效的用户名和密码"},
		CodeLoginFailed:        {http.StatusUnauthorized, "用户名或密码错误"},
		CodeThrottled:          {http.StatusTooManyRequests, "尝试过于频繁，请稍后再试"},
		CodeSetupComplete:      {http.StatusConflict, "初始设置已完成"},
		CodeWrongPassword:      {http.StatusUnauthorized, "当前密码错误"},
		CodeInvalidPassword:    {http.StatusBadRequest, "密码须为 8–4096 个字符，且须与临时密码不同"},
		CodeInvalidUsername:    {http.StatusBadRequest, `用户名须为 1–100 个字符，不能含空白、控制字符或 / @ \`},
		CodeUsernameExists:     {http.StatusConflict, "用户名已存在"},
		CodeAdminProtected:     {http.StatusConflict, "管理员账号受保护"},
		CodeUserNotFound:       {http.StatusNotFound, "用户不存在"},
	}
}

// refusalOf returns the answer to err. An error that is no refusal is an internal
// one, of which the answer tells nothing.
func refusalOf(err error) *Refusal {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}
	if violations, ok := errors.AsType[jsonbody.Violations](err); ok {
		return &Refusal{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Text: violations.Error()}
	}
	code := CodeOf(err)
	row := errorTable()[code]
	refusal := &Refusal{Status: row.status, Code: code, Text: row.text}
	if coded, ok := errors.AsType[*Error](err); ok && coded.RetryAfter > 0 {
		refusal.Header = map[string]string{"Retry-After": strconv.FormatInt(int64((coded.RetryAfter+time.Second-1)/time.Second), 10)}
	}
	return refusal
}

// bodyTooLarge is [CodeInvalidJSON] for a body above the route's limit.
func bodyTooLarge() error {
	return &Refusal{
		Status: http.StatusRequestEntityTooLarge, Code: CodeInvalidJSON, Text: "请求内容过大",
		Header: map[string]string{"Connection": "close"}, // the rest is not read
	}
}
