// Package autoreply answers threads that await Hermes, and assumes that the
// model obeys whoever wrote the messages.
//
// What it promises:
//   - Every message is data. What a back end can do is write words, and look at
//     files that were declared public, through pkg/sandbox.
//   - A thread gets at most one answer to its newest message, whatever crashes,
//     restarts or comes twice: the answer is appended under the condition that
//     the message still is the newest, so the thread itself is the state.
//   - Nothing that awaits is forgotten, and what stands in the way of an answer
//     can be seen: [State] says for each thread what is going on and why.
//   - Cost is bounded, per answer, per thread, and over all.
//
// The package knows no model and no network; those are in the packages below
// it, one for each back end.
package autoreply
