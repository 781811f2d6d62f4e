# Each target sets up what it needs. Bare `make` lists them.

PYTHON ?= python3
ARGS ?=
FRAMES ?= 1000000
REQUESTS ?= 10000
CONNECTIONS ?= 1000
# One more than there are processors: some tests wait for processes and disks.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
MINUTES ?= 30

bin := .venv/bin
ready := .venv/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup java servers run test test-long check format fuzz fuzz-broker fuzz-http hostile soak-broker bench
.PHONY: constraints clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(ready) ## Create .venv with the pinned dependencies (again only when they change)

$(ready): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" bash scripts/venv.sh
	@touch $@

java:
	@bash scripts/java.sh

servers:
	@bash scripts/servers.sh

run: setup java ## Run the demonstration
	$(bin)/driftline demo $(ARGS)

tests = $(bin)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: setup java servers ## Run every test but the long ones (ARGS="-m 'not spark' -k name" for fewer)
	$(tests) -m "not slow" $(ARGS)

test-long: setup java servers ## Run the tests that take minutes: clusters, long random programs, killed overlays
	$(tests) -m slow $(ARGS)

check: setup ## Check formatting, lint, types and the direction of imports
	$(bin)/ruff format --check
	$(bin)/ruff check
	$(bin)/mypy
	$(bin)/lint-imports --no-logo

format: setup ## Format the code and apply the safe lint fixes
	$(bin)/ruff check --fix-only --quiet
	$(bin)/ruff format

fuzz: setup ## Run the long random tests (ARGS="--hypothesis-seed=7" to replay)
	$(bin)/python -m pytest tests/properties -m slow $(ARGS)

fuzz-broker: setup ## Send hostile frames to a running broker (FRAMES=1000000 ARGS="--seed 7")
	$(bin)/python -m tests.net.fuzz --frames $(FRAMES) $(ARGS)

fuzz-http: setup ## Ask a broker for whatever OpenAPI describes, and for what it does not (REQUESTS=10000 ARGS="--seed 7")
	$(bin)/python -m tests.gateway.fuzz --requests $(REQUESTS) $(ARGS)

hostile: setup ## Let a thousand connections mean harm to a broker (CONNECTIONS=1000 ARGS="--seed 7")
	$(bin)/python -m tests.net.hostile --connections $(CONNECTIONS) $(ARGS)

soak-broker: setup ## Kill brokers of an overlay that works (MINUTES=30 ARGS="--every 60 --json soak.json")
	$(bin)/python -m tests.net.soak --minutes $(MINUTES) $(ARGS)

bench: setup java ## Run a benchmark (NAME=language ARGS="--full --json"); without NAME, list them
	$(bin)/driftline bench $(NAME) $(ARGS)

constraints: ## Resolve all dependencies anew and rewrite constraints.txt
	@PYTHON="$(PYTHON)" bash scripts/constraints.sh

clean: ## Remove caches, build artefacts and outputs (not .venv)
	rm -rf build dist out .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts derby.log metastore_db spark-warehouse
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
