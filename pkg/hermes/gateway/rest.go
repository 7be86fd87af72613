package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newos4/relay/pkg/hermes"
)

// Status asks whether the server is up.
func (c *Client) Status(ctx context.Context) (hermes.Status, error) {
	const doing = "ask for the server's status"
	r, err := c.do(ctx, call{doing: doing, method: http.MethodGet, path: "/api/status", limit: maxSmallBody, public: true})
	if err != nil {
		return hermes.Status{}, err
	}
	var answer struct {
		Version      string `json:"version"`
		ServerKind   string `json:"server_kind"`
		AuthRequired bool   `json:"auth_required"`
	}
	if err := decode(doing, r.body, &answer); err != nil {
		return hermes.Status{}, err
	}
	return hermes.Status{Version: c.safe(answer.Version), Kind: c.safe(answer.ServerKind), Gated: answer.AuthRequired}, nil
}

// ListProfiles returns the server's profiles by name.
func (c *Client) ListProfiles(ctx context.Context) ([]hermes.Profile, error) {
	const doing = "list profiles"
	r, err := c.do(ctx, call{doing: doing, method: http.MethodGet, path: "/api/profiles", limit: maxProfiles})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Profiles []struct {
			Name        string `json:"name"`
			DisplayName string `json:"display_name"`
			Path        string `json:"path"`
			Model       string `json:"model"`
			IsDefault   bool   `json:"is_default"`
		} `json:"profiles"`
	}
	if err := decode(doing, r.body, &answer); err != nil {
		return nil, err
	}
	profiles := make([]hermes.Profile, 0, len(answer.Profiles))
	for _, row := range answer.Profiles {
		if row.Name == "" {
			continue
		}
		title := strings.TrimSpace(c.safe(row.DisplayName))
		profiles = append(profiles, hermes.Profile{
			Name: row.Name, Title: cmp.Or(title, row.Name), Path: row.Path, Model: row.Model, Default: row.IsDefault,
		})
	}
	slices.SortFunc(profiles, func(a, b hermes.Profile) int { return strings.Compare(a.Name, b.Name) })
	return profiles, nil
}

// Download fetches a file of the server's host.
func (c *Client) Download(ctx context.Context, profile, name string) (hermes.File, error) {
	query := url.Values{"path": {name}}
	if profile != "" {
		query.Set("profile", profile)
	}
	r, err := c.do(ctx, call{
		doing: "download a file", method: http.MethodGet, path: "/api/files/download", query: query, limit: hermes.MaxAttachment,
	})
	if err != nil {
		return hermes.File{}, err
	}
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil {
		kind = "application/octet-stream"
	}
	return hermes.File{Name: path.Base(name), Type: kind, Data: r.body}, nil
}

// historyAnswer is a page as the server sends it.
type historyAnswer struct {
	SessionID  string `json:"session_id"`
	Messages   []row  `json:"messages"`
	Pagination struct {
		Order string `json:"order"`
	} `json:"pagination"`
}

// row is one stored message.
type row struct {
	ID           int64           `json:"id"`
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FinishReason string          `json:"finish_reason"`
	Timestamp    float64         `json:"timestamp"`
}

// History returns one page of a stored session, the newest entry first. Builds
// that know no order list the oldest entry first and leave out what was
// compacted; there the pages are read up to the end.
func (c *Client) History(ctx context.Context, request hermes.HistoryRequest) (hermes.Page, error) {
	answer, err := c.historyAt(ctx, request, request.Page*hermes.HistoryPage)
	if err != nil {
		return hermes.Page{}, err
	}
	if answer.Pagination.Order == "latest" {
		return answer.page(len(answer.Messages) < hermes.HistoryPage, true), nil
	}
	return c.historyForward(ctx, request)
}

// historyForward reads all pages from the oldest entry on and returns the one
// that was asked for as if they had been numbered from the newest. It keeps no
// more than that one and those behind it.
func (c *Client) historyForward(ctx context.Context, request hermes.HistoryRequest) (hermes.Page, error) {
	var tail historyAnswer
	total, keep := 0, (request.Page+1)*hermes.HistoryPage
	for n := range hermes.HistoryPages {
		answer, err := c.historyAt(ctx, request, n*hermes.HistoryPage)
		if err != nil {
			return hermes.Page{}, err
		}
		total += len(answer.Messages)
		tail.SessionID = answer.SessionID
		tail.Messages = append(tail.Messages, answer.Messages...)
		tail.Messages = slices.Clone(tail.Messages[max(len(tail.Messages)-keep, 0):])
		if len(answer.Messages) < hermes.HistoryPage {
			return tail.slice(request.Page, total), nil
		}
	}
	return hermes.Page{}, &hermes.Error{
		Kind: hermes.KindHistory, Doing: "read history", Text: "the session has more entries than are searched",
	}
}

// slice returns a page of the last entries of a history of total ones, numbered
// from the newest.
func (a historyAnswer) slice(n, total int) hermes.Page {
	end := max(len(a.Messages)-n*hermes.HistoryPage, 0)
	start := max(end-hermes.HistoryPage, 0)
	a.Messages = a.Messages[start:end]
	return a.page((n+1)*hermes.HistoryPage >= total, false)
}

// historyAt reads one page of a session's messages.
func (c *Client) historyAt(ctx context.Context, request hermes.HistoryRequest, offset int) (historyAnswer, error) {
	const doing = "read history"
	r, err := c.do(ctx, call{
		doing: doing, method: http.MethodGet, path: "/api/sessions/" + url.PathEscape(request.StoredID) + "/messages", limit: maxHistoryBody,
		query: url.Values{
			"profile": {request.Profile}, "limit": {strconv.Itoa(hermes.HistoryPage)}, "offset": {strconv.Itoa(offset)},
			"order": {"latest"}, "include_compacted": {"true"},
		},
	})
	var answer historyAnswer
	if err == nil {
		err = decode(doing, r.body, &answer)
	}
	if err == nil || hermes.KindOf(err) == "" || hermes.KindOf(err) == hermes.KindNotFound {
		return answer, err
	}
	return answer, &hermes.Error{Kind: hermes.KindHistory, Doing: doing, Text: "history is unreadable", Retryable: true, Err: err}
}

// page returns the entries, the newest first, whatever the server's order.
func (a historyAnswer) page(last, whole bool) hermes.Page {
	page := hermes.Page{StoredID: a.SessionID, Last: last, Whole: whole}
	for _, row := range a.Messages {
		page.Entries = append(page.Entries, row.entry())
	}
	slices.SortStableFunc(page.Entries, func(a, b hermes.Entry) int { return cmp.Compare(b.ID, a.ID) })
	return page
}

// entry returns a row as an entry.
func (r row) entry() hermes.Entry {
	calls := strings.TrimSpace(string(r.ToolCalls))
	return hermes.Entry{
		ID: r.ID, Role: r.Role, Text: contentText(r.Content), FinishReason: r.FinishReason,
		Calls: calls != "" && calls != "null" && calls != "[]" && calls != `""`,
		Time:  time.UnixMilli(int64(r.Timestamp * 1000)),
	}
}

// contentText returns the text of a content that is a string or a list of parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, "\n")
}
