// Package autoreplytest has a server of chat completions that does as a test
// says.
//
// # Scripts
//
// [Server.Script] lists the replies to one session: a thread whose messages
// hold the [Marker] of that name. A session is found by what a request is made
// of (lines of JSON with author and text), never by the wording of a prompt.
// A [Turn] can be text, tool calls, a failure of any kind, or wait at a [Gate]
// until the test lets it go.
//
// # Strictness
//
// The server is as strict as the strictest of real ones, all at once, and
// reports to the test what one of them would refuse: calls without an answer,
// ids that are missing or come twice, arguments that are no JSON object, an
// empty list of tools, an Origin, and so on. Its replies, on the other hand,
// are as sloppy as those of the [Dialect] it is given.
//
// # The obedient model
//
// A session without a script is answered by a model that does exactly what the
// thread's newest message says, one command a line. Other lines mean nothing to
// it. It knows these commands:
//
//	CALL tool arguments   make a call, with the rest of the line as the text of
//	                      its arguments, whatever that is
//	AND tool arguments    one more call in the same reply
//	BIG tool n            make a call with a path of n bytes
//	PARALLEL n            the next CALL or BIG stands n times in one reply
//	REPEAT n              the next CALL or BIG is made in n replies
//	ENDLESS               the next CALL or BIG is made for as long as there are tools
//	OBEY_RESULT           go on with the commands in the last results
//	SAY text              a line of the answer
//	SAY_RESULT            all results so far as lines of the answer, to the byte
//	SAY_PROMPT            all that the model was sent as lines of the answer
//	SAY_LONG n            n letters as a line of the answer
//	THINK text            reasoning in front of the answer
//	RAW json              the whole message of the reply, as it is written here
//	FINISH reason         the finish reason of the answer
//	DECLINE               a refusal instead of an answer
//	STATUS n              an HTTP status instead of a reply
//	WAIT name             wait at [Server.Gate] of this name before the reply
//
// Calls are made one reply after the other; what there is to say is said when
// all are made, or when the tools were taken away. If there is nothing to say,
// the answer is "done". The model keeps no state: how far it got, it sees from
// the request.
package autoreplytest
