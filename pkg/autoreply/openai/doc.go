// Package openai answers threads with any server of chat completions.
//
// The loop is ours. The server gets words and the three tools of
// pkg/autoreply/tools, and gives back words or calls; it is assumed to be
// driven by whoever wrote the thread. What is promised:
//   - Nothing that the server says is carried out but calls of these tools, in
//     the place where the protocol has them, within the budget. Markup in the
//     text that looks like a call is never one.
//   - A server that is an agent itself, with tools of its own (Hermes), is
//     refused.
//   - An answer is whole or there is none: what was cut off, filtered, declined
//     or consists of reasoning alone is a failure with a reason. It is never cut
//     here, either.
//   - Every request is valid for strict servers: each call is answered, once, in
//     order, under an id of its own, with arguments that are a JSON object.
//   - Neither the key nor a prompt, nor anything a server said, is in an error.
//     Of a server's words only a status and a code made of plain letters are.
//   - Redirects are not followed, no response is read beyond 4 MiB, certificates
//     are verified, and a key is not sent in the clear except to this host.
//
// A request is repeated when the connection failed or the server was too busy,
// which is safe because a model call changes nothing here.
package openai
