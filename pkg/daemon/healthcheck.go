package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/config"
	"github.com/newos4/relay/pkg/untrusted"
)

// maxCheckup bounds the answer that healthcheck reads, in bytes.
const maxCheckup = 64 << 10

func newHealthcheckCommand(env Env, flags configFlags) *cobra.Command {
	var alive bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the running relayd whether it is well",
		Long: `Ask the relayd that runs with this configuration, at admin.listen, whether it is
ready: whether messages can be stored, changes are followed, the sweep does its
work and the disk has room. With --alive ask only whether it answers at all.
Exit code 0 means yes; 1 no, with the reason on standard error.`,
		Example: "  relayd healthcheck --timeout 2s",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.load(env)
			if err != nil {
				return err
			}
			if timeout <= 0 {
				return usageError{errors.New("--timeout must be longer than 0")}
			}
			url, err := adminURL(cfg)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if alive {
				return askAlive(ctx, env.Stdout, url+pathAlive)
			}
			return askReady(ctx, env.Stdout, url+pathReady)
		},
	}
	cmd.Flags().BoolVar(&alive, "alive", false, "ask only whether it answers")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "wait no longer than `DURATION`")
	return cmd
}

// adminURL is where the operator's side of a relayd on this host is.
func adminURL(cfg *config.Config) (string, error) {
	if cfg.Admin.Listen == "" {
		return "", usageError{errors.New("admin.listen is empty, so relayd cannot be asked\nhint: set it to " + config.Default("admin.listen"))}
	}
	return "http://" + config.Dialable(cfg.Admin.Listen), nil
}

func askAlive(ctx context.Context, out io.Writer, url string) error {
	status, _, err := get(ctx, url)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s answers with status %d", url, status)
	}
	fmt.Fprintln(out, "alive")
	return nil
}

func askReady(ctx context.Context, out io.Writer, url string) error {
	status, body, err := get(ctx, url)
	if err != nil {
		return err
	}
	var result checkup
	if err := json.Unmarshal(body, &result); err != nil || len(result.Checks) == 0 {
		return fmt.Errorf("%s answers with status %d and not as relayd does\nhint: something else may listen there", url, status)
	}
	if problems := result.problems(); !result.Ready || len(problems) > 0 {
		return fmt.Errorf("not ready:\n%s", strings.Join(problems, "\n"))
	}
	fmt.Fprintln(out, "ready")
	return nil
}

// problems returns a line for each part that is not in order.
func (c checkup) problems() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
		if part := c.Checks[name]; !part.OK {
			lines = append(lines, untrusted.Line(fmt.Sprintf("  %s: %s", name, part.Error)))
		}
	}
	return lines
}

func get(ctx context.Context, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking relayd: %w", err)
	}
	// A proxy of the environment's has no business between two programs of a host.
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking relayd: %w\nhint: does it run, and with this admin.listen?", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxCheckup))
	if err != nil {
		return 0, nil, fmt.Errorf("asking relayd: %w", err)
	}
	return resp.StatusCode, body, nil
}
