// Package workspace holds the rules of the workspace contract and nothing else.
//
// It knows agents, conversations, messages, runs and tasks with their bounds;
// who is meant by a mention; what an edit of a group does; which tasks a
// message and a reply lead to; and which state may follow which. It does no
// I/O, reads no clock and draws no random numbers: ids and times are passed in,
// and every function is a pure function of its arguments that leaves them as
// they were. The store makes its results durable, the HTTP side tells clients
// of them, the runtime carries them out.
//
// Section numbers in this package's comments are those of the workspace
// contract. Times are milliseconds since the Unix epoch, lengths are Unicode
// code points.
package workspace
