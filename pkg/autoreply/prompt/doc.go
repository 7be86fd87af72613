// Package prompt puts what strangers wrote in front of a model, as data.
//
// It promises:
//   - The instructions are fixed text. No message, file or error has a part in
//     them.
//   - All else is JSON, one document a line, between two tags that are drawn at
//     random for each run. No text can hold a line of its own, nor anything that
//     begins like the tags, so none can end the data, even one that knows them.
//   - Nothing is hidden: characters that do not show are spelled out as by
//     [github.com/newos4/relay/pkg/untrusted.Visible].
//   - What does not fit is left out from the oldest on, and the model is told.
//
// It also assumes that all this does not help against a model that wants to
// obey; what the model can do at all is limited elsewhere.
package prompt
