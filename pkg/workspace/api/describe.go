package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace"
)

// outline is the description in its short form: see openapi/0-head.yaml.
type outline struct {
	Info       object               `yaml:"info"`
	Operations map[string]operation `yaml:"operations"`
	Schemas    map[string]schema    `yaml:"schemas"`
}

type object = map[string]any

// operation is one method of one path.
type operation struct {
	Says string `yaml:"says"`
	// Access is "" for signed-in users, "due" also while a password change is due,
	// "admin" or "anyone".
	Access string            `yaml:"access"`
	Query  map[string]string `yaml:"query"`
	// Takes is the schema of the JSON body, or "multipart".
	Takes string `yaml:"takes"`
	// Answers maps a status to a schema, or to "bytes".
	Answers map[int]string `yaml:"answers"`
	// Refuses maps a status to codes, besides those that Access and Takes imply.
	Refuses map[int][]string `yaml:"refuses"`
}

// schema is an object of fields that must and that may be there, or any schema.
type schema struct {
	Has map[string]any `yaml:"has"`
	May map[string]any `yaml:"may"`
	Raw object         `yaml:"raw"`
}

// Words of outlines.
const (
	multipartBody = "multipart"
	byteAnswer    = "bytes"
	anyone        = "anyone"
	due           = "due"
	adminOnly     = "admin"
)

// document returns the outline as an OpenAPI document.
func (o outline) document() (object, error) {
	paths, schemas := make(object), object{"Error": errorSchema()}
	for _, head := range slices.Sorted(maps.Keys(o.Operations)) {
		method, at, ok := strings.Cut(head, " ")
		if !ok {
			return nil, fmt.Errorf("the operation %q has no path", head)
		}
		item, _ := paths[fullPath(at)].(object)
		if item == nil {
			item = make(object)
			paths[fullPath(at)] = item
		}
		item[method] = o.Operations[head].written(method, fullPath(at))
	}
	for name, s := range o.Schemas {
		schemas[name] = s.written()
	}
	return object{
		"openapi": "3.1.0", "info": o.Info, "paths": paths,
		"components": object{"schemas": schemas, "securitySchemes": object{
			"session": object{"type": "apiKey", "in": "cookie", "name": account.SessionCookie},
			"csrf":    object{"type": "apiKey", "in": "header", "name": account.CSRFHeader},
		}},
	}, nil
}

func fullPath(at string) string {
	if root, ok := strings.CutPrefix(at, "//"); ok {
		return "/" + root
	}
	return prefix + at
}

func isWrite(method string) bool { return method != "get" }

// written returns the operation in full.
func (op operation) written(method, at string) object {
	full := object{
		"summary": op.Says, "operationId": method + operationName(at),
		"responses": op.responses(method, at), "security": op.security(method, at),
	}
	if parameters := op.parameters(at); len(parameters) > 0 {
		full["parameters"] = parameters
	}
	if op.Takes != "" {
		full["requestBody"] = op.body()
	}
	return full
}

// operationName returns a path as one word.
func operationName(at string) string {
	var name strings.Builder
	words := strings.FieldsFunc(strings.TrimPrefix(at, prefix), func(r rune) bool { return strings.ContainsRune("/{}-.", r) })
	for _, word := range words {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

func (op operation) security(method, at string) []object {
	needs := make(object)
	if op.Access != anyone {
		needs["session"] = []string{}
	}
	if isWrite(method) && strings.HasPrefix(at, prefix) {
		needs["csrf"] = []string{}
	}
	return []object{needs}
}

func (op operation) parameters(at string) []object {
	var list []object
	for _, part := range strings.Split(at, "/") {
		if name := strings.Trim(part, "{}"); name != part {
			list = append(list, object{"name": name, "in": "path", "required": true, "schema": typeOf("string")})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(op.Query)) {
		list = append(list, object{"name": name, "in": "query", "schema": typeOf(op.Query[name])})
	}
	return list
}

func (op operation) body() object {
	if op.Takes == multipartBody {
		files := object{"type": "object", "additionalProperties": object{"type": "string", "contentMediaType": workspace.NeutralMIMEType}}
		return object{"required": true, "content": object{"multipart/form-data": object{"schema": files}}}
	}
	return object{"content": jsonOf(typeOf(op.Takes))}
}

func jsonOf(schema object) object { return object{"application/json": object{"schema": schema}} }

// responses returns what the operation answers: its own, and what the guard says
// to every request of its kind.
func (op operation) responses(method, at string) object {
	all := make(object)
	for status, name := range op.Answers {
		content := object{"*/*": object{"schema": object{}}}
		if name != byteAnswer {
			content = jsonOf(typeOf(name))
		}
		all[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": content}
	}
	for status, codes := range op.refusals(method, at) {
		slices.Sort(codes)
		refused := object{"allOf": []object{typeOf("Error")}, "properties": object{"code": object{"enum": codes}}}
		all[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": jsonOf(refused)}
	}
	return all
}

// refusals returns the codes that the operation may refuse with, by status.
func (op operation) refusals(method, at string) map[int][]string {
	all := make(map[int][]string)
	add := func(status int, codes ...account.Code) {
		for _, code := range codes {
			if !slices.Contains(all[status], string(code)) {
				all[status] = append(all[status], string(code))
			}
		}
	}
	for status, codes := range op.Refuses {
		for _, code := range codes {
			add(status, account.Code(code))
		}
	}
	add(http.StatusMisdirectedRequest, account.CodeInvalidHost)
	if isWrite(method) && strings.HasPrefix(at, prefix) {
		add(http.StatusForbidden, account.CodeInvalidOrigin, account.CodeInvalidCSRF)
	}
	if op.Takes != "" && op.Takes != multipartBody {
		add(http.StatusBadRequest, account.CodeInvalidJSON)
		add(http.StatusRequestEntityTooLarge, account.CodeInvalidJSON)
		if op.Takes != "Anything" {
			add(http.StatusBadRequest, account.CodeInvalidRequest)
		}
	}
	if op.Access != anyone {
		add(http.StatusUnauthorized, account.CodeUnauthenticated)
		add(http.StatusInternalServerError, account.CodeInternal)
	}
	if op.Access == "" || op.Access == adminOnly {
		add(http.StatusPreconditionRequired, account.CodePasswordDue)
	}
	if op.Access == adminOnly {
		add(http.StatusForbidden, account.CodeAdminRequired)
	}
	return all
}

// errorSchema is the body of every refusal (section 1.8).
func errorSchema() object {
	return schema{Has: map[string]any{"error": "string", "code": "string"}}.written()
}

// written returns the schema in full.
func (s schema) written() object {
	if s.Raw != nil {
		return s.Raw
	}
	properties := make(object)
	for _, fields := range []map[string]any{s.Has, s.May} {
		for name, field := range fields {
			properties[name] = typeOf(field)
		}
	}
	return object{
		"type": "object", "additionalProperties": false,
		"properties": properties, "required": slices.Sorted(maps.Keys(s.Has)),
	}
}

// typeOf returns the schema that a word of an outline stands for. What is no word
// is a schema already.
func typeOf(field any) object {
	word, ok := field.(string)
	if !ok {
		full, _ := field.(object)
		return full
	}
	if inner, ok := strings.CutSuffix(word, "?"); ok {
		return object{"anyOf": []object{typeOf(inner), {"type": "null"}}}
	}
	if inner, ok := strings.CutSuffix(word, "{}"); ok {
		return object{"type": "object", "additionalProperties": typeOf(inner)}
	}
	if inner, ok := strings.CutSuffix(word, "[]"); ok {
		return object{"type": "array", "items": typeOf(inner)}
	}
	if strings.Contains(word, "|") {
		return object{"type": "string", "enum": strings.Split(word, "|")}
	}
	return plainType(word)
}

func plainType(word string) object {
	switch word {
	case "any":
		return object{}
	case "string", "number":
		return object{"type": word}
	case "bool":
		return object{"type": "boolean"}
	case "int":
		return object{"type": "integer"}
	case "millis":
		return object{"type": "integer", "minimum": 0}
	case "uuid":
		return object{"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
	}
	return object{"$ref": "#/components/schemas/" + word}
}
