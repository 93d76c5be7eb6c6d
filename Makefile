# The commands of this repository. `make` alone lists them.
# Build products go to a cache outside the clone; set CARGO_TARGET_DIR to choose another folder.

CARGO ?= cargo
CARGO_TARGET_DIR ?= $(HOME)/.cache/conductor/target
export CARGO_TARGET_DIR

# Bash, with pipes that do not hide failures.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help demo install capture test test-all bench bench-live bench-peers bench-guard bless bench-databases fuzz pictures crds references lint pure deny tools databases browser valgrind controlplane

help: ## List the targets
	@echo 'make TARGET'
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/\1\t/' | \
	  while IFS=$$'\t' read -r target text; do printf '  %-15s %s\n' "$$target" "$$text"; done
	@echo
	@echo 'CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)'

demo: tools ## Run the demo: three teams and their databases on an embedded API, in a minute
	@scripts/install-packages databases || echo 'the demo continues without a database server, and reports what it skips' >&2
	@$(CARGO) build --release --package conductor-cli
	@"$(CARGO_TARGET_DIR)/release/conductor" demo

BIN ?= $(HOME)/.local/bin
install: tools ## Build conductor and link it into ~/.local/bin (BIN=DIR for another folder)
	@$(CARGO) build --release --package conductor-cli
	@mkdir -p "$(BIN)" && ln -sf "$(CARGO_TARGET_DIR)/release/conductor" "$(BIN)/conductor"
	@case ":$$PATH:" in *":$(BIN):"*) echo 'conductor is on your PATH: $(BIN)/conductor';; \
	  *) echo '$(BIN) is not on your PATH: type export PATH="$(BIN):$$PATH"';; esac

capture: tools ## Regenerate docs/demo.svg from the demo's output
	@$(CARGO) build --release --package conductor-cli
	@scripts/capture-demo "$(CARGO_TARGET_DIR)/release/conductor"

test: tools databases browser valgrind lint pure deny controlplane ## Run all checks and tests; the last line counts the tests
	@CARGO="$(CARGO)" scripts/run-tests

test-all: ## Run all tests with their complete enumerations; `make test` runs a tenth of those
	@CONDUCTOR_PORTION=all $(MAKE) test
	@$(CARGO) test --package conductor-simulator --features example-predicate --test oracle

bench: tools ## Run the benchmarks and print a summary
	@$(CARGO) bench --package conductor --bench decision
	@$(CARGO) bench --package conductor --bench summary
	@$(CARGO) bench --package conductor-simulator --bench scale
	@$(CARGO) bench --package conductor-conformance --bench apis

bench-live: tools ## Compare with the PV binder on a real API server; writes docs/benchmarks.md
	@$(CARGO) build --release --package conductor-cli --package conductor-bench-live
	@"$(CARGO_TARGET_DIR)/release/bench-live" --conductor "$(CARGO_TARGET_DIR)/release/conductor" --write

fuzz: tools ## Run 20,000 random histories against the engine and check every invariant
	@$(CARGO) build --release --package conductor-cli
	@"$(CARGO_TARGET_DIR)/release/conductor" sim fuzz --seeds 20000

pictures: tools browser ## Regenerate the pictures in docs/images
	@$(CARGO) build --package conductor-cli
	@scripts/pictures "$(CARGO_TARGET_DIR)/debug/conductor"

bench-peers: tools ## Compare decisions with the peers' own code; writes docs/benchmarks.md
	@$(CARGO) build --release --package conductor-bench-peers
	@cd benches/peers/go && CGO_ENABLED=0 go build -trimpath -o "$(CARGO_TARGET_DIR)/release/peers" .
	@"$(CARGO_TARGET_DIR)/release/bench-peers" --peers "$(CARGO_TARGET_DIR)/release/peers" --write

bench-guard: tools valgrind ## Count the instructions of fixed workloads in release mode; fail if they grow
	@$(CARGO) bench --package conductor --bench guard

bless: tools valgrind ## Record the current instruction counts of those workloads, for tests and release
	@$(CARGO) test --workspace --bench guard -- --bless
	@$(CARGO) bench --package conductor --bench guard -- --bless

bench-databases: tools databases ## Measure 300 claims on 3 shared PostgreSQL servers
	@$(CARGO) test --package conductor-databases --test scale -- --ignored --nocapture

crds: tools ## Regenerate crds/ from the types
	@UPDATE_CRDS=1 $(CARGO) test --package conductor --test crds

references: tools ## Regenerate docs/reference/ from the help texts, the types and the metrics
	@mkdir -p docs/reference
	@UPDATE_REFERENCES=1 $(CARGO) test --package conductor --test references
	@UPDATE_REFERENCES=1 $(CARGO) test --package conductor-controller --lib the_reference_
	@UPDATE_REFERENCES=1 $(CARGO) test --package conductor-cli --bin conductor the_reference_

lint: tools ## Check formatting and warnings
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets -- -D warnings

pure: tools ## Check that the pure packages link no client, no randomness and no async runtime
	@CARGO="$(CARGO)" scripts/check-pure

deny: tools ## Check dependencies: advisories, licenses, sources (needs cargo-deny)
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	  $(CARGO) deny --workspace check; \
	else \
	  echo 'cargo-deny is not installed, dependencies are not checked: cargo install cargo-deny --locked'; \
	fi

databases: ## Install PostgreSQL and MariaDB for tests and the demo, and MySQL for tests, if missing
	@scripts/install-packages databases
	@scripts/install-mysql

controlplane: ## Build kube-apiserver, etcd and kubectl for tests, if not in the cache
	@tests/controlplane/build >/dev/null

browser: ## Install chromium for report pages, if no browser is installed
	@scripts/install-packages browser

valgrind: ## Install valgrind to count instructions, if missing
	@scripts/install-packages valgrind

tools:
	@CARGO="$(CARGO)" scripts/check-tools
