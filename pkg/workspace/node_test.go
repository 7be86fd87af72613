package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/newos4/relay/pkg/workspace"
)

// Ensure that a node's URL is plain http or https (section 3.8), and that its
// credentials print as a placeholder (section 9.4).
func TestCheckNode(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]workspace.Code{
		"https://hermes.example":              "",
		"http://10.0.0.2:9119/base/":          "",
		"ftp://hermes.example":                workspace.CodeInvalidNode,
		"https://u:p@hermes.example":          workspace.CodeInvalidNode,
		"https://hermes.example?x=1":          workspace.CodeInvalidNode,
		"https://hermes.example?":             workspace.CodeInvalidNode,
		"https://hermes.example#x":            workspace.CodeInvalidNode,
		"https://":                            workspace.CodeInvalidNode,
		"//hermes.example":                    workspace.CodeInvalidNode,
		"javascript:alert(1)":                 workspace.CodeInvalidNode,
		"":                                    workspace.CodeInvalidRequest,
		"http://" + strings.Repeat("x", 2048): workspace.CodeInvalidRequest,
	} {
		in := workspace.NewNode{Name: workspace.Some("家"), URL: workspace.Some(url), Username: workspace.Some("u"), Password: workspace.Some("geheim")}
		node, secret, err := workspace.CheckNode(in, "n")
		wantCode(t, err, want)
		if err == nil && strings.HasSuffix(node.URL, "/") {
			t.Errorf("%s is stored as %s", url, node.URL)
		}
		if text := fmt.Sprintf("%v %+v %#v", secret, secret, secret); strings.Contains(text, "geheim") {
			t.Errorf("the password is printed: %s", text)
		}
	}
}

// Ensure that a renamed session stays protected under all of its names (sections
// 2.11 and 9.3).
func TestBindingAliases(t *testing.T) {
	t.Parallel()
	b := workspace.Binding{StoredID: "one", RuntimeID: "run"}
	b = b.Rename("two").Rename("two").Rename("one").Rename("")
	for _, name := range []string{"one", "two", "run"} {
		if !b.Names(name) {
			t.Errorf("%+v does not name %s", b, name)
		}
	}
	if b.Names("") || b.Names("three") || b.StoredID != "one" {
		t.Errorf("%+v names too much", b)
	}
}
