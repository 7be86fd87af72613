package diagnosis

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/newos4/relay/pkg/chat"
	"github.com/newos4/relay/pkg/chatapi"
	"github.com/newos4/relay/pkg/config"
)

// lookAtListen tries to listen. A port that relayd already serves on is fine.
func lookAtListen(ctx context.Context, p *patient) []Finding {
	return lookAtAddress(ctx, side{"listen", p.cfg.Listen, "relayd speaks plain HTTP and belongs behind a front end with TLS", isRelayd})
}

// lookAtAdmin is lookAtListen for the operator's side, if there is one.
func lookAtAdmin(ctx context.Context, p *patient) []Finding {
	if p.cfg.Admin.Listen == "" {
		return nil
	}
	if at := p.cfg.Admin.Listen; at == p.cfg.Listen && portOf(at) != "0" {
		return []Finding{failure("admin.listen is the address of listen, "+at, "", "admin.listen: "+config.Default("admin.listen"))}
	}
	return lookAtAddress(ctx, side{"admin.listen", p.cfg.Admin.Listen, "the operator's side asks nobody who he is", isAlive})
}

// AlivePath and AliveAnswer are what the operator's side of relayd is known by: it
// gives that answer while the process works.
const (
	AlivePath   = "/healthz"
	AliveAnswer = "ok\n"
)

// isAlive asks for the answer that the operator's side of relayd always gives.
func isAlive(ctx context.Context, address string) bool {
	status, body, err := ask(ctx, address, AlivePath)
	return err == nil && status == http.StatusOK && string(body) == AliveAnswer
}

// side is one of the two addresses that relayd serves on.
type side struct {
	key, address string
	// exposed says what is wrong with other hosts reaching it.
	exposed string
	// isOurs reports whether a relayd has it already.
	isOurs func(ctx context.Context, address string) bool
}

// lookAtAddress tries to listen on an address, and asks whoever already does.
func lookAtAddress(ctx context.Context, s side) []Finding {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err == nil {
		_ = listener.Close()
		return []Finding{s.listenable(listener.Addr())}
	}
	if errors.Is(err, syscall.EADDRINUSE) && s.isOurs(ctx, s.address) {
		return []Finding{ok("a relayd serves on %s now", s.address)}
	}
	return []Finding{unlistenable(s.address, err)}
}

func unlistenable(address string, err error) Finding {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return failure(address+" is taken by something that is not relayd", "", "ss -ltnp 'sport = :"+portOf(address)+"'")
	case errors.Is(err, syscall.EACCES):
		return failure("this user may not listen on "+address, "ports below 1024 are root's",
			"choose a higher port, or set AmbientCapabilities=CAP_NET_BIND_SERVICE in relayd.service")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return failure("no interface of this host has the address of "+address, "", "ip -brief address")
	}
	return failure("relayd cannot listen on "+address, err.Error(), "")
}

// listenable takes note of an address that other hosts can reach.
func (s side) listenable(at net.Addr) Finding {
	if tcp, isTCP := at.(*net.TCPAddr); isTCP && !tcp.IP.IsLoopback() {
		return note(s.address+" is free and not of this host alone", s.exposed, s.key+": 127.0.0.1:"+portOf(s.address))
	}
	return ok("%s is free", s.address)
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// askTimeout bounds the question who serves on a port of this host.
const askTimeout = 2 * time.Second

// isRelayd asks what serves on an address of this host, by a request that touches
// no disk and no limit.
func isRelayd(ctx context.Context, address string) bool {
	status, body, err := ask(ctx, address, chatapi.RetiredPath)
	var refusal struct {
		Code chat.Code `json:"code"`
	}
	return err == nil && status == http.StatusGone && json.Unmarshal(body, &refusal) == nil && refusal.Code == chat.CodeGone
}

// ask gets a path from a server of this host, and reads no more than the answers
// of relayd have.
func ask(ctx context.Context, address, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+config.Dialable(address)+path, nil)
	if err != nil {
		return 0, nil, err
	}
	// No proxy of the environment may stand between, and no connection stays.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	const enough = 4096
	body, err = io.ReadAll(io.LimitReader(response.Body, enough))
	return response.StatusCode, body, err
}

// Networks this wide are no list of proxies: 10.0.0.0/8 and the IPv6 networks
// that one operator can have are narrower or equal.
const (
	minBitsIPv4 = 8
	minBitsIPv6 = 16
)

func lookAtProxies(_ context.Context, p *patient) []Finding {
	var wide, all []string
	for _, prefix := range p.cfg.HTTP.TrustedProxies {
		least := minBitsIPv6
		if prefix.Addr().Is4() {
			least = minBitsIPv4
		}
		if prefix.Bits() < least {
			wide = append(wide, prefix.String())
		}
		all = append(all, prefix.String())
	}
	switch {
	case len(wide) > 0:
		return []Finding{failure("http.trusted_proxies believes all of "+strings.Join(wide, " and "),
			"whoever posts can name any address as their own, and no limit per address holds",
			"name the addresses of your front end alone")}
	case len(all) == 0:
		return []Finding{ok("X-Forwarded-For is believed from nobody")}
	}
	return []Finding{ok("X-Forwarded-For is believed from %s", strings.Join(all, ", "))}
}
