package runtime

import (
	"context"
	"path"
	"time"

	"github.com/newos4/relay/pkg/hermes"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/store"
)

// fetchTime bounds how long the files of one reply may take: what follows from it
// waits for them.
const fetchTime = time.Minute

// produced returns the paths of files that the reply names.
func (e *execution) produced() []string {
	if e.r.opts.Files == nil || e.upstream == nil {
		return nil
	}
	return workspace.ProducedPaths(string(e.draft.text), e.draft.tools)
}

// fetch archives the files that a visible reply names, and then has what follows
// from the reply planned. Each is tried once; a failure costs the file and not the
// reply (section 7.6).
func (e *execution) fetch(ctx context.Context, row workspace.Message, paths []string) {
	if row.ID != "" && !bool(row.Hidden) && row.Status == workspace.MessageComplete {
		e.archive(ctx, paths)
	}
	e.keep(ctx, func(ctx context.Context) error {
		return e.r.opts.Store.PlanRun(ctx, e.ref.Owner, e.task.RunID)
	})
}

func (e *execution) archive(ctx context.Context, paths []string) {
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	var files []store.NewFile
	for _, source := range paths {
		file, err := e.fetchOne(limited, source)
		if err != nil {
			e.r.log.Info("a file of a reply was not fetched", "task", e.ref.ID, "error", err)
			continue
		}
		files = append(files, file)
	}
	for _, file := range files { // one by one, so that a full library takes what it can
		err := e.r.opts.Store.AttachProduced(ctx, e.ref, []store.NewFile{file}, e.r.opts.Quota)
		if err != nil {
			e.r.log.Warn("a file of a reply was not stored", "task", e.ref.ID, "error", err)
		}
	}
}

func (e *execution) fetchOne(ctx context.Context, source string) (store.NewFile, error) {
	profile := e.session.State().Profile
	file, err := e.upstream.Download(ctx, profile, source)
	if err != nil {
		return store.NewFile{}, err
	}
	at, digest, err := e.r.opts.Files.Keep(ctx, e.ref.Owner, file.Data)
	if err != nil {
		return store.NewFile{}, err
	}
	return store.NewFile{
		Name: workspace.CleanFileName(nameOf(file, source)), MIMEType: workspace.CleanMIMEType(file.Type), Size: int64(len(file.Data)),
		Sender: workspace.SenderAgent, SourcePath: source, Profile: profile, Path: at, Digest: digest,
	}, nil
}

// nameOf returns the name that the server gives a file, else the one of its path.
func nameOf(file hermes.File, source string) string {
	if file.Name != "" {
		return file.Name
	}
	return path.Base(source)
}
