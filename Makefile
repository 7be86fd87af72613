# relay: see README.md. Every target works in a fresh clone.
.DEFAULT_GOAL := build
export CGO_ENABLED ?= 0

GO       ?= go
LISTEN   ?= 127.0.0.1:8640
ROOT     ?= var
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VULN     := golang.org/x/vuln/cmd/govulncheck@v1.9.0
NFPM     := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0
TOOLS    := $(CURDIR)/.tools/bin

.PHONY: build
build: ## Build both programs, static, and their completions, into bin/
	$(GO) build -trimpath $(BUILDVCS) -ldflags '-s -w' -o bin/ ./cmd/chat ./cmd/relayd
	scripts/extras bin bin/extras

.PHONY: install
install: $(if $(wildcard bin/extras/copyright),,build) ## Install what was built below PREFIX (/usr/local) in DESTDIR
	scripts/install install

.PHONY: uninstall
uninstall: ## Remove what install put there; data and changed configuration stay
	scripts/install uninstall

.PHONY: deb
deb: export CGO_ENABLED := 0
deb: BUILDVCS := -buildvcs=auto
deb: build $(TOOLS)/nfpm ## Make a Debian package for GOARCH, into bin/
	scripts/deb $(TOOLS)/nfpm

.PHONY: run
run: build ## Serve on 127.0.0.1:8640 with data under ./var
	@scripts/run $(LISTEN) $(ROOT)

.PHONY: test
test: setup lint $(TOOLS)/nfpm ## Install what the tests need, then run all of them
	CGO_ENABLED=1 $(GO) test -race -timeout 10m ./...
	CGO_ENABLED=0 $(GO) test -timeout 5m ./pkg/sandbox # as it is shipped: other threads, other system calls
	scripts/accept
	$(GO) run ./scripts/faults -short

.PHONY: lint
lint: $(TOOLS)/golangci-lint $(TOOLS)/govulncheck ## Check form and known faults
	$(GO) vet ./...
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...
	scripts/vulncheck $(TOOLS)/govulncheck

.PHONY: setup
setup: ## Install what the tests need and the machine lacks
	scripts/setup
	scripts/web/install
	$(GO) mod download

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) $(GO) install $(GOLANGCI)

$(TOOLS)/govulncheck:
	GOBIN=$(TOOLS) $(GO) install $(VULN)

$(TOOLS)/nfpm:
	GOOS= GOARCH= CGO_ENABLED=0 GOBIN=$(TOOLS) $(GO) install $(NFPM)

.PHONY: bench
bench: ## Print speed as ratios of floors measured in the same run
	$(GO) run ./scripts/bench $(BENCHFLAGS)

.PHONY: faults
faults: ## Run load and faults against the real programs, with FAULTFLAGS
	$(GO) run ./scripts/faults $(FAULTFLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 20s)
	scripts/fuzz $(or $(FUZZTIME),20s)

.PHONY: soak
soak: ## Run the slow proofs in their long form
	RELAY_SOAK=20 CGO_ENABLED=1 $(GO) test -race -timeout 60m -count 1 -run 'Crash|Killed|ManyProcesses|Racing|Simulation' ./...
	$(GO) run ./scripts/faults $(FAULTFLAGS)
	scripts/fuzz $(or $(FUZZTIME),5m)

.PHONY: clean
clean: ## Remove what was built; data under var/ stays
	rm -rf bin .tools

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10
