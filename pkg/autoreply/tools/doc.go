// Package tools is all that a model can do: look at public files.
//
// There are three tools, list_files, read_file and search_files. The package
// assumes that whoever wrote the thread chose every byte of every call, and
// promises:
//   - Nothing but these three happens, with arguments that were decoded
//     strictly, on a [Files] that is expected to defend itself.
//   - Every call, whatever it holds, is answered by one JSON document of bounded
//     size: what was found, or {"error": …}. An error is one of a few fixed
//     sentences; it never tells what cannot be looked at from what is not there.
//   - Calls and bytes are counted, and calls that make no sense are strikes.
//     When one of them is used up, [Run.Spent] says so and nothing is looked at
//     any more.
package tools
