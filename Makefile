# Python 3.10+ and make are all that is needed; everything else is fetched into .venv and the user's cache.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Stamps: a target is done again only when its requirements changed.
RUNTIME := $(VENV)/.installed-runtime
DEV     := $(VENV)/.installed-dev

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.10 --generate-hashes --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test chaos lint types bench requirements clean distclean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "make %-13s %s\n", $$1, $$2}'

setup: $(RUNTIME) ## install rivermouth into .venv, fetch the jars, make starts quick
	@$(BIN)/rivermouth setup

demo: $(RUNTIME) ## watch a web shop's events land in Delta tables under ./demo-lake
	@$(BIN)/rivermouth demo

test: $(DEV) ## run the tests; all of them, also the slow ones, when CI=true
	$(BIN)/python -m pytest $(PYTEST_ARGS)

chaos: $(DEV) ## break a pipeline in every way we know; SEED=n repeats a run
	CI= CHAOS_SEED=$(SEED) CHAOS_KILLS=30 $(BIN)/python -m pytest tests/chaos -m "slow or not slow" $(PYTEST_ARGS)

lint: $(DEV) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV) ## check types
	$(BIN)/mypy

bench: $(DEV) ## measure against plain PySpark and a plain script
	$(BIN)/python -m bench $(BENCH_ARGS)

requirements: $(DEV) ## pin again what pyproject.toml asks for (for maintainers)
	$(PIP) install uv
	$(COMPILE) --group build -o requirements-build.txt
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --group dev -o requirements-dev.txt

clean: ## remove what runs have left here (the demo's tables, caches, reports)
	rm -rf demo-lake build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find rivermouth tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	rm -rf $(VENV) *.egg-info

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "rivermouth needs Python 3.10 or newer, and '$(PYTHON)' is not: try make PYTHON=python3.12" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	@touch $@

# What is built here (pyspark, this package) is built with the pinned setuptools: nothing unpinned is fetched.
INSTALL := $(PIP) install --no-build-isolation --use-pep517

$(RUNTIME): $(VENV)/.created requirements-build.txt requirements.txt pyproject.toml
	@echo "installing the requirements (pyspark alone is 450 MB)"
	@$(PIP) install --require-hashes -r requirements-build.txt
	@$(INSTALL) --require-hashes -r requirements.txt
	@$(INSTALL) --no-deps --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements-dev.txt
	@echo "installing the requirements for development"
	@$(INSTALL) --require-hashes -r requirements-dev.txt
	@touch $@
