package sandbox

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/newos4/relay/pkg/untrusted"
)

const maxNameBytes = 255

// The names that stay closed, in their folded form (see fold). They apply to
// each component of a path, directories included. They err on the side of
// closing: that a page on "password rules" cannot be read is a smaller loss
// than a password.
var (
	closedNames = []string{
		"netrc", "_netrc", "shadow", "shadow-", "gshadow", "gshadow-",
		"kubeconfig", "keytab", "wallet.dat", "authorized_keys",
	}
	closedPrefixes = []string{
		".", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss", "ssh_host_",
	}
	closedSuffixes = []string{"_history"}
	closedParts    = []string{
		"secret", "credential", "password", "passwd", "passphrase", "token",
		"apikey", "api_key", "api-key", "privatekey", "private_key", "private-key", "privkey",
		"serviceaccount", "service_account", "service-account", "keystore", "keyring",
	}
	// closedExtensions close a name wherever they stand behind its first dot, so
	// that "app.env.local", "server.key.bak" and "site.pem~" are closed too.
	closedExtensions = []string{
		"env", "pem", "key", "p12", "pfx", "p8", "pk8", "ppk", "jks", "jceks", "bks",
		"kdb", "kdbx", "keytab", "gpg", "pgp", "age", "ovpn", "tfstate", "tfvars",
		"mdb", "accdb", "rdb", "ldb", "dump",
	}
	closedExtensionPrefixes = []string{"sqlite", "db"}
)

// isClosed reports whether the name rules close a path component, whatever its
// case and however it is written in Unicode.
func isClosed(name string) bool {
	if !isPlain(name) {
		return true
	}
	folded := fold(name)
	return folded == "" ||
		slices.Contains(closedNames, folded) ||
		hasAny(folded, closedPrefixes, strings.HasPrefix) ||
		hasAny(folded, closedSuffixes, strings.HasSuffix) ||
		hasAny(folded, closedParts, strings.Contains) ||
		hasClosedExtension(folded) ||
		isShortAlias(folded)
}

// isPlain reports whether a name can be shown and passed on as it is: one line
// of valid UTF-8 without a character that is invisible or acts on a terminal.
// Ignorable characters are also what some file systems drop when they compare
// names, so that ".e\u200bnv" would open ".env"; joiners and variation selectors,
// which text may have, are no exception here.
func isPlain(name string) bool {
	return name != "" && len(name) <= maxNameBytes && utf8.ValidString(name) &&
		!strings.ContainsAny(name, "/\\\u200c\u200d\ufe0e\ufe0f") && untrusted.Line(name) == name
}

// fold maps every spelling under which some file system would find the same
// name to one: compatibility forms and case (casefolding ext4 and f2fs, ZFS,
// vfat, CIFS), and the dots and spaces at the end that vfat and CIFS drop. The
// tilde at the end is an editor's backup of the same file.
func fold(name string) string {
	if isASCII(name) {
		name = strings.ToLower(name)
	} else {
		name = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
	}
	return strings.TrimLeft(strings.TrimRight(name, ". ~"), " ")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hasClosedExtension looks at the letters and digits behind each dot. A colon
// counts as one: it introduces the streams of NTFS, one of which is the file.
func hasClosedExtension(folded string) bool {
	parts := strings.FieldsFunc(folded, func(r rune) bool { return r == '.' || r == ':' })
	for _, part := range parts[min(1, len(parts)):] {
		end := strings.IndexFunc(part, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9')
		})
		if end >= 0 {
			part = part[:end]
		}
		if slices.Contains(closedExtensions, part) || hasAny(part, closedExtensionPrefixes, strings.HasPrefix) {
			return true
		}
	}
	return false
}

// isShortAlias reports whether name looks like the 8.3 form under which vfat
// finds a longer name, whose letters say nothing about it: "CREDEN~1".
func isShortAlias(folded string) bool {
	for i := range len(folded) - 1 {
		if folded[i] == '~' && folded[i+1] >= '0' && folded[i+1] <= '9' {
			return true
		}
	}
	return false
}

func hasAny(s string, list []string, has func(s, part string) bool) bool {
	for _, item := range list {
		if has(s, item) {
			return true
		}
	}
	return false
}
