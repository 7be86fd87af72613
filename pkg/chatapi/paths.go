package chatapi

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/newos4/relay/pkg/chat"
)

// unknownPath refuses every path that is not of the contract: 403 for the data
// directory, however it is spelled, 404 for all others. Nothing is looked up,
// so what exists and what does not look the same (section 1).
func (a *API) unknownPath(r *http.Request) error {
	if a.isData(r.URL.Path) || a.isData(r.URL.EscapedPath()) {
		return chat.Errorf(chat.CodeForbidden, "nothing under %s/ is served", a.data)
	}
	return chat.Errorf(chat.CodeNotFound, "there is nothing at this path")
}

// isData reports whether p leads to the data directory in any reading that a
// server or proxy on the way could have: escaped once or more, with dots,
// doubled or backward slashes, or in another case.
func (a *API) isData(p string) bool {
	const readings = 4
	for range readings {
		straight := strings.ToLower(strings.ReplaceAll(p, `\`, "/"))
		if a.isBelowData(straight) || a.isBelowData(path.Clean("/"+straight)) {
			return true
		}
		next, err := url.PathUnescape(p)
		if err != nil || next == p {
			return false
		}
		p = next
	}
	return false
}

func (a *API) isBelowData(p string) bool {
	data := strings.ToLower(a.data)
	return p == data || strings.HasPrefix(p, data+"/")
}
