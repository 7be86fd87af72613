package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/newos4/relay/pkg/workspace/api"
)

// Ensures that the description is OpenAPI 3.1, and that no object in it may have
// fields that it does not name, but for those that are the upstream's own.
func TestDescription_IsOpenAPI(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text, err := f.api.Description()
	if err != nil {
		t.Fatal(err)
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	check, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if valid, problems := check.ValidateDocument(); !valid {
		for _, p := range problems {
			t.Errorf("%s: %s: %v", p.Message, p.Reason, p.SchemaValidationErrors)
		}
	}
	open := []string{"Usage", "Tool", "Profile", "Description", "Event", "Anything"}
	for name, schema := range f.schema.document["components"].(obj)["schemas"].(obj) {
		if schema.(obj)["additionalProperties"] != false && !slices.Contains(open, name) {
			t.Errorf("%s may have any field", name)
		}
	}
}

// Ensures that the description has every route that is served, and no other.
func TestDescription_HasEveryRoute(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*api.Options){
		"everything": func(*api.Options) {},
		"no voice":   func(o *api.Options) { o.Voice = false },
		"no nodes":   func(o *api.Options) { o.Upstreams = nil },
	} {
		f := newFixture(t, change)
		var served, described []string
		for _, r := range f.routes {
			served = append(served, strings.ToLower(r.Method)+" "+r.Path)
		}
		for path, item := range f.schema.document["paths"].(obj) {
			for method := range item.(obj) {
				described = append(described, method+" "+path)
			}
		}
		slices.Sort(served)
		slices.Sort(described)
		if !equal(served, described) {
			t.Errorf("%s: served are\n%v\ndescribed are\n%v", what, served, described)
		}
	}
}
