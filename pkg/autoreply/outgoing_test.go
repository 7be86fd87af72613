package autoreply

import (
	"os"
	"strings"
	"testing"
)

// Ensures that what a display could fetch, run or hide is words in an answer,
// and that ordinary text and code pass as they are (dust-tt/dust#12359).
func TestOutgoing_Defangs(t *testing.T) {
	t.Parallel()
	o := NewOutgoing(nil)
	for name, test := range map[string]struct{ in, want string }{
		"plain":              {"  Hello, 世界.\r\n\tBye. ", "Hello, 世界.\n\tBye."},
		"url":                {"See https://a.example/x?y=1.", "See https://a.example/x?y=1."},
		"comparison":         {"a < b && c <= d", "a < b && c <= d"},
		"emoji":              {"👨‍👩‍👧‍👦 ❤️", "👨‍👩‍👧‍👦 ❤️"},
		"image":              {"![x](https://evil.example/p?d=1)", "![x] (https://evil.example/p?d=1)"},
		"image over lines":   {"![x](\nhttps://evil.example)", "![x] (\nhttps://evil.example)"},
		"nested image":       {"[![x](a)](b)", "[![x] (a)] (b)"},
		"reference":          {"![x][1]\n\n[1]: https://evil.example", "![x][1]\n\n[1] : https://evil.example"},
		"html image":         {`<img src="https://evil.example">`, `< img src="https://evil.example">`},
		"script":             {"<script>x</script>", "< script>x< /script>"},
		"comment":            {"<!-- x --><?php", "< !-- x -->< ?php"},
		"autolink":           {"<https://evil.example>", "< https://evil.example>"},
		"data uri":           {"data:text/html;base64,PHg+ and DATA:,x", "data :text/html;base64,PHg+ and DATA :,x"},
		"data uri behind":    {"data:data:text/html,x javascript:javascript:data:x", "data :data :text/html,x javascript :javascript :data :x"},
		"the word data":      {"the data: five", "the data: five"},
		"javascript":         {"JavaScript:alert(1)", "JavaScript :alert(1)"},
		"tag characters":     {"hi\U000E0041\U000E0042", "hi"},
		"bidi":               {"a\u202eb\u2066c", "abc"},
		"escape":             {"\x1b[31mred\x07", "[31mred"},
		"selectors":          {"a\ufe00\U000e0100\u034f\u3164b", "ab"},
		"zero width in tag":  {"<\u200bimg>", "< img>"},
		"zero width in link": {"]\u200b(x)", "] (x)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := o.Clean(test.in); err != nil || got != test.want {
				t.Errorf("Clean(%q) = %q, %v; want %q", test.in, got, err, test.want)
			}
		})
	}
}

// Ensures that no answer carries a token, a configured key or a marked secret,
// also when it is broken up, and that ordinary hex passes.
func TestOutgoing_KeepsSecrets(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0123456789abcdef", 4)
	o := NewOutgoing([]string{"correct horse battery", "short"})
	for _, text := range []string{
		hex, "token " + strings.ToUpper(hex) + ".", "x" + hex, hex[:32] + "\u200b" + hex[32:], hex[:32] + "\u200d" + hex[32:],
		"correct\u200dhorse\u200c\ufe0fbattery", "relay\u200d-secret", hex[:32] + "\ufe0f" + hex[32:],
		"the key is correcthorsebattery", "c o r r e c t\nhorse battery", "-----BEGIN RSA PRIVATE KEY-----", "sk-abcdefghijklmnopqrstuvwx",
		"ghp_abcdefghijklmnopqrstuvwx", "AKIAIOSFODNN7EXAMPLE", "RELAY-SECRET canary",
	} {
		if _, err := o.Clean(text); failureOf(err).Reason != ReasonSecret {
			t.Errorf("Clean(%q) = %v, want a secret", text, err)
		}
	}
	for _, text := range []string{hex[:40], hex + "00", "short", "a public key"} {
		if got, err := o.Clean(text); err != nil || got != text {
			t.Errorf("Clean(%q) = %q, %v", text, got, err)
		}
	}
}

// Ensures that cleaning is stable, leaves no way to fetch or run anything, and
// never panics.
func FuzzOutgoing(f *testing.F) {
	f.Add("![x](y) <img> data:text/html,x [1]: z")
	f.Add("]\u200b( <\u202ea")
	o := NewOutgoing([]string{"a configured key"})
	f.Fuzz(func(t *testing.T, text string) {
		clean, err := o.Clean(text)
		if err != nil {
			return
		}
		for _, bad := range []string{"](", "]:"} {
			if strings.Contains(clean, bad) {
				t.Errorf("Clean(%q) keeps %q: %q", text, bad, clean)
			}
		}
		if o.tag.MatchString(clean) || o.scheme.MatchString(clean) {
			t.Errorf("Clean(%q) keeps a tag or a scheme: %q", text, clean)
		}
		if again, err := o.Clean(clean); err != nil || again != clean {
			t.Errorf("Clean is not stable: %q, %q, %v", clean, again, err)
		}
	})
}

// Ensures that this project's own manual, which the agent quotes by default, can
// be quoted.
func TestOutgoing_ManualIsNoSecret(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewOutgoing(nil).Clean(string(manual)); err != nil {
		t.Error(err)
	}
}
