package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"time"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/forwarded"
	"github.com/newos4/relay/pkg/secretfile"
	"github.com/newos4/relay/pkg/workspace"
	"github.com/newos4/relay/pkg/workspace/api"
	"github.com/newos4/relay/pkg/workspace/blob"
	"github.com/newos4/relay/pkg/workspace/store"
)

const (
	// csrfKeyName is the file, in the workspace's data directory, of the key that
	// signs tokens.
	csrfKeyName = "csrf.key"
	// pruneEvery is how often superseded events are pruned.
	pruneEvery = 10 * time.Minute
)

// workspaceSide is the workspace: its data, its routes, and who may use them.
type workspaceSide struct {
	store     *store.Store
	files     *blob.Dir
	accounts  *account.Service
	endpoints *account.Endpoints
	api       *api.API
	handler   http.Handler
	log       *slog.Logger
}

// openWorkspace opens the workspace that is reached at the address. The caller
// closes it.
func openWorkspace(ctx context.Context, cfg *config.Config, addr net.Addr, log *slog.Logger) (*workspaceSide, error) {
	w := &workspaceSide{log: log}
	if err := w.open(ctx, cfg, addr); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the workspace: %w", err), w.close())
	}
	return w, nil
}

func (w *workspaceSide) open(ctx context.Context, cfg *config.Config, addr net.Addr) error {
	dir := cfg.WorkspaceDir()
	var err error
	if w.store, err = store.Open(ctx, store.Options{Dir: dir}); err != nil {
		return err
	}
	if w.files, err = blob.Open(dir); err != nil {
		return err
	}
	secret, err := secretfile.Load(filepath.Join(dir, csrfKeyName))
	if err != nil {
		return fmt.Errorf("loading the key that signs tokens: %w", err)
	}
	w.accounts = newAccounts(w.store, w.log)
	guard, err := account.NewGuard(account.GuardOptions{
		Service: w.accounts, Secret: secret, Port: portOf(addr), AllowedHosts: cfg.Workspace.AllowedHosts,
		TrustedProxies: cfg.HTTP.TrustedProxies, SecureCookies: cfg.Workspace.SecureCookies, Now: time.Now, Logger: w.log,
	})
	if err != nil {
		return usageError{fmt.Errorf("workspace.allowed_hosts: %w", err)}
	}
	w.endpoints = account.NewEndpoints(account.EndpointOptions{
		Service: w.accounts, Guard: guard, ServerKind: workspace.ServerKind,
		InsecureLAN: !isLoopback(addr) && !cfg.Workspace.SecureCookies, Logger: w.log,
	})
	w.api = api.New(api.Options{
		Store: w.store, Files: w.files, Voice: cfg.Workspace.Voice, ShareVoiceKey: cfg.Workspace.ShareVoiceKey,
		Quota:  store.Quota{PerOwner: int64(cfg.Workspace.UserQuota), Total: int64(cfg.Workspace.TotalQuota)},
		Scheme: func(r *http.Request) string { return forwarded.Scheme(r, cfg.HTTP.TrustedProxies) },
		Logger: w.log,
	})
	w.handler = w.api.WithoutRetired(guard.Handler(append(w.endpoints.Routes(), w.api.Routes()...)...))
	return nil
}

// newAccounts returns the rules of accounts over the workspace's database.
func newAccounts(s *store.Store, log *slog.Logger) *account.Service {
	return account.New(account.Options{Store: s.Accounts(), Now: time.Now, Logger: log})
}

// portOf returns the port of an address that has one.
func portOf(addr net.Addr) int {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// beside serves the workspace's paths and leaves all others, and that of the chat
// which is retired, to next.
func (w *workspaceSide) beside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if api.Owns(r) && path.Clean("/"+r.URL.Path) != chatapi.RetiredPath {
			w.handler.ServeHTTP(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// run removes what a crash left, and prunes the log from time to time, until ctx
// ends.
func (w *workspaceSide) run(ctx context.Context) {
	w.api.Sweep(ctx)
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		w.prune(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *workspaceSide) prune(ctx context.Context) {
	removed, err := w.store.Prune(ctx)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("superseded events of the workspace were not all pruned", "error", err)
	}
	if removed > 0 {
		w.log.Debug("pruned superseded events of the workspace", "events", removed)
	}
}

// close lets go of everything. Nobody is being answered any more.
func (w *workspaceSide) close() error {
	if w == nil {
		return nil
	}
	if w.api != nil {
		w.api.Close()
	}
	if w.endpoints != nil {
		w.endpoints.Close()
	}
	var err error
	if w.files != nil {
		err = w.files.Close()
	}
	if w.store != nil {
		err = errors.Join(err, w.store.Close())
	}
	return err
}
