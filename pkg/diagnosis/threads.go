package diagnosis

import (
	"context"
	"fmt"
	"time"

	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/storage"
)

// shown is how many threads are named one by one.
const shown = 5

func lookAtThreads(_ context.Context, p *patient) []Finding {
	if !p.isOpen {
		return nil
	}
	if p.surveyErr != nil {
		return []Finding{failure("the threads cannot be read", p.surveyErr.Error(), p.hint(p.surveyErr))}
	}
	var found []Finding
	for i, fault := range p.survey.Faults {
		if i == shown {
			found = append(found, failure(fmt.Sprintf("%d more threads cannot be read", len(p.survey.Faults)-shown), "", "chat poll"))
			break
		}
		found = append(found, p.fault(fault))
	}
	if n := len(p.survey.Closed); n > 0 {
		path := quoted(p.threads)
		found = append(found, warning(fmt.Sprintf("the group may not read %s, such as %s", counted(n, "thread"), p.survey.Closed[0]),
			"somebody copied or changed the files by hand",
			fmt.Sprintf("chgrp --reference=%s %s/*.json && chmod 0660 %s/*.json", path, path, path)))
	}
	if warn := p.crowd(); warn != nil {
		found = append(found, *warn)
	}
	return orOK(found, "%d of at most %d, all sound", p.survey.Threads, p.cfg.Limits.Threads)
}

func (p *patient) fault(fault storage.Fault) Finding {
	if !fault.IsCorrupt() {
		return failure(fmt.Sprintf("thread %s cannot be read", fault.Thread), fault.Err.Error(), p.hint(fault.Err))
	}
	return failure(fault.Err.Error(), "it was left alone and is not answered",
		fmt.Sprintf("restore the file, or move it aside: chat reset %s", fault.Thread))
}

// crowd warns where newcomers are or will soon be refused, at the same share of
// the limit as relayd's log does.
func (p *patient) crowd() *Finding {
	limit := p.cfg.Limits.Threads
	if !chatapi.IsCrowded(p.survey.Threads, limit) {
		return nil
	}
	found := warning(fmt.Sprintf("%d of at most %d threads stand", p.survey.Threads, limit),
		"at the limit new conversations are refused", "raise limits.threads, or lower retention.max_age")
	return &found
}

// lookAtClock compares the clock with what was written before: epochs only grow,
// so that a thread from the future goes on from there.
func lookAtClock(_ context.Context, p *patient) []Finding {
	if p.surveyErr != nil || p.survey.Newest == 0 {
		return nil
	}
	now := p.host.Now()
	ahead := time.UnixMilli(p.survey.Newest).Sub(now)
	if ahead > maxFuture {
		return []Finding{warning(fmt.Sprintf("the newest message, of thread %s, is of %s", p.survey.NewestThread,
			time.UnixMilli(p.survey.Newest).UTC().Format(time.RFC3339)),
			"the clock is "+distance(ahead)+" behind it, or was ahead when it was written", "timedatectl")}
	}
	return []Finding{ok("no message is from the future")}
}

// distance is a duration for people: to the minute, or in days.
func distance(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.Round(time.Second).String()
}
