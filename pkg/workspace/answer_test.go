package workspace_test

import (
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that an answer is judged in the order of section 6.11 (scenarios 71 and
// 73).
func TestRespond(t *testing.T) {
	t.Parallel()
	approval := workspace.Interaction{Kind: workspace.Approval}
	resolved := workspace.Interaction{Kind: workspace.Approval, Resolved: true, Answer: "once"}
	sending, uncertain := approval, approval
	sending.ResponseState, uncertain.ResponseState = workspace.ResponseSending, workspace.ResponseUncertain
	tests := map[string]struct {
		interaction workspace.Interaction
		answer      string
		online      bool
		call        bool
		want        workspace.Code
	}{
		"approval":                        {approval, "always", true, true, ""},
		"free text":                       {workspace.Interaction{Kind: workspace.Clarification}, "随便", true, true, ""},
		"same answer again":               {resolved, "once", false, false, ""},
		"another answer":                  {resolved, "deny", true, false, workspace.CodeAnswerConflict},
		"while sending":                   {sending, "once", true, false, workspace.CodeAnswerUncertain},
		"after a loss":                    {uncertain, "once", true, false, workspace.CodeAnswerUncertain},
		"offline":                         {approval, "once", false, false, workspace.CodeAnswerOffline},
		"wrong word":                      {approval, "yes", true, false, workspace.CodeInvalidApproval},
		"offline comes before wrong word": {approval, "yes", false, false, workspace.CodeAnswerOffline},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, call, err := tt.interaction.Respond(tt.answer, tt.online)
			wantCode(t, err, tt.want)
			if call != tt.call {
				t.Errorf("call upstream = %v", call)
			}
			if call && (got.ResponseState != workspace.ResponseSending || got.Answer != tt.answer || got.Resolved) {
				t.Errorf("stored before the call: %+v", got)
			}
		})
	}
}

// Ensure what becomes of an answer that was sent, lost or rejected, and of a
// question whose task ended (section 6.11).
func TestRespondOutcomes(t *testing.T) {
	t.Parallel()
	sending := workspace.Interaction{Kind: workspace.Approval, Answer: "once", ResponseState: workspace.ResponseSending}
	if got := sending.Sent(); !got.Resolved || got.ResponseState != workspace.ResponseSent || got.Answer != "once" {
		t.Errorf("sent: %+v", got)
	}
	if got := sending.Lost(); got.Resolved || got.ResponseState != workspace.ResponseUncertain {
		t.Errorf("lost: %+v", got)
	}
	if _, call, err := sending.Rejected().Respond("deny", true); !call || err != nil {
		t.Errorf("after a rejection: call %v, error %v", call, err)
	}
	if got := sending.Close(); !got.Resolved {
		t.Errorf("closed: %+v", got)
	}
}

// Ensure the bounds of an answer (section 3.6).
func TestCheckAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   workspace.AnswerInteraction
		want workspace.Code
	}{
		{workspace.AnswerInteraction{Answer: workspace.Some(strings.Repeat("答", 16000))}, ""},
		{workspace.AnswerInteraction{Answer: workspace.Some(strings.Repeat("答", 16001))}, workspace.CodeInvalidRequest},
		{workspace.AnswerInteraction{Answer: workspace.Some("")}, workspace.CodeInvalidRequest},
		{workspace.AnswerInteraction{}, workspace.CodeInvalidRequest},
	} {
		_, err := workspace.CheckAnswer(tt.in)
		wantCode(t, err, tt.want)
	}
}
