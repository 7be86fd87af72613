package workspace

import "slices"

// approvals are the words that answer an approval (section 6.11).
var approvals = []string{"once", "session", "always", "deny", "allow", "approve"}

// CheckAnswer returns the answer of a request that answers an interaction
// (section 3.6).
func CheckAnswer(in AnswerInteraction) (string, error) {
	var f faults
	required(&f, "answer", in.Answer)
	answer := checked(&f, "answer", present(in.Answer), textOf(1, MaxAnswer)).Or("")
	return answer, f.err()
}

// Respond decides about an answer to an interaction in the order of section
// 6.11. Online is whether there is a live connection of exactly its task. It
// returns the interaction with the answer stored as sending, and true when the
// upstream has to be called; for an answer that was given before it returns the
// interaction as it is, and false.
func (i Interaction) Respond(answer string, online bool) (Interaction, bool, error) {
	switch {
	case i.Resolved && i.Answer == answer:
		return i, false, nil
	case i.Resolved:
		return i, false, Fail(CodeAnswerConflict)
	case i.ResponseState == ResponseSending, i.ResponseState == ResponseUncertain:
		return i, false, Fail(CodeAnswerUncertain)
	case !online:
		return i, false, Fail(CodeAnswerOffline)
	case i.Kind == Approval && !slices.Contains(approvals, answer):
		return i, false, Fail(CodeInvalidApproval)
	}
	i.Answer, i.ResponseState = answer, ResponseSending
	return i, true, nil
}

// Sent returns the interaction after the upstream acknowledged its answer.
func (i Interaction) Sent() Interaction {
	i.Resolved, i.ResponseState = true, ResponseSent
	return i
}

// Lost returns the interaction after the acknowledgement of its answer was lost.
// It is never sent again by itself.
func (i Interaction) Lost() Interaction {
	i.ResponseState = ResponseUncertain
	return i
}

// Rejected returns the interaction after the upstream refused its answer, open
// for another try.
func (i Interaction) Rejected() Interaction {
	i.Answer, i.ResponseState = "", ResponseNone
	return i
}

// Close returns the interaction after its task ended (section 6.11).
func (i Interaction) Close() Interaction {
	i.Resolved = true
	return i
}
