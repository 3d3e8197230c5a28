# make demo   sets everything up, then runs the three-node cluster with Spark on real data
# make demo-network   three brokers in a network, JMS clients of ActiveMQ, a killed data centre (Java, Maven)
# make test   sets everything up, then runs lint, types and the suite, interpreted and compiled
# make quick  about a minute, while you work: lint, types of changed files, the fast tests
# make soak   hours: what is slow and seldom finds anything
# make check  lint, types and structure only; `make help` lists the rest
#
# Everything lives in .venv/; stamp files in it make every step happen once, and the package is
# installed again only when the contents of its sources change.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Without bytecode files each of some hundred processes compiles the whole package when it starts.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PYTHON := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
QUIET := $(if $(V),,-q)
PIP := $(PYTHON) -m pip --disable-pip-version-check install $(QUIET)
# Six workers for two cores: many tests wait for processes (tests/conftest.py has their order). Tests that only compute
# need few: each worker collects all of them.
WORKERS ?= 6
COMPUTING_WORKERS ?= 3
# Tests that run against the compiled build too, or, where both run, against it alone (tests/share.py). Of the cluster,
# links and bridges are compiled; of the shell, what every event-loop iteration passes. The processes of tests/app start
# in half the time.
COMPILED_TESTS := $(wildcard tests/app tests/message tests/kernel tests/management tests/wire tests/store tests/sim \
 tests/runtime/test_driver.py tests/runtime/disk tests/runtime/net \
 tests/ha/test_journal_stream.py tests/cluster/test_*.py $(addprefix tests/cluster/,connection core_bridges links networks replication store_and_forward))

FIND_PYTHON = for name in $${PYTHON_FOR_VENV:-} python3 python3.13 python3.12 python3.11 python3.14; do \
	if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo "$$name"; exit 0; fi; done; \
	echo "Python 3.11 or newer with venv (Debian: python3-venv) is needed" >&2; exit 1

.PHONY: help
help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

# --- set-up ---------------------------------------------------------------------------------------

$(STAMPS)/created:
	@name=$$($(FIND_PYTHON)); \
	test -x $(PYTHON) || { echo "creating $(VENV) with $$name"; "$$name" -m venv $(VENV); }; \
	mkdir -p $(STAMPS); touch $@

# What the build needs comes first and is small: `make test` compiles while Spark is installed.
$(STAMPS)/build: pyproject.toml constraints.txt tools/dependencies.py $(STAMPS)/created
	@name=$$($(FIND_PYTHON)); "$$name" tools/dependencies.py build >$(STAMPS)/build.txt
	@$(PIP) -c constraints.txt -r $(STAMPS)/build.txt
	@touch $@

$(STAMPS)/demo: $(STAMPS)/build
	@echo "installing the dependencies (Spark is large: a few minutes the first time)"
	@$(PYTHON) tools/dependencies.py demo >$(STAMPS)/demo.txt
	@$(PIP) -c constraints.txt -r $(STAMPS)/demo.txt
	@touch $@

$(STAMPS)/dev: $(STAMPS)/demo
	@echo "installing the development tools"
	@$(PYTHON) tools/dependencies.py dev >$(STAMPS)/dev.txt
	@$(PIP) -c constraints.txt -r $(STAMPS)/dev.txt
	@touch $@

$(STAMPS)/connect: $(STAMPS)/dev
	@echo "installing the client of Spark Connect"
	@$(PYTHON) tools/dependencies.py connect >$(STAMPS)/connect.txt
	@$(PIP) -c constraints.txt -r $(STAMPS)/connect.txt
	@touch $@

$(STAMPS)/interop: $(STAMPS)/connect
	@echo "installing Node.js"
	@$(PYTHON) tools/dependencies.py interop >$(STAMPS)/interop.txt
	@$(PIP) -c constraints.txt -r $(STAMPS)/interop.txt
	@touch $@

# Holds a checksum of everything the wheel is made of; rewritten only when that changes.
.PHONY: look-at-sources
$(STAMPS)/sources: look-at-sources $(STAMPS)/created
	@{ find src -type f ! -path '*/__pycache__/*' ! -path '*.egg-info/*'; \
	   ls setup.py compiled_modules.txt pyproject.toml constraints.txt README.md LICENSE; } \
	 | LC_ALL=C sort | xargs -d '\n' cksum >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(STAMPS)/wheel: $(STAMPS)/sources $(STAMPS)/build
	@echo "building atalanta (compiled where a C compiler is here: some minutes)"
	@rm -rf $(VENV)/wheel
	@$(PYTHON) -m pip --disable-pip-version-check wheel $(QUIET) --no-deps --no-build-isolation -w $(VENV)/wheel . || { \
	 echo "atalanta could not be built; more with: make setup V=1" >&2; exit 1; }
	@touch $@

$(STAMPS)/installed: $(STAMPS)/wheel $(STAMPS)/demo
	@$(PIP) --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@$(PYTHON) tools/compiled.py || true
	@touch $@

.PHONY: setup
setup: $(STAMPS)/installed  ## creates .venv with atalanta and all it needs

.PHONY: clean-build
clean-build:  ## forgets the built package, so that the next set-up builds it anew
	@rm -rf build $(STAMPS)/wheel $(STAMPS)/installed src/*.egg-info

# --- work -----------------------------------------------------------------------------------------

.PHONY: demo
demo: $(STAMPS)/installed  ## the whole job on real data; FLIGHTS=20000 is the short form
	@$(PYTHON) -m examples.flights

.PHONY: demo-network
demo-network: $(STAMPS)/installed  ## a network of brokers, JMS clients, a killed data centre (Java, Maven); MESSAGES=600 is the short form
	@$(PYTHON) -m examples.network

.PHONY: check
check: $(STAMPS)/dev  ## lint, types, faults of the structure and what has changed in its figures
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m tools.structure --trace --check tools/structure_figures.toml
	@$(PYTHON) -m mypy src tests tools examples bench

# The workers of the suite would each compile all test files at the same time.
.PHONY: collection
collection: $(STAMPS)/dev
	@PYTHONPATH=$(CURDIR)/src $(PYTHON) -m pytest --collect-only -qq tests >$(STAMPS)/collection.txt || { \
	 sed -n '/= ERRORS =/,$$p' $(STAMPS)/collection.txt; exit 1; }

.PHONY: docs
docs: $(STAMPS)/demo  ## writes the generated pages of docs
	@PYTHONPATH=$(CURDIR)/src $(PYTHON) -m atalanta.config.docs >docs/reference/config.md
	@PYTHONPATH=$(CURDIR)/src $(PYTHON) -m tools.unbuilt_options
	@PYTHONPATH=$(CURDIR)/src $(PYTHON) -m tools.reference
	@PYTHONPATH=$(CURDIR)/src $(PYTHON) -m tools.events
	@$(PYTHON) -m tools.openwire_schema

# Lint, the types of files that differ from origin/main, and the tests of tests/quick.txt.
.PHONY: quick
quick: $(STAMPS)/dev  ## about a minute: lint, types of changed files, the fast tests, one simulated cluster
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m tools.structure --check tools/structure_figures.toml
	@files=$$($(PYTHON) tools/changed.py); test -z "$$files" || $(PYTHON) -m mypy $$files
	@PYTHONPATH=$(CURDIR)/src $(PYTEST) -n $(COMPUTING_WORKERS) -q -m "not process and not soak" tests/test_*.py @tests/quick.txt
	@PYTHONPATH=$(CURDIR)/src $(PYTHON) -m atalanta.sim --seed $(SEED)

.PHONY: interop
interop: $(STAMPS)/installed $(STAMPS)/interop  ## against the real Artemis and its JMS client (Java, Maven)
	@for tool in java mvn; do command -v $$tool >/dev/null || { \
	 echo "make interop needs Java 17 or newer and Maven; $$tool is not on PATH" >&2; exit 1; }; done
	@$(PYTHON) -m pytest -m "not soak" tests/interop $(if $(ARGS),$(ARGS),--lineup all --table docs/internals/interop.md --versions docs/reference/artemis-versions.md)

# BENCH_ONLY=name,name selects, BENCH_SECONDS=1 shortens, BENCH_REPEATS=1 too (bench/settings.py).
.PHONY: bench
bench: $(STAMPS)/installed  ## beside a real Artemis (Java, Maven); writes bench/RESULTS.md
	@for tool in java mvn cc; do command -v $$tool >/dev/null || { \
	 echo "make bench needs Java 17 or newer, Maven and a C compiler; $$tool is not on PATH" >&2; \
	 exit 1; }; done
	@$(PYTHON) tools/compiled.py
	@env -u PYTHONPATH $(PYTHON) -m bench

SEED ?= 1
FUZZ_COUNT ?= 1000000
SOAK := $(PYTHON) -m atalanta.sim --seed $(SEED)
FUZZ := $(PYTHON) -m tests.fuzz --seed $(SEED) --count $(FUZZ_COUNT)
.PHONY: fuzz
fuzz: $(STAMPS)/installed $(STAMPS)/dev  ## FUZZ_COUNT=N changed inputs for every decoder
	@PYTHONPATH=$(CURDIR)/src $(FUZZ)
	@status=0; $(PYTHON) tools/compiled.py || status=$$?; \
	 if [ $$status = 2 ]; then echo "the compiled half is left out"; exit 0; fi; \
	 test $$status = 0; env -u PYTHONPATH $(FUZZ) --blind

PYTEST := $(PYTHON) -m pytest --dist loadfile

# $(call in_both_builds,MARKS,WHAT): the marked tests interpreted, then those of COMPILED_TESTS compiled. The compiled
# run comes last and stands in pytest's own closing line.
define in_both_builds
@status=0; $(PYTHON) tools/compiled.py || status=$$?; \
 case $$status in 0) both=1;; 2) both=;; *) exit 1;; esac; \
 export ATALANTA_BOTH_BUILDS=$$both; \
 echo "== interpreted: $(2)"; \
 PYTHONPATH=$(CURDIR)/src ATALANTA_BUILD=interpreted \
 $(PYTEST) -n $(WORKERS) -m "not interop and $(1)" --ignore tests/interop tests; \
 test -n "$$both" || { echo "the compiled half of the tests is left out"; exit 0; }; \
 echo "== compiled: $(2) in $(COMPILED_TESTS)"; \
 env -u PYTHONPATH ATALANTA_BUILD=compiled \
 $(PYTEST) -n $(WORKERS) -m "not interop and $(1)" $(COMPILED_TESTS)
endef

.PHONY: test
test:  ## lint, types and the suite; at most 12 minutes on two cores
	@$(MAKE) -j2 $(STAMPS)/installed check collection
	$(call in_both_builds,not soak,the suite)

.PHONY: interop-soak
interop-soak: $(STAMPS)/installed $(STAMPS)/interop  ## 80 minutes: Spark at two real Artemis nodes, with kills; etcd and ZooKeeper in partitions
	@$(PYTHON) -m pytest -s -m soak tests/interop

.PHONY: soak
soak: $(STAMPS)/installed fuzz  ## hours: every decoder fuzzed, slow tests, simulated clusters; SEED=N begins elsewhere
	@ATALANTA_SOAK=1 PYTHONPATH=$(CURDIR)/src $(PYTHON) -m pytest -m "not soak" tests/namespaces
	$(call in_both_builds,soak,the slow tests)
	@$(SOAK) --count 2000
	@$(SOAK) --hours 1
