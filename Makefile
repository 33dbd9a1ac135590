# Everything below works from a clean clone; it needs git, make and Python 3.11 or newer.
# The first target that needs it makes .venv. `make clean`, then `make PYTHON=/path/to/python3 ...`, chooses another Python.
# ARGS=... is passed on to the demo and to pytest; ARGS='-n 0 ...' runs the tests in one process, as -s and --pdb need it.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-all agents agents-all test-agents test-agents-all agents-demo cluster-demo test-cluster postgres campaigns campaigns-short torture soak simulate-engine mutants xstate spin coverage lint format types contracts pages pictures certificates notebooks bench site wheel ci clean

PYTEST := .venv/bin/python -m pytest -n auto --maxprocesses 8 --dist worksteal
ALWAYS := not campaign and not agents and not all_agents and not cluster
PYTHONS := $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3)
BIN := .venv/bin
TARGET := fleet
LARGER := fleet-governed fleet-trusted fleet-limited fleet-talking fleet-quota fleet-sharing fleet-turns fleet-asking fleet-steering fleet-telling fleet-resting fleet-resuming fleet-outages fleet-stalling fleet-restarts fleet-orphans fleet-preempting fleet-aborts fleet-serving fleet-drained fleet-changing fleet-2x2 fleet-2x3
EXTRAS := runtime check notebook test lint bench docs
PARTS := core effects interpreters
PROGRAMS := $(foreach d,tests tools benchmarks examples notebooks,$(if $(wildcard $d/*.py $d/*/*.py),$d))
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE # the tests start hundreds of programs, which then need not compile what they import

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.has-runtime ## run the demonstration
	@$(BIN)/lifefold demo $(ARGS)

test: .venv/.has-test ## run the tests but the slow ones of tests/slow.txt (four minutes on two idle processors)
	$(PYTEST) -m '$(ALWAYS) and not slow' $(ARGS)

test-all: .venv/.has-test ## run the tests, slow ones too
	$(PYTEST) -m '$(ALWAYS)' $(ARGS)

agents: .venv/.has-test ## install real agent programs into .agents for their tests (needs npm; one that cannot be had is left out)
	$(BIN)/python tools/recordings/install.py $(ARGS)

agents-all: .venv/.has-test ## as agents, with those that take a minute
	$(BIN)/python tools/recordings/install.py --all

test-agents: .venv/.has-test ## run the real agent programs of make agents against a model service on loopback (two minutes)
	$(PYTEST) tests/agents -m agents $(ARGS)

test-agents-all: .venv/.has-test ## as test-agents, with every recorded case
	$(PYTEST) tests/agents -m 'agents or all_agents' $(ARGS)

agents-demo: .venv/.has-test ## run a fleet of three real agent programs through a limit, a permission and a crash of the runner
	$(BIN)/python tools/recordings/demo.py $(ARGS)

cluster-demo: .venv/.has-test ## run twenty agents on three hosts, of which one is killed and one frozen (skipped without PostgreSQL and Temporal)
	PYTHONPATH=tests/support $(BIN)/python tools/cluster/cluster_demo.py $(ARGS)

test-cluster: .venv/.has-test ## run the tests with servers of PostgreSQL and Temporal, with crashes and partitions (skipped without them)
	$(PYTEST) -m cluster $$(grep -rlE '^(pytestmark = .*|@)pytest\.mark\.cluster' tests --include='test_*.py') $(ARGS)

campaigns: .venv/.has-test ## run the long forms of tests: many examples of each property, certificates made again
	$(PYTEST) -m 'campaign or hypothesis' --hypothesis-profile campaign $(ARGS)

campaigns-short: .venv/.has-test ## run each seventeenth case of the long forms that are not slow, as the continuous integration does
	$(PYTEST) -m 'campaign and not slow' --campaign-share 17 $$(grep -rlE 'campaign|back_ends' tests --include='test_*.py') $(ARGS)

torture: .venv/.has-test ## lose power, break disks, kill processes, reuse pids, change inputs, disturb a cluster (ARGS='power --trials 50'; all takes hours)
	$(BIN)/python tools/torture $(ARGS)

soak: .venv/.has-runtime ## simulate seed after seed until stopped, and keep what is found in soak/ (TARGET=fleet-20x200, ARGS='--jobs 1')
	$(BIN)/lifefold simulate $(TARGET) --soak soak --jobs 2 $(ARGS)

simulate-engine: .venv/.has-runtime ## simulate the real engine with thousands of seeds (half an hour; ARGS='--seeds 100')
	$(BIN)/lifefold simulate session --engine --seeds 2000 --hours 1 --jobs 2 $(ARGS)
	$(BIN)/lifefold simulate fleet-2x3 --engine --seeds 2000 --hours 3 --jobs 2 $(ARGS)
	$(BIN)/lifefold simulate fleet-mixed --engine --seeds 200 --hours 2 --jobs 2 $(ARGS)

mutants: .venv/.has-test ## try every mutant of the lifecycles and of the fleet's rules (some hours), and write docs/mutants.md
	$(PYTEST) tests/mutants/every_mutant.py tests/mutants/every_fleet_mutant.py tests/mutants/every_simulated_mutant.py $(ARGS); found=$$?; $(BIN)/python docs/write_mutants.py && exit $$found

xstate: ## install XState, for the test that loads the diagrams into it (needs node and npm; skipped without)
	cd tests/interpreters/views/xstate && npm install --silent --no-package-lock --no-audit --no-fund

postgres: ## install PostgreSQL's server and libfaketime for make test-cluster (needs apt and root; skipped without)
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends postgresql libfaketime >/dev/null

spin: ## install SPIN, the checker's witness in the tests and its peer in the benchmarks (needs apt and root; skipped without)
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends spin gcc libc6-dev >/dev/null

coverage: .venv/.has-test ## run the tests of core/ and effects/; fail unless they take every branch there
	$(PYTEST) tests/core tests/effects --cov --cov-report= $(ARGS)
	$(BIN)/coverage report --fail-under=100

lint: .venv/.has-dev ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: .venv/.has-dev ## correct style and formatting where that can be done by machine
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

types: .venv/.has-dev .types/lifefold/__init__.py ## check the types, with mypy and with pyright
	MYPYPATH=.types $(BIN)/mypy $(PARTS:%=-p lifefold.%)
	$(if $(PROGRAMS),MYPYPATH=.types:tests/support:tools/cluster:tools/mutation:tools/recordings:tools/torture $(BIN)/mypy $(PROGRAMS))
	$(BIN)/pyright --warnings -p .types/lifefold

contracts: .venv/.has-dev .types/lifefold/__init__.py ## check who may import whom, and that core/ imports nothing impure
	PYTHONPATH=.types $(BIN)/lint-imports --no-cache

pages: .venv/.has-test ## write docs/lifecycles, docs/fleet/wiring.md, the tables of docs/fleet-file.md, the figures of proofs and of sizes anew
	$(BIN)/python docs/write_lifecycles.py
	$(BIN)/python docs/write_wiring.py
	$(BIN)/python docs/write_fleet_file.py
	$(BIN)/python docs/write_figures.py
	PYTHONPATH=.:tests/support $(BIN)/python docs/write_sizing.py
	$(BIN)/python docs/draw_architecture.py
	$(BIN)/python docs/draw_machines.py

pictures: .venv/.has-test ## take the pictures of the desk for docs/fleet/browser.md (needs /usr/bin/chromium)
	$(BIN)/python docs/take_pictures.py

certificates: .venv/.has-check ## check what is shipped, and write docs/certificates anew
	$(BIN)/lifefold check $$($(BIN)/lifefold machines | sed 's/ .*//') $(LARGER) --certificate docs/certificates/ $(ARGS)
	$(BIN)/python docs/write_figures.py

notebooks: .venv/.has-notebook ## execute the notebooks, and write what they show into them (ARGS=--check compares)
	$(BIN)/python notebooks/execute.py $(ARGS)

bench: .venv/.has-bench ## run the benchmarks
	@$(BIN)/python -m benchmarks $(ARGS)

site: .venv/.has-docs ## build the documentation as a site into site/, with warnings as errors
	$(BIN)/python -m sphinx --nitpicky --fail-on-warning --quiet -b html docs site

wheel: .venv/.has-runtime ## build the wheel into dist/
	rm -rf build dist
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

ci: ## do all that the continuous integration does
	@.ci/run

clean: ## remove all that these targets made
	rm -rf .venv .agents .types build dist site *.egg-info .coverage .*_cache .hypothesis .grimp_cache
	find $(PARTS) tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The type checkers read the sources where they lie: through these links, core/ is lifefold/core/.
.types/lifefold/__init__.py:
	@rm -rf .types && mkdir -p $(@D)
	@ln -sfn $(PARTS:%=../../%) $(PROGRAMS:%=../../%) ../../pyproject.toml ../../.venv ../../interpreters/public/__init__.py $(@D)/

# One environment; each stamp says what has been put into it, and is redone when the declaration changes.
# What `dev` installs is all that the others would.
.venv/.has-%: pyproject.toml setup.py constraints.txt | .venv/.made
	@echo "installing lifefold and its $* dependencies into .venv"
	@$(BIN)/pip install --quiet --constraint constraints.txt setuptools
	@$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.$(patsubst [runtime],,[$*])'
	@touch $@ $(if $(filter dev,$*),$(EXTRAS:%=.venv/.has-%))

.venv/.made:
	@for python in $(PYTHONS); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  found=$$python; \
	  "$$python" -c 'import venv, ensurepip' 2>/dev/null || continue; \
	  "$$python" -m venv --clear .venv && touch $@ && exit 0; \
	done; \
	if [ -n "$$found" ]; then echo "lifefold: $$found cannot make a virtual environment: its venv module is missing" \
	  "(on Debian and Ubuntu: apt install python3-venv)." >&2; \
	else echo "lifefold: no Python 3.11 or newer among: $(PYTHONS)." \
	  "Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; fi; exit 1
