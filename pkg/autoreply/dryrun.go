package autoreply

import (
	"context"

	"github.com/newos4/relay/pkg/chat"
)

// DryRun answers a question as the settings say, by the same rules as a thread
// is answered, and stores nothing. The answer's text is what would be stored;
// its tools and tokens are told even if it fails.
func DryRun(ctx context.Context, settings Settings, question chat.Message) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, settings.Budget.Time)
	defer cancel()
	q := Question{
		Thread:   "0000000000000000",
		Messages: []chat.Message{question},
		Limit:    settings.Limit,
		Budget:   settings.Budget,
	}
	return draft(ctx, settings, q, func(string) {})
}
