package account

import "sync/atomic"

// CountHashes returns how many passwords the Service has hashed since.
func (s *Service) CountHashes() *atomic.Int64 {
	count := new(atomic.Int64)
	derive := s.hasher.derive
	s.hasher.derive = func(password string, salt []byte, cost Cost) []byte {
		count.Add(1)
		return derive(password, salt, cost)
	}
	return count
}

// BlockHashes lets passwords be hashed only once gate is closed.
func (s *Service) BlockHashes(gate <-chan struct{}) {
	derive := s.hasher.derive
	s.hasher.derive = func(password string, salt []byte, cost Cost) []byte {
		<-gate
		return derive(password, salt, cost)
	}
}

// Bounds of the hasher and of the throttle.
const (
	MaxHashes           = maxHashes
	MaxWaiting          = maxWaiting
	AttemptsNameAddress = attemptsNameAddress
	AttemptsAddress     = attemptsAddress
	AttemptsName        = attemptsName
	AttemptSpan         = attemptSpan
)

// Codes returns every code of the table with its status.
func Codes() map[Code]int {
	codes := make(map[Code]int)
	for code, row := range errorTable() {
		codes[code] = row.status
	}
	return codes
}

// TextOf returns the text that clients get for the code.
func TextOf(code Code) string { return errorTable()[code].text }
