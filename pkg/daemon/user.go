package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/workspace/store"
)

// maxPasswordFile bounds a file with a password, in bytes: every password that is
// allowed, and the end of its line.
const maxPasswordFile = 4*account.MaxPassword + 2

func newUserCommand(env Env, flags configFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Manage the accounts of the workspace",
		Args:  subcommandOnly,
		RunE:  needsCommand(env),
	}
	cmd.AddCommand(
		newUserAddCommand(env, flags), newUserPasswdCommand(env, flags), newUserListCommand(env, flags),
		newUserSwitchCommand(env, flags, "disable", "Keep a user out and end all of the user's sessions", false),
		newUserSwitchCommand(env, flags, "enable", "Let a user in again", true),
	)
	return cmd
}

// oneArgument is for commands that take one argument of the given name.
func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("%s takes one %s, and not %d arguments", cmd.CommandPath(), name, len(args))}
		}
		return nil
	}
}

func newUserAddCommand(env Env, flags configFlags) *cobra.Command {
	var file string
	var isAdmin, mustChange bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an account",
		Long: `Add an account to the workspace. The first one has to be an administrator. relayd
may run meanwhile, or not.`,
		Example: "  relayd user add ann --admin --password-file -",
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := readPassword(env, file)
			if err != nil {
				return err
			}
			role := account.RoleUser
			if isAdmin {
				role = account.RoleAdmin
			}
			return withAccounts(cmd.Context(), env, flags, func(accounts *account.Service) error {
				user, err := accounts.Add(cmd.Context(), account.NewUser{
					Username: args[0], Password: password, Role: role, MustChangePassword: mustChange,
				})
				return report(env, err, "added %s", user.Username)
			})
		},
	}
	addPasswordFile(cmd, &file)
	cmd.Flags().BoolVar(&isAdmin, "admin", false, "make the account an administrator's")
	cmd.Flags().BoolVar(&mustChange, "must-change", false, "let the user change the password at the first sign-in")
	return cmd
}

func newUserPasswdCommand(env Env, flags configFlags) *cobra.Command {
	var file string
	var mustChange bool
	cmd := &cobra.Command{
		Use:     "passwd NAME",
		Short:   "Give an account another password",
		Long:    "Give an account another password and end all of its sessions.",
		Example: "  relayd user passwd ann --password-file -",
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := readPassword(env, file)
			if err != nil {
				return err
			}
			return withAccounts(cmd.Context(), env, flags, func(accounts *account.Service) error {
				user, err := accounts.EditByName(cmd.Context(), args[0], account.Edit{Password: &password, MustChangePassword: mustChange})
				return report(env, err, "%s has another password", user.Username)
			})
		},
	}
	addPasswordFile(cmd, &file)
	cmd.Flags().BoolVar(&mustChange, "must-change", false, "let the user change the password at the next sign-in")
	return cmd
}

func newUserSwitchCommand(env Env, flags configFlags, verb, short string, enabled bool) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAccounts(cmd.Context(), env, flags, func(accounts *account.Service) error {
				user, err := accounts.EditByName(cmd.Context(), args[0], account.Edit{Enabled: &enabled})
				return report(env, err, "%sd %s", verb, user.Username)
			})
		},
	}
}

func newUserListCommand(env Env, flags configFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the accounts",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAccounts(cmd.Context(), env, flags, func(accounts *account.Service) error {
				users, err := accounts.List(cmd.Context())
				if err != nil {
					return err
				}
				return printUsers(env.Stdout, users)
			})
		},
	}
}

// printUsers prints one line for each account. A name has no blanks and no control
// characters.
func printUsers(w io.Writer, users []account.User) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "NAME\tROLE\tSTATE\tCREATED\n")
	for _, u := range users {
		state := "enabled"
		switch {
		case !u.Enabled:
			state = "disabled"
		case u.MustChangePassword:
			state = "must-change"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", u.Username, u.Role, state, time.UnixMilli(u.CreatedAt).UTC().Format(time.RFC3339))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing the accounts: %w", err)
	}
	return nil
}

// report prints what was done unless it failed.
func report(env Env, err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(env.Stdout, format+"\n", args...); err != nil {
		return fmt.Errorf("printing what was done: %w", err)
	}
	return nil
}

func addPasswordFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "password-file", "", "read the password from `FILE`, or from standard input for -")
	// The only error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("password-file", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

// readPassword returns what stands in the file, without the end of its line. An
// argument would be seen by everybody on the host.
func readPassword(env Env, file string) (string, error) {
	if file == "" {
		return "", usageError{errors.New("--password-file is missing\nhint: --password-file - reads the password from standard input")}
	}
	text, err := readBounded(env, file)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	if len(text) > maxPasswordFile {
		return "", fmt.Errorf("reading the password: %s holds more than a password", file)
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	return string(text), nil
}

// readBounded reads a little more than a password may have.
func readBounded(env Env, file string) (text []byte, err error) {
	if file == "-" {
		if env.Stdin == nil {
			return nil, nil
		}
		return io.ReadAll(io.LimitReader(env.Stdin, maxPasswordFile+1))
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return io.ReadAll(io.LimitReader(in, maxPasswordFile+1))
}

// withAccounts runs do on the accounts of the workspace's database.
func withAccounts(ctx context.Context, env Env, flags configFlags, do func(*account.Service) error) error {
	return withWorkspace(ctx, env, flags, func(s *store.Store) error {
		log := slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		return do(newAccounts(s, log))
	})
}

// withWorkspace runs do on the workspace's database. relayd may have it open, too.
func withWorkspace(ctx context.Context, env Env, flags configFlags, do func(*store.Store) error) (err error) {
	cfg, err := flags.load(env)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Options{Dir: cfg.WorkspaceDir(), Readers: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

func newWorkspaceCommand(env Env, flags configFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "Look after the data of the workspace",
		Args:  subcommandOnly,
		RunE:  needsCommand(env),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database of the workspace while it is in use",
		Long: `Write a consistent copy of the workspace's database to FILE, which must not exist,
while others go on reading and writing. The files of the library and the keys
are copied as they are; see relayd-operation(7).`,
		Example: "  relayd workspace backup /srv/backup/workspace.sqlite3",
		Args:    oneArgument("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withWorkspace(cmd.Context(), env, flags, func(s *store.Store) error {
				return report(env, s.Backup(cmd.Context(), args[0]), "wrote %s", args[0])
			})
		},
	})
	return cmd
}
