package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/newos4/relay/pkg/workspace/api"
)

// schemas holds answers to the description.
type schemas struct {
	document obj
	compiler *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
	// seen are the operations, statuses and codes that were answered.
	seen map[string]bool
}

const documentURL = "file:///openapi.json"

func newSchemas(t testing.TB, a *api.API) *schemas {
	t.Helper()
	text, err := a.Description()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(documentURL, document); err != nil {
		t.Fatal(err)
	}
	return &schemas{document: document.(obj), compiler: compiler, compiled: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
}

// at returns the schema at a pointer.
func (s *schemas) at(pointer string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[pointer]; known != nil {
		return known, nil
	}
	compiled, err := s.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		return nil, err
	}
	s.compiled[pointer] = compiled
	return compiled, nil
}

// operation returns the template of the path that a request is for.
func (s *schemas) operation(r *http.Request) (template string, ok bool) {
	method := strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	best := -1
	for at, item := range s.document["paths"].(obj) {
		literal, matches := match(at, r.URL.EscapedPath())
		if _, has := item.(obj)[method]; matches && has && literal > best {
			template, best, ok = at, literal, true
		}
	}
	return template, ok
}

// match reports whether a path is one of a template's, and how many of its parts
// are literal.
func match(template, path string) (literal int, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return 0, false
	}
	for i := range want {
		switch {
		case want[i] == got[i]:
			literal++
		case !strings.HasPrefix(want[i], "{") || got[i] == "":
			return 0, false
		}
	}
	return literal, true
}

// key names what was answered: "get /api/app/agents 404 not_found".
func key(method, template string, status int, code string) string {
	return strings.TrimSpace(strings.ToLower(method) + " " + template + " " + strconv.Itoa(status) + " " + code)
}

// check returns an error unless the answer is one that the description has for the
// request. What is no path of the description is answered with 404, 405 or 410.
func (s *schemas) check(r *http.Request, a answer) error {
	template, ok := s.operation(r)
	if !ok {
		if !slices.Contains([]int{404, 405, 410, 421, 403}, a.status) {
			return fmt.Errorf("%s answers %d and is not in the description", a.what, a.status)
		}
		return nil
	}
	if a.status == http.StatusGone {
		return nil // a retired path or an upgrade, which is no operation
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	method := strings.ToLower(r.Method)
	isHead := method == "head"
	if isHead {
		method = "get"
	}
	pointer := "/paths/" + escape.Replace(template) + "/" + method + "/responses/" + strconv.Itoa(a.status)
	response, ok := s.document["paths"].(obj)[template].(obj)[method].(obj)["responses"].(obj)[strconv.Itoa(a.status)].(obj)
	if !ok {
		return fmt.Errorf("%s answers %d %.300s, which the description does not have", a.what, a.status, a.body)
	}
	code, _ := a.json["code"].(string)
	if a.status < 400 {
		code = ""
	}
	s.note(key(method, template, a.status, code))
	if _, isJSON := response["content"].(obj)["application/json"]; !isJSON || isHead {
		return nil
	}
	schema, err := s.at(pointer + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s answers %d %.2000s", a.what, a.status, a.body), err)
	}
	return nil
}

func (s *schemas) note(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[key] = true
}

// promised returns every operation with each of its statuses and codes.
func (s *schemas) promised() []string {
	var all []string
	for at, item := range s.document["paths"].(obj) {
		for method, op := range item.(obj) {
			for word, response := range op.(obj)["responses"].(obj) {
				status, _ := strconv.Atoi(word)
				codes := []string{""}
				if status >= 400 {
					codes = nil
					content := response.(obj)["content"].(obj)["application/json"].(obj)["schema"].(obj)
					for _, code := range content["properties"].(obj)["code"].(obj)["enum"].([]any) {
						codes = append(codes, code.(string))
					}
				}
				for _, code := range codes {
					all = append(all, key(method, at, status, code))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}
