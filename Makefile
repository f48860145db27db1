# Targets for people and CI; `make help` lists them. All that is made at run time lies in .planning-health/.
SHELL := /bin/sh
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo airflow test test-full test-ui test-stack test-faults audit lint format dist java clean distclean

help: ## List all targets
	@grep -hE '^[a-z.-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(STAMP) java ## Build the demonstration lake, run the Dags on it, show the report
	@$(BIN)/python -m planning_health.demo

airflow: $(STAMP) java ## Start the Airflow UI with the Dags on the demonstration lake (Ctrl-C ends it)
	@exec $(BIN)/python -m planning_health.demo airflow

test: $(STAMP) java ## Run all tests
	@$(BIN)/python -m pytest

test-full: $(STAMP) java ## Compare planning with Iceberg on some 2,500 pairs of table and filter (about 5 minutes)
	@PLANNING_ORACLE_PREDICATES=130 $(BIN)/python -m pytest tests/integration/test_planning_oracle.py

test-ui: $(STAMP) java ## Run the tests in a browser, on a real Airflow (needs Chromium; about 8 minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,ui]'
	@$(BIN)/python -m pytest tests/ui

test-stack: $(STAMP) java ## Run the pipeline on PostgreSQL, an object store, a Spark cluster and LocalExecutor (about 10 minutes)
	@$(BIN)/python -m pytest tests/stack

test-faults: $(STAMP) java ## Strike maintenance with faults on real tables (docs/faults.md; 15 to 25 minutes)
	@$(BIN)/python -m pytest tests/faults

audit: $(STAMP) ## Look the pinned packages up in the vulnerability database (needs the internet)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	@$(BIN)/python -m pip_audit --strict --requirement constraints.txt --no-deps --disable-pip

lint: $(STAMP) ## Check formatting, style and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(STAMP) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

dist: $(STAMP) ## Build the wheel for Spark executors and other machines (dist/)
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

java: $(STAMP) ## Check that a Java is here that Spark can start on
	@$(BIN)/python -m planning_health.catalogs.java

clean: ## Remove what was made at run time: lake, Airflow home, runs, reports
	rm -rf .planning-health dist

distclean: clean ## Remove the virtual environment and all caches too
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv: $(STAMP) ## Install everything, pinned by constraints.txt, into .venv

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: Python %d.%d is not supported: install Python 3.11 or newer, or name it: make PYTHON=python3.12 …" % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "error: no virtual environment could be made: install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
