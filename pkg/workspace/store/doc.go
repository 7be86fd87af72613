// Package store makes the workspace durable: one SQLite database, named
// workspace.sqlite3, with everything but the bytes of files (section 1.1 of the
// workspace contract; section numbers in this package's comments are that
// contract's).
//
// Each method is one transaction. A write and the events that tell of it are
// durable together or not at all, and an acknowledged write survives a loss of
// power. All rows belong to an owner and every method is told which: a row of
// somebody else does not exist. The few that look at all owners say so.
//
// One connection writes and several read. Since writes follow each other, also
// those of other processes, whoever has seen an event never finds a new one with
// a smaller sequence (section 4.2).
//
// The rules are those of package workspace; this package asks them and stores
// what they say. An error with a code is a [workspace.Error] and meant for the
// user; any other is not.
package store
