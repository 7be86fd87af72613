// Package storage keeps the threads of the newOS4 chat: one JSON file per
// thread, shared by every process on the host.
//
// What it promises:
//   - A message that [Store.Append] has returned is on disk: file synced,
//     renamed over the old one, directory synced. A crash at any instruction
//     leaves the old thread or the new one, whole.
//   - Writers in any number of processes lose nothing: each thread has a lock of
//     its own, and no writer waits for another thread.
//   - Epochs of a thread only grow, across processes, restarts, sweeps and
//     clocks that step back.
//   - A file that is not a sound thread is reported and never changed.
//   - A poll of an unchanged thread costs one stat and opens no file.
//
// Callers know threads and messages; paths, locks and file notifications stay
// in here, so that another engine could stand behind the same methods. The
// rules come from newos4-chat(7), sections 1, 4, 5 and 8.
//
// # On disk
//
// Everything is in <root>/spaces/<space>/data/chat, a directory of mode 2770
// whose group all writers share:
//
//	<thread>.json           a thread, mode 0660
//	.lock                   byte ranges of it are the locks; never replaced
//	.marks.json             epochs that removed threads had reached
//	.<name>.<random>.tmp    a write under way; an old one is swept
//
// Threads that were reset lie in <root>/spaces/<space>/data/chat-reset.
package storage
