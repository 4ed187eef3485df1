# make demo | test | check | test-agents | test-editors | test-all | vsix | bench | crash. Each sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST := $(BIN)/python -W error -m pytest
AGENTS := $(BIN)/python -m tests.kit.agent_setup
CODE := clients/vscode-min

.PHONY: demo test check fast test-agents record-agents test-editors vsix test-all bench crash generate fix clean

$(STAMP): pyproject.toml
	@start=$$(date +%s); test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' && touch $(STAMP) && \
	echo "set-up took $$(( $$(date +%s) - start )) s" >&2

demo: $(STAMP)  ## run examples/checkup.yaml on this repository, in a live tree
	@start=$$(date +%s); $(BIN)/graphd run checkup --yes; code=$$?; \
	echo "the demo took $$(( $$(date +%s) - start )) s" >&2; exit $$code

test: $(STAMP)  ## all tests but the slow ones and most real agents
	@$(AGENTS) --or-skip small
	$(PYTEST) -m "not slow and not agents and not editors" -n 2 --dist loadfile

test-agents: $(STAMP)  ## real agent programs, from npm, against a scripted model
	@$(AGENTS) main
	$(PYTEST) -m "agents and not slow" -n 2 --dist loadfile tests/agents

record-agents: $(STAMP)  # what every real agent does through graphd, for docs/agents.md
	@$(AGENTS) small main more vibe
	@rm -f tests/agents/through.json
	AGENTS_RESULTS=1 $(PYTEST) -n 2 --dist loadfile tests/agents -k "through or graphs"; code=$$?; \
	$(BIN)/python -m tests.kit.agent_page; exit $$code

$(VENV)/.editors: $(STAMP) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,editors]' && touch $@

test-editors: $(VENV)/.editors vsix  ## real editors with our clients, against a real daemon
	@$(BIN)/python -m tests.kit.editor_setup
	$(PYTEST) -m editors tests/clients

$(CODE)/node_modules/.ready: $(CODE)/package-lock.json
	@cd $(CODE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && touch node_modules/.ready

vsix: $(CODE)/node_modules/.ready  ## the VS Code extension: clients/vscode-min/dist/graphd.vsix
	@cd $(CODE) && npm run --silent check && npm run --silent build && npm run --silent package

test-all: $(STAMP)  ## everything: the slow ones too, every real agent and editor
	@$(AGENTS) --or-skip small main more vibe
	$(PYTEST) -m "not editors" -n 2 --dist loadfile
	$(MAKE) --no-print-directory test-editors

fast: $(STAMP)  # every branch of the core by the unit tests, then the house rules
	$(BIN)/coverage run -m pytest -m "not slow" -q tests/unit
	$(BIN)/coverage report
	$(PYTEST) -m "not slow" -q tests/meta

check: $(STAMP)  ## format, lint, types, import contracts, generated files, fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory fast

fix: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(STAMP)  ## write the generated pages again
	$(BIN)/python -m tests.meta.failpoints > docs/failpoints.md
	$(BIN)/python -m generator
	$(BIN)/python -m tests.kit.agent_page

bench: $(STAMP)  ## measure, with ratios in one run
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m benchmarks  # else our modules are compiled at every start

crash: $(STAMP)  ## the crash sweep alone, every point
	$(PYTEST) -n 2 tests/proc/test_crash_sweep.py tests/sim

clean:
	rm -rf $(VENV) .agents-cache .editors-cache $(CODE)/node_modules $(CODE)/dist build dist
