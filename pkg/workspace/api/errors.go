package api

import (
	"errors"
	"net/http"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// statuses is the table of section 1.8: the HTTP status of every code.
func statuses() map[workspace.Code]int {
	return map[workspace.Code]int{
		workspace.CodeInternal:          http.StatusInternalServerError,
		workspace.CodeNotFound:          http.StatusNotFound,
		workspace.CodeMethodNotAllowed:  http.StatusMethodNotAllowed,
		workspace.CodeInvalidRequest:    http.StatusBadRequest,
		workspace.CodeInvalidMembers:    http.StatusBadRequest,
		workspace.CodeAdminRequired:     http.StatusBadRequest,
		workspace.CodeEditAgentInstead:  http.StatusBadRequest,
		workspace.CodeInvalidMentions:   http.StatusBadRequest,
		workspace.CodeInvalidApproval:   http.StatusBadRequest,
		workspace.CodeInvalidUpload:     http.StatusBadRequest,
		workspace.CodeMissingFiles:      http.StatusBadRequest,
		workspace.CodeInvalidNode:       http.StatusBadRequest,
		workspace.CodeNativeGateway:     http.StatusBadRequest,
		workspace.CodeNodeUnavailable:   http.StatusBadRequest,
		workspace.CodeInvalidBody:       http.StatusBadRequest,
		workspace.CodeRowNotFound:       http.StatusNotFound,
		workspace.CodeUploadNotFound:    http.StatusNotFound,
		workspace.CodeSessionNotFound:   http.StatusNotFound,
		workspace.CodeFileMissing:       http.StatusNotFound,
		workspace.CodeDuplicateName:     http.StatusConflict,
		workspace.CodeSourceUnavailable: http.StatusConflict,
		workspace.CodeAgentArchived:     http.StatusConflict,
		workspace.CodeArchived:          http.StatusConflict,
		workspace.CodeIdempotency:       http.StatusConflict,
		workspace.CodeAnswerConflict:    http.StatusConflict,
		workspace.CodeAnswerUncertain:   http.StatusConflict,
		workspace.CodeAnswerOffline:     http.StatusConflict,
		workspace.CodeUnsafeUpload:      http.StatusConflict,
		workspace.CodeRetiredPlugin:     http.StatusGone,
		workspace.CodeHTTPSSERequired:   http.StatusGone,
		workspace.CodeFileTooLarge:      http.StatusRequestEntityTooLarge,
		workspace.CodeUploadTooLarge:    http.StatusRequestEntityTooLarge,
		workspace.CodeTooManyUploads:    http.StatusRequestEntityTooLarge,
		workspace.CodeTooManyParts:      http.StatusRequestEntityTooLarge,
		workspace.CodeQuotaExceeded:     http.StatusRequestEntityTooLarge,
		workspace.CodeSettingsTooLarge:  http.StatusRequestEntityTooLarge,
		workspace.CodeContentType:       http.StatusUnsupportedMediaType,
		workspace.CodeInvalidRange:      http.StatusRequestedRangeNotSatisfiable,
	}
}

// refusal turns an error with a code of the workspace into the answer that
// account's guard writes. Other errors stay as they are.
func refusal(err error) error {
	coded, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	status, ok := statuses()[coded.Code]
	if !ok || coded.Code == workspace.CodeInternal {
		return err // a mistake of the program, which the guard logs
	}
	return &account.Refusal{Status: status, Code: account.Code(coded.Code), Text: coded.Text}
}
