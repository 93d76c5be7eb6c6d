# Everything that people and machines run here. `make` alone lists it.
# Build products go to a cache outside the clone; set CARGO_TARGET_DIR to choose another place.

CARGO ?= cargo
CARGO_TARGET_DIR ?= $(HOME)/.cache/conductor/target
export CARGO_TARGET_DIR

# A shell that may be older than the rest, with pipes that do not hide failures.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help demo install capture test test-all bench bench-live bench-peers bench-guard bless bench-databases fuzz pictures crds references lint pure deny tools databases browser valgrind controlplane

help: ## List what can be run
	@echo 'make TARGET'
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/\1\t/' | \
	  while IFS=$$'\t' read -r target text; do printf '  %-15s %s\n' "$$target" "$$text"; done
	@echo
	@echo 'CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)'

demo: tools ## See everything in a minute: an API of its own, three teams, and what each gets
	@scripts/install-packages databases || echo 'the demo goes on without a database server, and says what it leaves out' >&2
	@$(CARGO) build --release --package conductor-cli
	@"$(CARGO_TARGET_DIR)/release/conductor" demo

BIN ?= $(HOME)/.local/bin
install: tools ## Build conductor and link it into ~/.local/bin (BIN=DIR chooses another folder of your PATH)
	@$(CARGO) build --release --package conductor-cli
	@mkdir -p "$(BIN)" && ln -sf "$(CARGO_TARGET_DIR)/release/conductor" "$(BIN)/conductor"
	@case ":$$PATH:" in *":$(BIN):"*) echo 'conductor is on your PATH: $(BIN)/conductor';; \
	  *) echo '$(BIN) is not on your PATH: type export PATH="$(BIN):$$PATH"';; esac

capture: tools ## Draw docs/demo.svg anew from what the demo prints
	@$(CARGO) build --release --package conductor-cli
	@scripts/capture-demo "$(CARGO_TARGET_DIR)/release/conductor"

test: tools databases browser valgrind lint pure deny controlplane ## Run every check and every test; the last line counts them
	@CARGO="$(CARGO)" scripts/run-tests

test-all: ## Run every test with its long enumerations whole, of which `make test` runs a tenth
	@CONDUCTOR_PORTION=all $(MAKE) test

bench: tools ## Measure, and print a summary
	@$(CARGO) bench --package conductor --bench decision
	@$(CARGO) bench --package conductor --bench summary
	@$(CARGO) bench --package conductor-simulator --bench scale
	@$(CARGO) bench --package conductor-conformance --bench apis

bench-live: tools ## Measure on a real API server beside the PV binder; writes docs/benchmarks.md
	@$(CARGO) build --release --package conductor-cli --package conductor-bench-live
	@"$(CARGO_TARGET_DIR)/release/bench-live" --conductor "$(CARGO_TARGET_DIR)/release/conductor" --write

fuzz: tools ## Play 20,000 random histories against the engine, every law checked
	@$(CARGO) build --release --package conductor-cli
	@"$(CARGO_TARGET_DIR)/release/conductor" sim fuzz --seeds 20000

pictures: tools browser ## Make the pictures in docs/images anew
	@$(CARGO) build --package conductor-cli
	@scripts/pictures "$(CARGO_TARGET_DIR)/debug/conductor"

bench-peers: tools ## Measure decisions beside the peers' own code; writes docs/benchmarks.md
	@$(CARGO) build --release --package conductor-bench-peers
	@cd benches/peers/go && CGO_ENABLED=0 go build -trimpath -o "$(CARGO_TARGET_DIR)/release/peers" .
	@"$(CARGO_TARGET_DIR)/release/bench-peers" --peers "$(CARGO_TARGET_DIR)/release/peers" --write

bench-guard: tools valgrind ## Count the instructions of fixed workloads as released; fails when they grow
	@$(CARGO) bench --package conductor --bench guard

bless: tools valgrind ## Record what those workloads cost now, as tested and as released
	@$(CARGO) test --workspace --bench guard -- --bless
	@$(CARGO) bench --package conductor --bench guard -- --bless

bench-databases: tools databases ## Measure 300 claims over 3 shared PostgreSQL servers
	@$(CARGO) test --package conductor-databases --test scale -- --ignored --nocapture

crds: tools ## Write crds/ anew from the types
	@UPDATE_CRDS=1 $(CARGO) test --package conductor --test crds

references: tools ## Write docs/reference/ anew from the help, the types and the metrics
	@mkdir -p docs/reference
	@UPDATE_REFERENCES=1 $(CARGO) test --package conductor --test references
	@UPDATE_REFERENCES=1 $(CARGO) test --package conductor-controller --lib the_reference_
	@UPDATE_REFERENCES=1 $(CARGO) test --package conductor-cli --bin conductor the_reference_

lint: tools ## Check formatting and warnings
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets -- -D warnings

pure: tools ## Check that the pure packages link no client, no randomness and no async runtime
	@CARGO="$(CARGO)" scripts/check-pure

deny: tools ## Check dependencies: advisories, licences, sources (needs cargo-deny)
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	  $(CARGO) deny --workspace check; \
	else \
	  echo 'cargo-deny is not installed, dependencies are not checked: cargo install cargo-deny --locked'; \
	fi

databases: ## Install PostgreSQL and MariaDB, where they are not, for tests and the demo; MySQL for tests
	@scripts/install-packages databases
	@scripts/install-mysql

controlplane: ## Build kube-apiserver, etcd and kubectl for tests, where they are not in the cache
	@tests/controlplane/build >/dev/null

browser: ## Install chromium, where no browser is, to look at the pages
	@scripts/install-packages browser

valgrind: ## Install valgrind, where it is not, to count instructions
	@scripts/install-packages valgrind

tools:
	@CARGO="$(CARGO)" scripts/check-tools
