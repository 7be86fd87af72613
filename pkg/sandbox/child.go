package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// childArg is the hidden first argument that makes the binary the child.
const childArg = "confined-reader"

// RunChildIfAsked does the child's work and ends the process if args, the
// process's own arguments with its name first, ask for it; otherwise it returns
// at once. It must be the first thing that main does, and the first thing in
// the TestMain of a package whose tests start a [Reader]:
//
//	func main() {
//		sandbox.RunChildIfAsked(os.Args)
//		...
//
// Asked by someone else than a Reader it does no harm: it wants two pipes, and
// reads no more than it is told to with the rights it already has.
func RunChildIfAsked(args []string) {
	if len(args) != 2 || args[1] != childArg {
		return
	}
	if err := runChild(os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// runChild confines the process and serves requests until its parent closes the
// pipe.
func runChild(in io.Reader, out io.Writer) error {
	f, err := enter(in, out)
	if err != nil {
		return err
	}
	for {
		var req request
		if err := readFrame(in, &req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := writeFrame(out, f.serve(req)); err != nil {
			return err
		}
	}
}

// enter confines the process as the parent's first frame says, tries the
// confinement out and reports.
func enter(in io.Reader, out io.Writer) (*forest, error) {
	var s setup
	if err := readFrame(in, &s); err != nil {
		return nil, err
	}
	trees, err := confine(s)
	if err != nil {
		err = fmt.Errorf("confine: %w", err)
		return nil, errors.Join(err, writeFrame(out, ready{Error: err.Error()}))
	}
	if err := writeFrame(out, ready{Broken: brokenPromises(s.Support)}); err != nil {
		return nil, err
	}
	return &forest{trees: trees, limits: s.Limits}, nil
}
