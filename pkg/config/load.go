package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Source says where the values come from.
type Source struct {
	// File is the YAML file that the caller was told to read; it must exist.
	// Empty means DefaultFile, which may be missing.
	File string
	// DefaultFile stands in for [DefaultFile]; tests set it.
	DefaultFile string
	// Env is the environment, as of [os.Environ].
	Env []string
	// Flags are flags by key. One that the user did not give counts for nothing.
	Flags map[string]*pflag.Flag
}

// Error lists everything that is wrong with a configuration.
type Error struct {
	// Problems names, each in a line, key, value and reason.
	Problems []string

	causes []error
}

// Unwrap returns the errors behind the problems, such as of a file that may not
// be read.
func (e *Error) Unwrap() []error { return e.causes }

// Error returns all problems, one a line when there are several.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0]
	}
	return fmt.Sprintf("configuration: %d problems:\n  %s", len(e.Problems), strings.Join(e.Problems, "\n  "))
}

const envPrefix = "RELAYD_"

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Load returns the effective configuration, or an [*Error] with everything that
// is wrong with it.
func Load(source Source) (*Config, error) {
	c := new(Config)
	l := &loader{options: c.Options(), viper: viper.New(), origin: make(map[string]string)}
	for _, o := range l.options {
		l.viper.SetDefault(o.Key, o.Default)
	}
	// Each later layer covers the ones before it.
	l.readFile(source)
	l.readEnv(source.Env)
	l.bindFlags(source.Flags)
	l.assign()
	if len(l.problems) == 0 {
		l.check(c)
	}
	if len(l.problems) > 0 {
		return nil, &Error{Problems: l.problems, causes: l.causes}
	}
	return c, nil
}

type loader struct {
	options  []Option
	viper    *viper.Viper
	origin   map[string]string // where a key's value came from, for messages
	problems []string
	causes   []error
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (l *loader) option(key string) *Option {
	i := slices.IndexFunc(l.options, func(o Option) bool { return o.Key == key })
	if i < 0 {
		return nil
	}
	return &l.options[i]
}

func (l *loader) readFile(source Source) {
	path, optional := source.File, false
	if path == "" {
		path, optional = source.DefaultFile, true
	}
	if path == "" {
		path = DefaultFile
	}
	data, err := os.ReadFile(path)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.problem("%v", err)
		l.causes = append(l.causes, err)
		return
	}
	document, err := parseYAML(data)
	if err != nil {
		for _, complaint := range complaints(err) {
			l.problem("%s: %s", path, complaint)
		}
		return
	}
	for _, root := range document.Content {
		l.mergeFile(path, "", root)
	}
}

// complaints returns what is wrong with a file that is not the YAML it should be,
// each in a line. The library puts several, such as keys that stand twice, into
// one error below a heading that tells people nothing.
func complaints(err error) []string {
	if several, ok := errors.AsType[*yaml.TypeError](err); ok {
		return several.Errors
	}
	return []string{strings.TrimPrefix(err.Error(), "yaml: ")}
}

// parseYAML returns the one document of a file, a mapping in which no key stands
// twice.
func parseYAML(data []byte) (yaml.Node, error) {
	var document yaml.Node
	// Decoding to a map checks the keys, which decoding to a node does not.
	if err := yaml.Unmarshal(data, new(map[string]any)); err != nil {
		return document, err
	}
	if err := checkSingle(data); err != nil {
		return document, err
	}
	return document, yaml.Unmarshal(data, &document)
}

// checkSingle refuses a second document, which would be passed over.
func checkSingle(data []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var skipped yaml.Node
	if err := documents.Decode(&skipped); err != nil {
		return nil // an empty file; what else is wrong was found before
	}
	if err := documents.Decode(&skipped); !errors.Is(err, io.EOF) {
		return errors.New("something follows the first document; all keys belong into one")
	}
	return nil
}

// mergeFile takes the keys of one level of the file. Viper would fold their
// case and pass over unknown ones, so they are checked first, as they stand.
// Values are taken as they are written: YAML would make 0123 the number 83.
func (l *loader) mergeFile(path, prefix string, mapping *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := prefix+mapping.Content[i].Value, resolve(mapping.Content[i+1])
		place := fmt.Sprintf("%s:%d", path, mapping.Content[i].Line)
		o := l.option(key)
		switch isMap := value.Kind == yaml.MappingNode; {
		case o == nil && isMap && l.isSection(key):
			l.mergeFile(path, key+".", value)
		case o == nil && value.Tag == "!!null" && l.isSection(key):
			// A section whose lines are all commented out.
		case o == nil:
			l.problem("%s: unknown key in %s%s", key, place, l.hint(key))
		case isMap:
			l.problem("%s: is a section in %s and should be a value", key, place)
		case value.Kind == yaml.SequenceNode && !o.IsList:
			l.problem("%s: is a list in %s and should be one value", key, place)
		case holdsSections(value):
			l.problem("%s: is a list in %s that holds more than plain values", key, place)
		case l.origin[key] != "":
			l.problem("%s: stands twice, in %s and %s", key, l.origin[key], place)
		default:
			l.merge(o, scalar(value), place)
		}
	}
}

// resolve returns what an alias stands for.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// holdsSections reports whether an item of a list is a list or has keys of its
// own.
func holdsSections(list *yaml.Node) bool {
	return list.Kind == yaml.SequenceNode && slices.ContainsFunc(list.Content, func(item *yaml.Node) bool {
		return resolve(item).Kind != yaml.ScalarNode
	})
}

// scalar returns a value as it is written; a list becomes its items with commas.
func scalar(node *yaml.Node) string {
	if node.Kind != yaml.SequenceNode {
		if node.Tag == "!!null" {
			return ""
		}
		return node.Value
	}
	items := make([]string, len(node.Content))
	for i, item := range node.Content {
		items[i] = scalar(resolve(item))
	}
	return joinList(items)
}

// merge lays a value over what earlier layers said.
func (l *loader) merge(o *Option, text, origin string) {
	tree := map[string]any{}
	leaf := tree
	parts := strings.Split(o.Key, ".")
	for _, part := range parts[:len(parts)-1] {
		next := map[string]any{}
		leaf[part], leaf = next, next
	}
	leaf[parts[len(parts)-1]] = text
	if err := l.viper.MergeConfigMap(tree); err != nil {
		l.problem("%s: %v in %s", o.Key, err, origin)
		return
	}
	l.origin[o.Key] = origin
}

func (l *loader) readEnv(env []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		i := slices.IndexFunc(l.options, func(o Option) bool { return o.Env() == name })
		if i < 0 {
			l.problem("%s: unknown variable in the environment", name)
			continue
		}
		l.merge(&l.options[i], value, name)
	}
}

func (l *loader) bindFlags(flags map[string]*pflag.Flag) {
	for key, flag := range flags {
		if err := l.viper.BindPFlag(key, flag); err != nil {
			l.problem("%s: %v", key, err)
		}
		if flag.Changed {
			l.origin[key] = "--" + flag.Name
		}
	}
}

// assign parses every value into the Config that the options are bound to.
func (l *loader) assign() {
	for _, o := range l.options {
		text := l.viper.GetString(o.Key)
		err := o.value.Set(text)
		if err == nil {
			continue
		}
		origin := l.origin[o.Key]
		if origin == "" {
			origin = "the default"
		}
		l.problem("%s: %q %v (from %s)", o.Key, text, err, origin)
	}
}

// check finds values that do not go together.
func (l *loader) check(c *Config) {
	needs := map[string][]string{
		BackendOpenAI:  {"agent.openai.base_url", "agent.openai.model"},
		BackendHermes:  {"agent.hermes.base_url"},
		BackendCommand: {"agent.command.argv"},
		BackendExtract: {"agent.roots"},
	}
	for _, key := range needs[c.Agent.Backend] {
		if l.option(key).Value() == "" {
			l.problem("%s: is empty, and agent.backend %s needs it", key, c.Agent.Backend)
		}
	}
}

func (l *loader) isSection(key string) bool {
	return slices.ContainsFunc(l.options, func(o Option) bool { return strings.HasPrefix(o.Key, key+".") })
}

// hint names the key that was probably meant: one that reads the same but for
// case, separators and plural. A key in a section that exists is looked for in
// there alone; elsewhere a like name means something else.
func (l *loader) hint(key string) string {
	section, _ := cutLast(key)
	for _, o := range l.options {
		if !strings.HasPrefix(o.Key, section) && l.isSection(strings.TrimSuffix(section, ".")) {
			continue
		}
		if spelling(o.Key) == spelling(key) {
			return "; did you mean " + o.Key + "?"
		}
	}
	return ""
}

// spelling is what remains of a key's last part without case, separators and
// plural.
func spelling(key string) string {
	_, name := cutLast(key)
	name = strings.NewReplacer("-", "", "_", "", "ies", "y").Replace(strings.ToLower(name))
	return strings.TrimSuffix(name, "s")
}

// cutLast splits a key behind its last dot.
func cutLast(key string) (section, name string) {
	i := strings.LastIndexByte(key, '.') + 1
	return key[:i], key[i:]
}
