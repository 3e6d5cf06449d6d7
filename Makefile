# Every target sets up what it needs, in .venv. Python 3.10 or later is enough; Node is used if present.

PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/.ready
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --no-compile
# Checks that do not depend on timing run at low priority, so they do not slow down the server tests.
CALM := nice -n 19 $(PY)
CORE := $(addprefix tests/,wire connection jetstream)
PURE := $(addprefix tests/,hostile fuzz embedded) \
	$(addprefix tests/sim/test_,sim.py simulation.py model.py push_model.py mutants.py mutate.py)
# These compare times with limits, or wait for clusters that crash, so they run when nothing else does.
TIMED := $(addprefix tests/,sweep jepsen soak)
# Fail if a worker process dies: a replacement would wait forever.
XDIST := --max-worker-restart 0 --dist
# A hundred processes import the same sources, so keep the compiled files even if the environment says not to.
unexport PYTHONDONTWRITEBYTECODE

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# Most of the time is spent waiting for servers, so run several parts in parallel; each prints its output when it ends.
test: $(READY)  ## Run every check that must pass before a merge
	$(MAKE) --no-print-directory --jobs 6 $(addprefix --,$(filter output-sync,$(.FEATURES))) \
		lint real spark fuzz-minute oldest types cover pure rules
	$(MAKE) --no-print-directory timed

lint: $(READY)  ## Check style, formatting and the import law
	$(CALM) -m ruff check .
	$(CALM) -m ruff format --check .

types: $(READY)  ## Run mypy, and pyright if Node is installed; every public name has a type
	$(CALM) -m mypy
	@if command -v node >/dev/null; then $(CALM) -m pyright --pythonpath $(PY); else echo "Node is not installed: skipping pyright"; fi
	$(CALM) -m pytest tests/typing

rules: $(READY)  ## Check that a test and a line of code name every rule of spec_notes, and that generated pages are current
	$(CALM) -m docs.generate --check

pages: $(READY)  ## Regenerate the book, the diagrams and the index of rules
	$(PY) -m docs.generate

cover: $(READY)  ## Run the core tests; each module must be covered by its own tests alone
	$(CALM) -m tests.cover

pure: $(READY)  ## Run all other tests that need no server
	$(CALM) -m pytest -n 2 $(XDIST) worksteal $(PURE)

# Each process runs a dozen servers of its own, which together use a twentieth of a core when idle.
real: $(READY)  ## Run all remaining tests except those in Spark
	$(PY) -m pytest -n 3 $(XDIST) worksteal $(addprefix --ignore ,$(CORE) $(PURE) $(TIMED) tests/typing tests/spark)

timed: $(READY)  ## Run the sweeps, the check of linearizability and short soaks, which compare times with limits
	$(PY) -m pytest -n 3 $(XDIST) worksteal $(TIMED)

core: $(READY)  ## Test only the machines: no I/O and no server
	$(PY) -m pytest $(CORE) tests/hostile

spark: $(READY)  ## Test the source and the sink in a local Spark; needs Java 17
	$(PY) -m pytest -n 2 $(XDIST) loadfile tests/spark

micropython: $(READY)  ## Test the core on MicroPython
	$(PY) -m pytest tests/micropython

pyodide: $(READY)  ## All checks that Pyodide can run, under Node, and some in Chromium
	PYODIDE_CHECKS=all $(PY) -m pytest -n 2 $(XDIST) worksteal tests/pyodide

# Those of which `make real` runs only a part; six minutes each.
ADAPTERS ?= poll anyio anyio-trio gevent twisted
adapters: $(READY)  ## The whole conformance suite on the other adapters, or on those in ADAPTERS
	$(PY) -m tests.conformance.adapters $(ADAPTERS)

VERSIONS ?=
versions: $(READY)  ## Run the conformance suite on every supported nats-server, or on those in VERSIONS
	$(PY) -m tests.versions $(VERSIONS)

oldest: $(READY)  ## Run the quick part of the conformance suite on the oldest nats-server on PyPI
	$(PY) -m tests.versions --quick

PEERS ?= build/compat/peers
compat: $(READY)  ## Run the suites of nats-py, FastStream and taskiq-nats on the compatibility layer
	$(PY) -m tests.compat.run --baseline --peers $(PEERS)

FUZZ_SECONDS ?= 60
fuzz-minute: $(READY)  ## Fuzz with each harness for FUZZ_SECONDS (60) in the time that other checks leave
	FUZZ_GUIDED=0 FUZZ_SECONDS=$(FUZZ_SECONDS) $(CALM) -m tests.fuzz.run

FUZZ ?=
fuzz: $(READY)  ## Fuzz with each harness, or those in FUZZ, for FUZZ_SECONDS (60), with atheris where a wheel is available
	-$(PIP) --only-binary atheris --group fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(PY) -m tests.fuzz.run $(FUZZ)

SEEDS ?= 100000
sim: $(READY)  ## Run the simulation with SEEDS (100,000) seeds for each mode, on all cores
	$(PY) -m tests.sim --count $(SEEDS)

MUTATE ?=
mutants: $(READY)  ## List mechanical mistakes in the modules in MUTATE that no test finds
	$(PY) -m tests.sim.mutate $(MUTATE)

CHAOS ?= --rounds 200
chaos: $(READY)  ## Write and read in every way while a cluster crashes and is cut apart; CHAOS holds the arguments
	$(PY) -m tests.soak.chaos $(CHAOS)

SOAK ?= --messages 100000 --faults 10
STEADY ?= --messages 50000000
soak: $(READY)  ## Publish and consume while servers crash, freeze and restart; SOAK and STEADY hold the arguments
	$(PY) -m tests.soak $(SOAK)
	$(PY) -m tests.soak.memory
	$(PY) -m tests.soak.snapshots
	$(PY) -m tests.soak.steady $(STEADY)

JEPSEN ?= --operations 1000000 --faults 1000
jepsen: $(READY)  ## Check that writes are linearizable while a cluster crashes; JEPSEN holds the arguments
	$(PY) -m tests.jepsen $(JEPSEN)

# The comparison with other clients runs on the newest of these; --rounds 2 --share 0.2 is a short run.
BENCH_PYTHONS ?= $(PYTHON) python3.13
BENCH ?=
bench:  ## Compare with other clients, store the figures and write the tables; BENCH holds the options
	$(PYTHON) bench/run.py $(BENCH_PYTHONS) -- $(BENCH)

bench-check:  ## Run a short comparison and report ratios that are more than 10 % worse
	$(PYTHON) bench/run.py --check $(BENCH_PYTHONS) -- $(BENCH)

bench-spark:  ## Run a short benchmark of the source and the sink in a local Spark
	$(PYTHON) bench/run.py --spark $(BENCH_PYTHONS)

SITE ?= build/site
site: $(READY)  ## Write the explorer as a folder of static files, SITE (build/site)
	$(PY) -m jetstream.tools.cli explore --build $(SITE)

docs: .venv/.docs  ## Build the documentation as a site, build/docs, and check its links and spelling
	$(PY) -m docs.site

demo: .venv/.demo  ## Send orders through a real server: three runtimes live, then Spark if Java is installed
	$(PY) -m examples.orders

demo-lite: .venv/.demo-lite  ## The same without Spark: a download of about 10 MB
	$(PY) -m examples.orders --lite

PYTHONS ?=
dist: .venv/.dist  ## Build the sdist and the wheel twice, compare and check them, and run README in empty environments
	$(PY) -m release.dist $(PYTHONS)

clean:  ## Remove everything that is not source
	rm -rf .venv .tox .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Do not precompile: modules are compiled when imported, and most never are. The groups of pyproject.toml need pip 25.1.
$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --group dev --editable .
	@touch $@ .venv/.demo .venv/.demo-lite

# The demos install only what they need; where the developers' tools are installed, that is nothing.
.venv/.demo .venv/.demo-lite: .venv/.%: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[$*]'
	@touch $@

.venv/.docs .venv/.dist: .venv/.%: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --group $* --editable .
	@touch $@

# Every target that has a description.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*## .*/\1/p' $(MAKEFILE_LIST))
