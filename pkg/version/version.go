// Package version tells which build of the program this is.
package version

import (
	"runtime/debug"
	"strings"
)

// String describes the build: the module's version, or the commit it was
// built from, and the toolchain.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of an unknown build"
	}
	parts := []string{info.Main.Version}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			parts = append(parts, s.Value)
		}
	}
	return strings.Join(append(parts, info.GoVersion), " ")
}
