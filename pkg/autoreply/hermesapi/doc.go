// Package hermesapi answers through a Hermes API server, as a source of words
// and nothing else (hermes-upstream section 2).
//
// Such a server is an agent: it runs tools of its own on its own host, and a
// caller cannot take them away. So the back end uses it only as long as its list
// of tools is empty or harmless. What it promises:
//
//   - Before the first answer, and again every ten minutes at most, the server's
//     list is read. One enabled tool that is not allowed, or a list that cannot
//     be understood, and no thread is sent: the failure is
//     [autoreply.ReasonUnsafe] and names the tool.
//   - What strangers wrote is sent as JSON between two lines of 128 random bits,
//     behind a text of ours, with hidden characters visible and every reference
//     that Hermes would expand broken (package defuse).
//   - What the model may know of the public files was chosen by our own reader.
//   - No redirect is followed, no Origin and no cookie is sent, no proxy is
//     used, what comes back is bounded, and of an error's body nothing but its
//     code is kept. A failed request is not repeated; whoever asks decides that.
//   - Threads share no session and no memory on the server. No session is named,
//     because the server would read its history in place of ours; the session
//     that it makes up is derived from the text, which is unique. The scope of
//     memories is the thread.
//
// What it cannot promise: releases of Hermes leave the tools of MCP servers out
// of the list, and the list may change between two looks at it. The profile
// behind the server has to be made for this purpose, without MCP servers, and
// run as a user of its own in an empty directory.
package hermesapi
