# searchblend: every target installs what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TESTS  := $(VENV)/.installed-tests
BROWSERS := $(VENV)/.browsers
NODE   := extension/node_modules/.installed
RUNS   ?= 5
BUSY   ?= 4
PROSE := *.md docs/tutorial/*.md docs/how-to/*.md docs/explanation/*.md proofs/*.md
COLLECTED := $(VENV)/.collected
# Every worker of pytest would otherwise compile every test again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: coverage help install browsers extension extension-lint run ready test test-without-spark test-spark quick flake check check-types check-rest slow attack bench docs reference figures fuzz lock sbom smoke vectors wheel clean audit screenshots

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "searchblend needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml requirements.lock scripts/install.py | $(BIN)/python
	$(BIN)/python scripts/install.py base build --editable .
	$(BIN)/python -m compileall -q src/searchblend
	@touch $@

$(TESTS): pyproject.toml requirements.lock scripts/install.py lab/pyproject.toml | $(BIN)/python # with all of the above
	$(BIN)/python scripts/install.py base test check spark server oidc plots docs build lab --editable . ./lab
	$(BIN)/python -m compileall -q src/searchblend lab/src
	@touch $(INSTALLED) $@

$(BROWSERS): scripts/install-browsers.sh scripts/install-servers.sh | $(BIN)/python
	scripts/install-browsers.sh
	scripts/install-servers.sh
	@touch $@

$(NODE): extension/package.json extension/package-lock.json $(BROWSERS)
	npm --prefix extension ci --no-audit --no-fund --loglevel=error
	@touch $@

install: $(TESTS) ## make .venv with the package, the lab and all that the tests need

browsers: $(BROWSERS) $(NODE) ## Chromium, Firefox ESR and Node's packages, which the tests of the extension drive
	scripts/install-browsers.sh

extension: $(INSTALLED) ## dist/searchblend-chromium.zip and dist/searchblend-firefox.xpi
	$(BIN)/python extension/build.py --output dist $(if $(ENROLMENT),--enrolment $(ENROLMENT))

extension-lint: extension browsers ## Mozilla's linter on the Firefox build (the linter takes minutes to install)
	npm exec --yes --package web-ext@10.7.0 -- web-ext lint --self-hosted --warnings-as-errors --source-dir build/extension/firefox

run: $(INSTALLED) ## the main job: a hybrid private run on a synthetic log, shown as a table
	$(BIN)/searchblend demo

ready: # Python's packages and the browsers', beside each other
	@$(MAKE) --no-print-directory --jobs 2 install browsers

test: ready ## all tests (but for the slow ones): every part runs, whether or not another fails
	@$(MAKE) --no-print-directory --keep-going --jobs 2 test-without-spark test-spark

$(COLLECTED): $(shell find tests -name '*.py') # compiled once, not by all workers at once; what is wrong is said by them
	@$(BIN)/pytest --collect-only -qq > /dev/null 2>&1 || true
	@touch $@

test-without-spark: $(COLLECTED)
	$(BIN)/pytest -n 6 --dist worksteal -m 'not slow' --ignore tests/spark

test-spark: # in one process, for one cluster; what it says is shown at its end, not in between
	@log=$$(mktemp); $(BIN)/pytest -m 'not slow' tests/spark > $$log 2>&1; code=$$?; cat $$log; rm $$log; exit $$code

quick: install ## the tests of the code alone, without browser, database server and Spark
	$(BIN)/pytest -q -n 3 --dist worksteal -m 'not slow and not thorough and not database_server' --hypothesis-profile quick tests/architecture tests/properties tests/unit tests/vectors

flake: install browsers ## make test RUNS times (5) beside BUSY busy processes (4); failures listed by test
	$(BIN)/python scripts/flake.py --runs $(RUNS) --busy $(BUSY)

coverage: install ## branch coverage of the code that promises privacy (core to clickgraph), with a floor
	$(BIN)/coverage run -m pytest -q -m 'not slow and not thorough and not database_server' --hypothesis-profile quick tests/unit/core tests/unit/mechanisms tests/unit/accounting tests/unit/blender tests/unit/clickgraph tests/properties tests/vectors
	$(BIN)/coverage report

check: install $(NODE) ## lint, spelling and prose, format, types (Python and JavaScript): every part runs
	@$(MAKE) --no-print-directory --keep-going --jobs 2 check-types check-rest

check-types:
	$(BIN)/mypy

check-rest:
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/proselint check --config scripts/documentation/proselint.json $(PROSE)
	$(BIN)/ruff format --check .
	npm --prefix extension run --silent check

slow: install browsers extension-lint attack ## the tests that take minutes, and docs/results/best-vs-paper.md
	$(BIN)/pytest -m slow --ignore tests/attack
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow' --hypothesis-profile exploring tests/properties tests/unit
	$(BIN)/python benchmarks/best_vs_paper.py

attack: install ## real servers over SQLite and PostgreSQL, and everything that was ever tried against them
	$(BIN)/pytest -n 2 --dist loadfile tests/unit/service/test_single_sign_on.py tests/attack

bench: install ## speed as ratios against named baselines and peers: docs/results/benchmarks.md (under half an hour on an idle machine)
	$(BIN)/python benchmarks/run_all.py

screenshots: install browsers ## pictures of every page of console, extension, results and documentation: build/screenshots/
	SCREENSHOTS=1 $(BIN)/pytest -q -m 'not slow' tests/browser

fuzz: install ## everything that reads what others wrote, for FUZZ_SECONDS (600)
	$(BIN)/python scripts/install.py fuzz
	$(BIN)/python tests/fuzz/run_fuzz.py

lock: install ## requirements.lock with the hash of every file (UPGRADE=1: newest versions), docs/reference/licences.md
	$(BIN)/python scripts/lock.py $(if $(UPGRADE),--upgrade)
	$(BIN)/python scripts/licences.py

wheel: install ## dist/searchblend-*.whl and dist/searchblend_lab-*.whl, each built twice: both must have the same SHA-256
	$(BIN)/python scripts/wheel.py

sbom: install ## dist/searchblend.cdx.json: what a full installation holds (CycloneDX)
	$(BIN)/python scripts/sbom.py

smoke: wheel ## the wheels in empty environments: every command once, for real
	$(BIN)/python scripts/smoke_wheel.py

audit: install ## attack the shipped code, every mechanism and program: docs/results/audit.md (under 15 minutes)
	mkdir -p build
	$(BIN)/searchblend audit --markdown docs/results/audit.md --html build/audit.html

figures: install ## every figure and table of the papers, and ours, at full size: docs/results (about 20 minutes)
	$(BIN)/searchblend evaluate all --html -o docs/results

docs: install ## the documentation as a site: build/docs
	$(BIN)/python scripts/documentation/build_site.py build/docs
	@echo "build/docs/index.html"

reference: install ## docs/reference as the code is now: commands, Python API, settings, OpenAPI
	$(BIN)/python scripts/documentation/reference.py
	$(BIN)/python scripts/documentation/openapi.py

vectors: install ## write the test vectors anew (a change in them is a change of protocol)
	$(BIN)/python vectors/make_vectors.py
	$(BIN)/python vectors/make_normalize.py
	$(BIN)/python vectors/make_messages.py
	$(BIN)/python vectors/make_policy.py
	$(BIN)/python vectors/make_log.py
	$(BIN)/python vectors/make_ohttp.py
	$(BIN)/python vectors/make_packs.py
	$(BIN)/python vectors/make_device.py
	$(BIN)/python vectors/make_suspects.py

clean: ## remove what was made
	rm -rf $(VENV) .bench-envs build dist out extension/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
