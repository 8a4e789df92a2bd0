# The two commands: `make demo` and `make test`. Build products stay outside the
# clone, so that every clone of this machine shares them; one profile (release)
# and one choice of packages (the workspace) serve everything: other choices have
# other features, and would build the dependencies again.

export CARGO_TARGET_DIR ?= $(HOME)/.cache/orrery/target
export ORRERY_SHARED ?= $(abspath ../shared)

ORRERY := $(CARGO_TARGET_DIR)/release/orrery
PRODUCTS ?= 2785

.PHONY: help setup build install bench-program programs demo test quick lint doc deny miri bench bench-tpch bench-vectors compare-duckdb soak crash fuzz conformance oracle oracle-policies oracle-sql syntax-oracle instructions instructions-check instructions-accept compare relational structure structure-write function-order check-deploy test-cluster cluster-faults

help:
	@echo 'make demo    build, generate a data set, load it, serve it, print the address'
	@echo 'make install   the binary without its symbols, to PREFIX=~/.local'
	@echo 'make test    every test (about 5 minutes once the dependencies are built); says what was skipped (TIMES=1: and the slowest)'
	@echo 'make quick CRATE=operators   the unit tests of one crate, lightly optimized: within a minute of a change, once its dependencies are there (TEST=)'
	@echo 'make deny    licences, versions, sources and known holes of the dependencies, by deny.toml'
	@echo 'make miri    the tests over unsafe code under Miri; wants a nightly toolchain (TOOLCHAIN=)'
	@echo 'make lint    structure, formatting, clippy and documentation, warnings are errors'
	@echo 'make structure   no files that import each other, and the drawing in ARCHITECTURE.md is true; structure-write draws it'
	@echo 'make bench   the store on 10 million triples, against its bars (PRODUCTS=28482)'
	@echo 'make compare ours and Virtuoso on 10 million triples; writes docs/performance.md (20 minutes)'
	@echo 'make relational   the same data as triples and as tables of DuckDB, side by side; writes docs/performance.md'
	@echo 'make bench-tpch   TPC-H at scale 1: load, answers, power test, throughput test (SCALE=)'
	@echo 'make bench-vectors   TPC-H Q9 on five designs of the data, as columns and as rows, with vectors of three sizes; writes docs/performance.md (SCALE=)'
	@echo 'make compare-duckdb   TPC-H on both, side by side; writes docs/performance.md'
	@echo 'make crash   power cuts, faults, flipped bits, kills, by the thousand; looks at what is left'
	@echo 'make test-cluster   10,000 schedules of crashes, partitions and lost messages against a simulated quorum (SCHEDULES=, SEED=)'
	@echo 'make cluster-faults   three servers of a cluster under FAULTS=100 kills, pauses, cuts and jumps of clocks; histories of their clients judged (SEED=)'
	@echo 'make soak    64 clients of every kind for SECONDS=60, every answer checked; 16 with heavy queries, within MEMORY=1G; updates, loads and compactions'
	@echo 'make fuzz     libFuzzer on each target for MINUTES=1, with the executions of each (TARGETS="turtle log")'
	@echo 'make syntax-oracle  1,000,000 damaged texts: our parser against an independent one (TEXTS=, SEED=)'
	@echo 'make oracle  200,000 random queries against an independent evaluator (QUERIES=, SEED=)'
	@echo 'make oracle-policies  50,000 random queries under random rules about graphs (QUERIES=, SEED=)'
	@echo 'make oracle-sql  50,000 random queries of SQL against DuckDB (QUERIES=, SEED=)'
	@echo 'make instructions   instructions of the hot paths under valgrind, beside those that are kept'
	@echo 'make instructions-accept   keeps them, and the allocations of the queries'
	@echo 'make function-order   the functions that the linker lays side by side, from samples of the program at work'
	@echo 'make check-deploy   the image, the compose file and the manifests of deploy/, by their schemas'
	@echo 'make conformance   the test suites of the W3C; writes docs/conformance.md'

setup:
	@bash scripts/setup.sh

# The one binary. Its choice of packages is the workspace, as everywhere: see above.
build: setup
	cargo build --release --workspace --bin orrery

# Without its symbols, which are a quarter of it: profilers and `make function-order` read those of the build.
PREFIX ?= $(HOME)/.local
install: build
	install -D -s $(ORRERY) $(PREFIX)/bin/orrery

# And the program that `orrery bench` starts.
bench-program: setup
	cargo build --release --workspace --bin orrery --bin orrery-bench

# The programs that check it, too.
programs: setup
	cargo build --release --workspace --bins

demo: build
	$(ORRERY) demo --products $(PRODUCTS)

# What a test lacks on this machine it says in a line, which the report repeats at the end; without Python there is no report.
REPORT := $(if $(shell command -v python3),python3 scripts/report-tests.py $(if $(TIMES),--times))

# Tests, then the examples of the documentation: all at once, the programs of examples/ would be linked, too.
# And a short form of test-cluster: its time is simulated, which wants another tokio, so it is a build of its own.
test: setup
	$(REPORT) cargo test --release --workspace --no-fail-fast --tests
	cargo test --release --workspace --doc
	$(MAKE) --no-print-directory test-cluster SCHEDULES=200

# A crate by itself has fewer features than the workspace, so the first run builds the dependencies once more, lightly.
LIGHTLY := --config profile.release.opt-level=1 --config profile.release.incremental=true \
	--config 'profile.release.package."*".opt-level=1'
quick: setup
	cargo test --release $(LIGHTLY) -p orrery-$(or $(CRATE),operators) --lib -- $(TEST)

test-cluster: setup
	QUORUM_SCHEDULES=$(or $(SCHEDULES),10000) QUORUM_FIRST_SEED=$(or $(SEED),1) cargo test --release $(LIGHTLY) -p orrery-raft-store --features simulation --lib -- --nocapture simulation

# The directory is kept if anything is wrong.
FAULTS_DIRECTORY := $(CARGO_TARGET_DIR)/cluster-faults
cluster-faults: build
	python3 bench/peers/cluster_faults.py --self-test
	rm -rf $(FAULTS_DIRECTORY)
	python3 bench/peers/cluster_faults.py $(ORRERY) $(FAULTS_DIRECTORY) --faults $(or $(FAULTS),100) $(if $(SEED),--seed $(SEED))
	rm -rf $(FAULTS_DIRECTORY)
	python3 bench/peers/cluster_faults.py $(ORRERY) $(FAULTS_DIRECTORY) --relaxed --faults $(or $(FAULTS),100) $(if $(SEED),--seed $(SEED))
	rm -rf $(FAULTS_DIRECTORY)

deny: setup
	@bash scripts/deny.sh

miri: setup
	@bash scripts/miri.sh

lint: setup structure
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --release --workspace --no-deps

structure structure-write: setup
	cargo build --release --workspace --bin structure
	$(CARGO_TARGET_DIR)/release/structure $(if $(filter structure-write,$@),--write)

bench: bench-program
	$(ORRERY) bench store --products $(if $(filter command line,$(origin PRODUCTS)),$(PRODUCTS),28482)

compare: bench-program
	$(ORRERY) bench compare --peer virtuoso --products $(if $(filter command line,$(origin PRODUCTS)),$(PRODUCTS),28482) --document docs/performance.md

relational: bench-program
	$(ORRERY) bench relational --products $(if $(filter command line,$(origin PRODUCTS)),$(PRODUCTS),28482) --document docs/performance.md

bench-tpch: bench-program
	$(ORRERY) bench tpch --scale $(or $(SCALE),1) $(if $(wildcard $(ORRERY_SHARED)/tpch/answers/sf$(or $(SCALE),1)),--answers $(ORRERY_SHARED)/tpch/answers/sf$(or $(SCALE),1))

# The tables of scales 0.1 and 1 have their places in the document.
bench-vectors: bench-program
	$(ORRERY) bench vectors --scale $(or $(SCALE),0.1) $(if $(wildcard $(ORRERY_SHARED)/tpch/answers/sf$(or $(SCALE),0.1)),--answers $(ORRERY_SHARED)/tpch/answers/sf$(or $(SCALE),0.1)) $(if $(filter 0.1 1,$(or $(SCALE),0.1)),--document docs/performance.md)

compare-duckdb: bench-program
	$(ORRERY) bench compare --peer duckdb --scale $(or $(SCALE),1) --document docs/performance.md

# From 3000 seconds on the memory of the first run has to be flat.
SOAK := $(CARGO_TARGET_DIR)/soak
soak: bench-program
	$(ORRERY) bench soak --clients $(or $(CLIENTS),64) --seconds $(or $(SECONDS),60) --memory $(or $(MEMORY),1G) --cache $(SOAK)
	$(ORRERY) bench soak --clients 16 --heavy 16 --seconds $(or $(SECONDS),60) --memory $(or $(MEMORY),1G) --cache $(SOAK)
	$(ORRERY) bench soak-updates --seconds $(or $(SECONDS),60) --cache $(SOAK)

crash: setup
	ORRERY_CRASH_STATES=200000 ORRERY_FAULT_RUNS=100000 ORRERY_FLIPS=20000 ORRERY_MODEL_RUNS=1000 \
		cargo test --release -p orrery-loader --test loader -- --nocapture crash::
	ORRERY_KILLS=50 ORRERY_SERVER_KILLS=200 cargo test --release -p orrery --test cli killed -- --nocapture

check-deploy:
	@bash scripts/check-deploy.sh

function-order: bench-program
	bash scripts/function-order.sh

# A build of its own, with counters: see scripts/fuzz.sh.
fuzz: setup
	MINUTES=$(or $(MINUTES),1) TARGETS='$(TARGETS)' bash scripts/fuzz.sh

conformance: programs
	$(CARGO_TARGET_DIR)/release/testsuite conformance

syntax-oracle: programs
	$(CARGO_TARGET_DIR)/release/testsuite oracle --syntax $(or $(TEXTS),1000000) --seed $(or $(SEED),1)

oracle: programs
	$(CARGO_TARGET_DIR)/release/testsuite oracle --queries $(or $(QUERIES),200000) --seed $(or $(SEED),1)
	$(CARGO_TARGET_DIR)/release/testsuite oracle --updates $(or $(UPDATES),5000) --seed $(or $(SEED),1)

oracle-policies: programs
	$(CARGO_TARGET_DIR)/release/testsuite oracle --policies $(or $(QUERIES),50000) --seed $(or $(SEED),1)

# Asks DuckDB of PyPI (scripts/setup.sh installs it).
oracle-sql: programs
	$(CARGO_TARGET_DIR)/release/testsuite oracle --sql $(or $(QUERIES),50000) --seed $(or $(SEED),1)

instructions instructions-check instructions-accept: programs
	@scripts/instructions.sh $(or $(word 2,$(subst -, ,$@)),show)
