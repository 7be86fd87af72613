package api

import (
	"testing"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// Ensures the table of codes row by row as the contract has it, and that no code
// is without a status and a Chinese text (section 1.8).
func TestErrorTable(t *testing.T) {
	t.Parallel()
	table := []struct {
		status int
		codes  []workspace.Code
	}{
		{400, []workspace.Code{"invalid_workspace_request", "invalid_members", "administrator_required", "edit_agent_instead",
			"invalid_mentions", "invalid_approval", "invalid_upload", "missing_files", "invalid_node", "native_gateway_required", "node_unavailable"}},
		{404, []workspace.Code{"workspace_not_found", "upload_not_found", "session_not_found", "file_missing", "not_found"}},
		{405, []workspace.Code{"method_not_allowed"}},
		{409, []workspace.Code{"duplicate_agent_name", "source_unavailable", "agent_archived", "conversation_archived", "idempotency_conflict",
			"interaction_answer_conflict", "interaction_uncertain", "interaction_offline", "unsafe_upload"}},
		{410, []workspace.Code{"retired_plugin_api", "http_sse_required"}},
		{413, []workspace.Code{"upload_file_too_large", "upload_request_too_large", "too_many_uploads", "too_many_parts", "upload_quota_exceeded", "settings_too_large"}},
		{415, []workspace.Code{"invalid_content_type"}},
		{416, []workspace.Code{"invalid_range"}},
	}
	rows := map[workspace.Code]int{workspace.CodeInternal: 500, workspace.CodeInvalidBody: 400}
	for _, row := range table {
		for _, code := range row.codes {
			rows[code] = row.status
			refused, ok := refusal(workspace.Fail(code)).(*account.Refusal) //nolint:errorlint // it is exactly this
			if !ok || refused.Status != row.status || string(refused.Code) != string(code) {
				t.Errorf("%s is answered by %+v, want %d", code, refused, row.status)
				continue
			}
			if !isChinese(refused.Text) {
				t.Errorf("%s says %q", code, refused.Text)
			}
		}
	}
	for _, code := range workspace.Codes() {
		if rows[code] == 0 || rows[code] != statuses()[code] {
			t.Errorf("%s has status %d, and %d in the contract's table", code, statuses()[code], rows[code])
		}
	}
	if len(statuses()) != len(workspace.Codes()) {
		t.Errorf("%d codes have a status, of %d", len(statuses()), len(workspace.Codes()))
	}
	if err := refusal(workspace.Fail(workspace.CodeInternal)); account.CodeOf(err) != account.CodeInternal {
		t.Errorf("an internal fault is told as %v", err)
	}
}

func isChinese(text string) bool {
	for _, r := range text {
		if r >= '\u4e00' && r <= '\u9fff' {
			return true
		}
	}
	return false
}
