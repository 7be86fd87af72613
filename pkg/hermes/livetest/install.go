// Package livetest runs a real Hermes for tests and tries: a pinned release in a
// virtual environment of Python, over a scripted model server, on loopback. Fakes
// show what they were taught; this shows whether it was the truth.
package livetest

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the requirements
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// requirements are the pinned packages.
//
//go:embed requirements.txt
var requirements []byte

// Install returns the command of the pinned Hermes. It is installed once for each
// user, in the cache directory, by python3 and its module venv, from the registry
// that pip is set up for; that takes a minute or two. What was installed halfway
// is installed anew. Output of pip goes to no one but the error.
func Install(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("install hermes: find the cache directory: %w", err)
	}
	sum := sha256.Sum256(requirements)
	dir := filepath.Join(cache, "newos4-relay", "hermes-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("install hermes: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("install hermes: %w", err)
	}
	defer unlock()
	done, venv := filepath.Join(dir, "installed"), filepath.Join(dir, "venv")
	command := filepath.Join(venv, "bin", "hermes")
	if _, err := os.Stat(done); err == nil {
		return command, nil
	}
	if err := install(ctx, dir, venv); err != nil {
		return "", fmt.Errorf("install hermes: %w", err)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		return "", fmt.Errorf("install hermes: %w", err)
	}
	return command, nil
}

// install makes the virtual environment anew.
func install(ctx context.Context, dir, venv string) error {
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o600); err != nil {
		return err
	}
	if err := os.RemoveAll(venv); err != nil {
		return err
	}
	if err := run(ctx, "python3", "-m", "venv", venv); err != nil {
		return fmt.Errorf("%w\nhint: on Debian it needs the package python3-venv", err)
	}
	pip := filepath.Join(venv, "bin", "pip")
	err := run(ctx, pip, "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:", "-r", list)
	if err != nil {
		return fmt.Errorf("%w\nhint: it needs a network, or what pip can install from instead", err)
	}
	return nil
}

// run runs a command whose output matters only when it fails.
func run(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // fixed commands
	if err != nil {
		return fmt.Errorf("%s %s: %w: %.2000s", filepath.Base(name), args[0], err, output)
	}
	return nil
}

// lock takes an exclusive lock on a file, so that packages tested at once install
// once, and returns what lets go of it.
func lock(ctx context.Context, path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the user's cache
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, ctx.Err())
		}
	}
}
