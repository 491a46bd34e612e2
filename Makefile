# compactd: everything a newcomer, a developer and CI call. Each target sets up .venv first if it is missing or stale.
SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

READY := .venv/.ready
RUN := .venv/bin/python
TEST_WORKERS ?= 2
THINKING_TESTS := $(addprefix tests/unit/,core store worker) $(wildcard tests/unit/test_*.py)
THINKING := core pipeline auto calls assembly events task  # the pure modules; the last four are parts of the pipeline

# Sets $$python to a Python >= 3.11 or says what is missing; PYTHON=… names one by hand.
FIND_PYTHON = for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python none; do \
	  [ "$$python" = none ] && break; \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && break; \
	done; \
	if [ "$$python" = none ]; then \
	  echo "compactd needs Python 3.11 or newer, and none was found on PATH." >&2; \
	  echo "Install one, or name it: make $(or $(MAKECMDGOALS),help) PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi

.PHONY: help
help:  ## this list
	@echo "compactd - make targets:"
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name text; do \
	  printf '  %-15s %s\n' $$name "$$text"; done

.PHONY: demo
demo: $(READY)  ## import, compact and print a sample session (FILE=path: your own transcript), then stop
	@exec $(RUN) -m ops.local --with-parent demo $${FILE:+"$$FILE"}

.PHONY: up
up: $(READY)  ## start Postgres, Valkey, API and worker here; Ctrl-C stops them
	@exec $(RUN) -m ops.local --with-parent up

.PHONY: test
test: $(READY)  ## run all tests (ARGS="-k word" is passed to pytest)
	@exec $(RUN) -m pytest -q -n $(TEST_WORKERS) --dist loadfile $(ARGS)

.PHONY: cases
cases: $(READY)  ## play the shared cases against the running service (COMPACTD_TEST_CASES=folder; also part of test)
	@exec $(RUN) -m pytest -q -n $(TEST_WORKERS) tests/cases $(ARGS)

.PHONY: chaos
chaos: $(READY)  ## break everything on purpose: 500 jobs, 110 faults, then the ledger (ARGS="--rounds 5"; four minutes a round)
	@exec $(RUN) -m tests.chaos $(ARGS)

.PHONY: bulk-drill
bulk-drill: $(READY)  ## a bulk run of 2,000 sessions, both ways, its worker killed every few seconds (COMPACTD_DRILL_SESSIONS=n)
	@COMPACTD_DRILL_SESSIONS=$${COMPACTD_DRILL_SESSIONS:-2000} exec $(RUN) -m pytest -q -s \
	  tests/integration/worker/test_bulk_crashes.py $(ARGS)

.PHONY: coverage
coverage: $(READY)  ## branch coverage of what thinks and decides: 100 %, or it fails
	@exec $(RUN) -m pytest -q -n $(TEST_WORKERS) $(THINKING_TESTS) --cov-branch \
	  $(THINKING:%=--cov=compaction.%) --cov-report=term-missing:skip-covered --cov-fail-under=100 $(ARGS)

.PHONY: bench-core
bench-core: $(READY)  ## what the thinking about a 10 MB session costs against json.loads, and how it grows to 100 MB
	@exec $(RUN) -m ops.bench.core

.PHONY: fuzz-api
fuzz-api: $(READY)  ## try very much broken input on every call of the API; some minutes (a short form is part of test)
	@COMPACTD_FUZZ_EXAMPLES=$${COMPACTD_FUZZ_EXAMPLES:-100} COMPACTD_FUZZ_BODIES=$${COMPACTD_FUZZ_BODIES:-10000} \
	  exec $(RUN) -m pytest -q tests/integration/api/test_contract.py tests/integration/api/test_broken_bodies.py $(ARGS)

.PHONY: bench-queue
bench-queue: $(READY)  ## enqueue and claim on a full queue against an empty one; what one tenant's flood costs another
	@exec $(RUN) -m ops.bench.queue

.PHONY: bench-jobs
bench-jobs: $(READY)  ## whole jobs by one worker, beside plain arq and taskiq (ARGS="--alone --runs 1": quickly)
	@exec $(RUN) -m ops.bench.jobs $(ARGS)

.PHONY: bench-api
bench-api: $(READY)  ## measure waiting callers and appends on one API process against what is promised
	@exec $(RUN) -m ops.bench.api

.PHONY: bench-growth
bench-growth: $(READY)  ## by how much the database grows for a session and for each job on it
	@exec $(RUN) -m ops.bench.growth

.PHONY: record-release
record-release: $(READY)  ## write down what this release asks of the database; the next one's migrations are held to it
	@exec $(RUN) -m ops.release_statements

.PHONY: bench-dashboard
bench-dashboard: $(READY)  ## every page of the dashboard with a million jobs behind it, against what is promised
	@exec $(RUN) -m ops.bench.dashboard $(ARGS)

.PHONY: screenshots
screenshots: $(READY)  ## take the pictures of the dashboard in docs/screenshots anew (needs Chromium)
	@exec $(RUN) -m tests.browser.screenshots $(ARGS)

.PHONY: check
check: $(READY)  ## lint, format, types, import rules, migrations drift
	$(RUN) -m ruff check --quiet .
	$(RUN) -m ruff format --quiet --check .
	$(RUN) -m mypy --no-error-summary
	$(RUN) .venv/bin/lint-imports --no-logo
	$(RUN) -m ops.drift

.PHONY: format
format: $(READY)  ## let ruff mend and format the code
	$(RUN) -m ruff check --quiet --fix .
	$(RUN) -m ruff format --quiet .

.PHONY: lock
lock:  ## write requirements.lock anew from pyproject.toml (UPGRADE=1: newest versions)
	@$(FIND_PYTHON); "$$python" ops/lock.py $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean:  ## remove .venv, caches and the local stack with its data
	@$(FIND_PYTHON); "$$python" -m ops.clean

export FILE
$(READY): requirements.lock pyproject.toml ops/setup.py
	@$(FIND_PYTHON); exec "$$python" ops/setup.py
