package diagnosis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// breakage is something wrong with an installation, and what is to be found.
type breakage struct {
	do     func(in *installation)
	check  string
	level  Level
	words  string
	mend   string
	silent string // a check that finds nothing then
}

func testBreakages(t *testing.T, breakages map[string]breakage) {
	t.Helper()
	for name, b := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t)
			b.do(in)
			r := in.run()
			want(t, r, b.check, b.level, b.words, b.mend)
			for _, f := range r.Findings {
				if f.Check == b.silent {
					t.Errorf("unwanted: %+v", f)
				}
			}
		})
	}
}

func chmod(mode os.FileMode) func(in *installation) {
	return func(in *installation) { in.must(os.Chmod(in.store().Path(), mode)) }
}

// Ensures that each thing that can be wrong with files and directories is found,
// with the command that mends it.
func TestDirectories(t *testing.T) {
	t.Parallel()
	testBreakages(t, map[string]breakage{
		"configuration that all may write": {
			do:    func(in *installation) { in.must(os.Chmod(in.configFile(), 0o666)) },
			check: "configuration", level: Failure, words: "may write to", mend: "chmod o-w ",
		},
		"configuration that all may replace": {
			do:    func(in *installation) { in.must(os.Chmod(in.dir, 0o777)) },
			check: "configuration", level: Failure, words: "may replace", mend: "chmod o-w ",
		},
		"configuration that all may write behind a closed door": {
			do: func(in *installation) {
				in.must(os.Chmod(in.configFile(), 0o666))
				in.must(os.Chmod(in.dir, 0o700))
			},
			check: "configuration", level: OK,
		},
		"configuration that is missing": {
			do:    func(in *installation) { in.must(os.Remove(in.configFile())) },
			check: "configuration", level: OK, words: "there is no ",
		},
		"threads that all may write": {do: chmod(os.ModeSetgid | 0o772), check: "directory", level: Failure, words: "2772", mend: "chmod 2770 "},
		"threads that all may list":  {do: chmod(os.ModeSetgid | 0o775), check: "directory", level: Warning, words: "2775", mend: "chmod 2770 "},
		"threads of one user":        {do: chmod(os.ModeSetgid | 0o700), check: "directory", level: Warning, words: "alone", mend: "chmod 2770 "},
		"threads without setgid":     {do: chmod(0o770), check: "directory", level: Warning, words: "group", mend: "chmod g+s "},
		"threads behind a closed door": {
			do:    func(in *installation) { in.must(os.Chmod(filepath.Dir(in.store().Path()), 0o700)) },
			check: "directory", level: Warning, words: "cannot get to", mend: "chmod g+x ",
		},
		"threads that are a file": {
			do: func(in *installation) {
				in.must(os.RemoveAll(in.store().Path()))
				in.must(os.WriteFile(in.store().Path(), nil, 0o600))
			},
			check: "directory", level: Failure, words: "not a directory", silent: "group",
		},
		"a root that refuses": {
			do: func(in *installation) {
				in.must(os.Chmod(in.root, 0))
				in.t.Cleanup(func() { in.must(os.Chmod(in.root, 0o700)) })
				in.unprivileged = true
			},
			check: "directory", level: Failure, words: "permission denied", mend: in0000, silent: "threads",
		},
		"a root that cannot be made": {
			do: func(in *installation) {
				in.must(os.RemoveAll(in.root))
				in.must(os.Chmod(in.dir, 0o511))
				in.t.Cleanup(func() { in.must(os.Chmod(in.dir, 0o700)) })
				in.unprivileged = true
			},
			check: "directory", level: Failure, words: "permission denied", mend: "mode 0511",
		},
		"a lock that refuses": {
			do: func(in *installation) {
				in.must(os.Chmod(in.path(".lock"), 0))
				in.must(os.Chmod(in.store().Path(), 0o777))
				in.openWay()
				in.unprivileged = true
			},
			check: "directory", level: Failure, words: ".lock: permission denied", mend: "mode 0000",
		},
		"a user outside of the group": {
			do:    func(in *installation) { in.give(); in.me.Groups = nil },
			check: "group", level: Warning, words: "not in their group", mend: "adduser ",
		},
		"a user of chat": {
			do:    (*installation).give,
			check: "user", level: Note, words: "may run chat and not relayd", mend: "sudo -u ",
		},
		"state that all may write": {
			do: func(in *installation) {
				in.must(os.MkdirAll(in.root+"/state", 0o770))
				in.must(os.Chmod(in.root+"/state", 0o777))
			},
			check: "state", level: Failure, words: "0777", mend: "chmod o-w ",
		},
		"state that the group may not read": {
			do:    func(in *installation) { in.must(os.Mkdir(in.root+"/state", 0o700)) },
			check: "state", level: Warning, words: "chat cannot show", mend: "chmod 2750 ",
		},
		"state that is a file": {
			do:    func(in *installation) { in.must(os.WriteFile(in.root+"/state", nil, 0o600)) },
			check: "state", level: Failure, words: "not a directory",
		},
	})
}

// in0000 is how the hint names a directory that lets nobody in.
const in0000 = "mode 0000"

// Ensures that threads of root's own group are found: only root itself could run
// chat.
func TestGroup_OfRoot(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	p := newPatient(Options{Config: in.config(), Store: in.store(), Host: in.host})
	p.isOpen, p.owner = true, &fileOwner{Mode: 0o2770}
	found := lookAtGroup(t.Context(), p)
	if len(found) != 1 || found[0].Level != Warning || !strings.HasPrefix(found[0].Mend, "chgrp -R relay ") {
		t.Errorf("found %+v", found)
	}
}

// Ensures that root is told that its eyes see more than those of relayd.
func TestUser_Root(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	p := newPatient(Options{Config: in.config(), Store: in.store(), Host: in.host, ConfigFile: "/etc/relayd/relayd.yaml"})
	p.me.UID, p.owner = 0, &fileOwner{Uid: 4242}
	found := lookAtUser(t.Context(), p)
	if len(found) != 1 || found[0].Level != Note || found[0].Mend != "sudo -u 4242 relayd check" {
		t.Errorf("found %+v", found)
	}
}

// Ensures that each thing that can be wrong with threads is found.
func TestThreads(t *testing.T) {
	t.Parallel()
	testBreakages(t, map[string]breakage{
		"corrupt": {
			do: func(in *installation) {
				in.say(testThread)
				in.must(os.WriteFile(in.path(string(testThread)+".json"), []byte("{"), 0o600))
			},
			check: "threads", level: Failure, words: "is corrupt", mend: "chat reset " + string(testThread),
		},
		"many corrupt": {
			do: func(in *installation) {
				for _, digit := range "01234567" {
					in.must(os.WriteFile(in.path(strings.Repeat(string(digit), 16)+".json"), nil, 0o660))
				}
			},
			check: "threads", level: Failure, words: "3 more threads", mend: "chat poll",
		},
		"unreadable": {
			do: func(in *installation) {
				in.say(testThread)
				in.must(os.Chmod(in.path(string(testThread)+".json"), 0))
				in.must(os.Chmod(in.store().Path(), 0o777))
				in.must(os.Chmod(in.path(".lock"), 0o666))
				in.openWay()
				in.unprivileged = true
			},
			check: "threads", level: Failure, words: "permission denied", mend: in0000,
		},
		"closed to the group": {
			do: func(in *installation) {
				in.say(testThread)
				in.must(os.Chmod(in.path(string(testThread)+".json"), 0o600))
			},
			check: "threads", level: Warning, words: "1 thread, such as " + string(testThread), mend: "chmod 0660 ",
		},
		"crowded": {
			do: func(in *installation) {
				in.say(testThread)
				in.say(otherThread)
				in.set("LIMITS_THREADS", "2")
			},
			check: "threads", level: Warning, words: "2 of at most 2 threads", mend: "limits.threads",
		},
	})
}

// Ensures that the group gets through a directory that is open to all, or to it.
func TestIsPassable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode, gid uint32
		want      bool
	}{{0o711, 2, true}, {0o710, 1, true}, {0o710, 2, false}, {0o700, 1, false}} {
		if got := isPassable(&fileOwner{Mode: test.mode, Gid: test.gid}, 1); got != test.want {
			t.Errorf("mode %o of group %d: passable is %t", test.mode, test.gid, got)
		}
	}
}
