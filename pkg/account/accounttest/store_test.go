package accounttest_test

import (
	"testing"

	"github.com/newos4/relay/pkg/account"
	"github.com/newos4/relay/pkg/account/accounttest"
)

// Ensures that the store in memory keeps what stores promise.
func TestStore_InMemory(t *testing.T) {
	t.Parallel()
	accounttest.TestStore(t, func(*testing.T) account.Store { return accounttest.NewStore() })
}
