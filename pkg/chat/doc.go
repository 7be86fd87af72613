// Package chat holds the rules of the newOS4 chat contract and nothing else.
//
// It knows what a token, a thread and a message are, how a thread grows, how it
// is cut into the pages that a poll answers with, and when it waits for Hermes.
// It does no I/O and reads no clock: every function is a pure function of its
// arguments, so that each rule can be tested in microseconds.
//
// Section numbers in this package's comments are those of newos4-chat(7).
package chat
