# Every target sets up what it needs, in .venv. Python 3.10 or later is enough; Node is used if present.

PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/.ready

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

test: lint types rules cover  ## Everything that must hold
	$(PY) -m pytest -n 3 --dist loadgroup --ignore tests/spark
	$(PY) -m pytest tests/spark

lint: $(READY)  ## Style, form and the law of imports
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(READY)  ## mypy, and pyright if there is Node
	$(PY) -m mypy
	@if command -v node >/dev/null; then $(PY) -m pyright --pythonpath $(PY); else echo "no Node: pyright left out"; fi

rules: $(READY)  ## Every rule of spec_notes is named by a test
	$(PY) -m tests.rules

cover: $(READY)  ## Every core module is covered by its own tests alone
	$(PY) -m tests.cover

core: $(READY)  ## Only the machines: no I/O and no server
	$(PY) -m pytest tests/wire tests/connection tests/hostile tests/machines

spark: $(READY)  ## The source and the sink in a local Spark, where there is Java 17
	$(PY) -m pytest tests/spark

micropython: $(READY)  ## The core on MicroPython
	$(PY) -m pytest tests/micropython

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

bench:  ## All benchmarks, in short, against other clients; on python3.13 too if there is one
	$(PYTHON) bench/run.py $(PYTHON) python3.13

demo: $(READY)  ## Orders through a real server: three runtimes live, then Spark if there is Java
	$(PY) -m examples.orders

clean:  ## Remove all that is not source
	rm -rf .venv .tox .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: help test lint types rules cover core spark micropython fuzz sim soak bench demo clean
