package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/jsonbody"
	"github.com/newos4/relay/pkg/workspace"
)

const (
	// probeTime bounds the question to a voice provider.
	probeTime = 10 * time.Second
	// probeBytes bounds its answer.
	probeBytes = 2 << 20
	// maxModels is how many of its models are shown.
	maxModels = 500
)

// How a provider is to be talked to.
const (
	manual       = "manual"
	openAIModels = "openai-compatible"
)

// probeRequest asks whether a provider of voices can be used.
type probeRequest struct {
	Kind          workspace.Optional[string] `json:"kind"`
	Provider      workspace.Optional[string] `json:"provider"`
	Compatibility workspace.Optional[string] `json:"compatibility"`
	BaseURL       workspace.Optional[string] `json:"baseUrl"`
	APIKey        workspace.Optional[string] `json:"apiKey"`
}

type probeResult struct {
	OK                 bool     `json:"ok"`
	Models             []string `json:"models"`
	NormalizedBaseURL  string   `json:"normalizedBaseUrl"`
	ManualModelAllowed bool     `json:"manualModelAllowed"`
	// ErrorSummary is shown to the administrator; empty when all is well.
	ErrorSummary string `json:"errorSummary"`
}

// newProber returns a client that follows no redirect: it would send the key to a
// server that nobody named (section 9.8).
func newProber() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ResponseHeaderTimeout: probeTime},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// probe answers POST /voice/probe (section 3.9).
func (a *API) probe(r *request) error {
	var in probeRequest
	if err := account.Decode(r.Request, &in); err != nil {
		return err
	}
	base, err := in.check()
	if err != nil {
		return err
	}
	result := probeResult{OK: true, Models: []string{}, NormalizedBaseURL: base, ManualModelAllowed: true}
	if in.Compatibility.Or("") == openAIModels {
		result.Models, err = a.models(r.Context(), base, in.APIKey.Or(""))
		result.OK, result.ErrorSummary = err == nil, summaryOf(err)
	}
	return r.json(http.StatusOK, result)
}

// check returns the base URL without what may be left out.
func (in probeRequest) check() (string, error) {
	var faults []workspace.FieldError
	add := func(field, reason string) {
		faults = append(faults, workspace.FieldError{Field: field, Reason: reason})
	}
	for _, member := range []struct {
		field    string
		value    workspace.Optional[string]
		required bool
		limit    int
	}{
		{"kind", in.Kind, true, workspace.MaxProviderName},
		{"provider", in.Provider, false, workspace.MaxProviderName},
		{"compatibility", in.Compatibility, true, workspace.MaxProviderName},
		{"baseUrl", in.BaseURL, true, workspace.MaxNodeURL},
		{"apiKey", in.APIKey, false, workspace.MaxSecret},
	} {
		text := member.value.Or("")
		switch {
		case member.value.IsNull():
			add(member.field, jsonbody.Null)
		case member.required && text == "":
			add(member.field, jsonbody.Missing)
		case utf8.RuneCountInString(text) > member.limit:
			add(member.field, fmt.Sprintf("不能超过 %d 个字符", member.limit))
		}
	}
	if c := in.Compatibility.Or(manual); c != manual && c != openAIModels {
		add("compatibility", "取值无效")
	}
	base, ok := normalBaseURL(in.BaseURL.Or(""))
	if !ok && in.BaseURL.Or("") != "" {
		add("baseUrl", "不是有效的地址")
	}
	if len(faults) > 0 {
		return "", workspace.Invalid(faults...)
	}
	return base, nil
}

// normalBaseURL returns an http or https URL without user, query and fragment and
// without slashes at its end.
func normalBaseURL(raw string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", false
	}
	return strings.TrimRight(u.String(), "/"), true
}

// probeError is a failure of a provider in words for the administrator.
type probeError struct {
	summary string
	cause   error
}

func (e *probeError) Error() string { return e.summary }
func (e *probeError) Unwrap() error { return e.cause }

func summaryOf(err error) string {
	if err == nil {
		return ""
	}
	if known, ok := errors.AsType[*probeError](err); ok {
		return known.summary
	}
	return "无法连接该服务"
}

// models asks a provider for its models.
func (a *API) models(ctx context.Context, base, key string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	none := []string{}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return none, &probeError{"不是有效的地址", err}
	}
	r.Header.Set("Accept", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := a.prober.Do(r)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return none, &probeError{"该服务响应超时", err}
		}
		return none, &probeError{"无法连接该服务", err}
	}
	defer func() { _ = answer.Body.Close() }() // what was needed was read
	if answer.StatusCode != http.StatusOK {
		return none, &probeError{fmt.Sprintf("该服务返回状态 %d", answer.StatusCode), nil}
	}
	return readModels(answer.Body)
}

func readModels(body io.Reader) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	names := []string{}
	if err := json.UnmarshalRead(io.LimitReader(body, probeBytes), &list); err != nil {
		return names, &probeError{"该服务的模型列表无法读取", err}
	}
	for _, model := range list.Data {
		if model.ID != "" && len(names) < maxModels {
			names = append(names, model.ID)
		}
	}
	return names, nil
}
