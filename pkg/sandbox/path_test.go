package sandbox

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Ensures that what is likely to be a secret stays closed however its name is
// written, and that what documentation is made of stays open.
func TestIsClosed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		// dot files, and what some file system takes for one
		".", "..", "...", ".env", ".git", ".ssh", ".netrc", ".htpasswd", ".a", " .env", "…",
		// keys
		"id_rsa", "id_rsa.pub", "ID_RSA", "id_rsa.old", "id_ed25519_work", "id_ecdsa", "id_dsa", "ssh_host_rsa_key",
		"server.pem", "SERVER.PEM", "site.key", "site.key.bak", "site.key-old", "site.key (copy)", "a.p12", "a.pfx", "a.ppk",
		"vault.kdbx", "vault.KdBx", "release.gpg", "krb5.keytab", "private-key.txt", "PrivateKey.xml", "my_api_key.txt",
		// words
		"secret", "Secrets.yaml", "client_secret.json", "top-SECRET.md", "credentials", "aws_credentials.csv",
		"password.txt", "old-passwords", "passwd", "passphrase.md", "token", "TOKENS.json", "github_token",
		"service-account.json", "netrc", "_netrc", "shadow", "shadow-", "bash_history", "kubeconfig", "wallet.dat",
		// environments, databases
		"prod.env", "PROD.ENV", "prod.env.local", "a.b.env", "prod.env~", "prod.env.", "prod.env ", "prod.env_old",
		"app.db", "app.DB", "app.db-wal", "app.db3", "app.sqlite", "app.sqlite3-journal", "app.SQLite.gz", "dump.rdb",
		"terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars",
		// names under which another one is found
		"CREDEN~1", "a~2.txt", "site.key::$DATA", "prod.env:x",
		"ＳＥＣＲＥＴ.txt", "ſecret.md", "paßword", "toKen", "．env", "app．db", "server.ｐｅｍ", "ⓢⓔⓒⓡⓔⓣ", "ﬁle.ⓔⓝⓥ",
		// names that are not plain
		"", "a\x00b", "a\nb", "a/b", `a\b`, "a\u200bb", "\u202etxt", "e\u0301\u200d\u0301", "ſ\ufe0fecret", "1\ufe0f", "\xff", "\ue000",
		strings.Repeat("x", 256),
	} {
		if !isClosed(name) {
			t.Errorf("%q is open", name)
		}
	}
	for _, name := range []string{
		"README.md", "docs", "a", "index.html", "environment.md", "keyboard.md", "main.go", "go.mod", "newos4-chat.7",
		"key-value.md", "env", "db", "database.md", "sqlite.md", "monkey", "donkey.txt", "Änderungen.md", "日本語.txt", "50% off.txt",
		"%2e%2e", "a b", "rules.of.the.house", "naïve café", "release-1.2.3.md", "C++", "x.keys.md", "x.envelope", strings.Repeat("x", 255),
	} {
		if isClosed(name) {
			t.Errorf("%q is closed", name)
		}
	}
}

// Ensures that there is one way to write each location, and no way out.
func TestParsePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]location{
		"":               {},
		"docs":           {root: "docs"},
		"docs/":          {root: "docs"},
		"docs/a":         {root: "docs", names: []string{"a"}},
		"docs/a/":        {root: "docs", names: []string{"a"}},
		"docs/a b/c.md":  {root: "docs", names: []string{"a b", "c.md"}},
		"docs/%2e%2e/x":  {root: "docs", names: []string{"%2e%2e", "x"}},
		"docs/日本語/x.txt": {root: "docs", names: []string{"日本語", "x.txt"}},
		".cfg/x":         {root: ".cfg", names: []string{"x"}},
	} {
		got, err := parsePath(path)
		if err != nil || got.root != want.root || !slices.Equal(got.names, want.names) {
			t.Errorf("parsePath(%q) = %+v, %v, want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{
		"/", "//", "/etc/passwd", "docs//a", "docs/a//", "docs/./a", "docs/../a", "docs/..", "docs/a/../../b", "docs/.",
		"docs/a/..", `docs\a`, `docs\..\a`, `..\..\etc`, "docs/a\x00", "docs/a\x00.txt", "\x00", "docs/\u2024\u2024/x", "docs/․․", "docs/a\n",
		"docs/.env", "docs/sub/.git/config", "docs/.hidden/a.txt", "docs/a.db/x", "docs/tokens/a.txt",
		"docs/\xff", "\xff/a", "docs/" + strings.Repeat("a/", 33) + "x", strings.Repeat("a", 5000), "docs/" + strings.Repeat("a", 256),
	} {
		if got, err := parsePath(path); err == nil {
			t.Errorf("parsePath(%q) = %+v, want an error", path, got)
		}
	}
}

// Ensures that no path leads to a component that the rules close, and that what
// is accepted is written back as it came.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"docs/a/b.md", "docs/../x", "/etc/passwd", `a\b`, "docs/．．/x", "docs/a/", "d/\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		at, err := parsePath(path)
		if err != nil {
			return
		}
		if got := at.String(); got != strings.TrimSuffix(path, "/") {
			t.Errorf("parsePath(%q) is %q", path, got)
		}
		for _, name := range at.names {
			if isClosed(name) || name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") || !utf8.ValidString(name) {
				t.Errorf("parsePath(%q) has the component %q", path, name)
			}
		}
	})
}

// Ensures that no change of case, and nothing that a case-insensitive or
// normalising file system drops, opens a closed name.
func FuzzIsClosed(f *testing.F) {
	f.Add("server.pem", uint64(5), " ")
	f.Add("client_secret.json", uint64(0), ".")
	f.Fuzz(func(t *testing.T, name string, upper uint64, end string) {
		if !isClosed(name) || !utf8.ValidString(name) {
			return
		}
		other := strings.Map(func(r rune) rune {
			upper = upper>>1 | upper<<63
			if upper&1 == 0 || r > unicode.MaxASCII {
				return r
			}
			return unicode.ToUpper(r)
		}, name)
		if !isClosed(other) {
			t.Errorf("%q is closed, %q is not", name, other)
		}
		if strings.Trim(end, ". ~") == "" && !isClosed(other+end) {
			t.Errorf("%q is closed, %q is not", other, other+end)
		}
	})
}
