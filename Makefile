# Every target sets up what it needs in .venv; nothing is installed outside it.
#
#   make test ARGS="-k rotation"        ARGS goes to pytest, to `hiernorm demo` or to an experiment
#   make demo PYTHON=python3.13         the interpreter that .venv is made from
#   make bench CXX=clang++              the compiler of the native core

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
STAMPS := $(VENV)/stamps

# Where scikit-build-core has built the wheel: a folder named after the wheel's tags.
WHEEL_BUILD = build/$(shell basename $(VENV)/wheel/*.whl .whl | cut -d- -f3-)
CORE_TESTS := tests/engine tests/searchable tests/storage

# A process per core; the tests of a file stay together, since they share what is slow to make.
PARALLEL := --numprocesses logical --maxprocesses 8 --dist loadfile

# Whatever the built package depends on. Directories too, so that a deleted file is noticed.
SOURCES := pyproject.toml CMakeLists.txt \
    $(shell find src cpp -name __pycache__ -prune -o \( -type f -o -type d \) \
        ! -name '*.py[co]' ! -name '.*' -print 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
STUDIES := queries reconstruction growth plain filters photos places text shards quality scale match synthetic \
    descriptors public attention roofs
.PHONY: help demo test test-core test-cpp test-long test-ray fuzz attack checks bench reproduce tables record \
    $(STUDIES:%=study-%) sanitize emulate lint audit sbom constraints docs clean
export PYTHON

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: $(STAMPS)/package $(STAMPS)/extra-demo ## From photos to exact neighbours, into demo/index.html
	@$(BIN)/hiernorm demo $(ARGS)

test: $(STAMPS)/package $(STAMPS)/core-tests $(STAMPS)/extra-test ## Run the tests
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-core: $(STAMPS)/package $(STAMPS)/core-tests $(STAMPS)/extra-test-core ## Run the tests of core and database
	@$(BIN)/python -m pytest $(PARALLEL) $(CORE_TESTS) $(ARGS)

test-cpp: $(STAMPS)/package ## Run the C++ tests of the core
	@rm -f $(STAMPS)/core-tests
	@$(MAKE) --no-print-directory $(STAMPS)/core-tests
	@tail -n 1 build/setup.log

test-long: $(STAMPS)/package $(STAMPS)/extra-test ## Run the tests that take minutes: crashes, processes
	@$(BIN)/python -m pytest -m long --timeout 3600 $(ARGS)

test-ray: $(STAMPS)/package $(STAMPS)/extra-test ## Run the long tests on a Ray cluster: nodes that die
	@$(BIN)/python -m pytest -m ray --timeout 3600 $(ARGS)

fuzz: $(STAMPS)/package $(STAMPS)/extra-fuzz ## Feed the reader of database files with what breaks readers
	@$(BIN)/python tests/support/fuzz_header.py -max_total_time=60 $(ARGS)

attack: $(STAMPS)/package $(STAMPS)/extra-bench ## Damage, kill and interrupt databases for 20 minutes
	@$(BIN)/python -m experiments.attack $(ARGS)

# Experiments: experiments/README.md tells the questions, options, times and results.
bench: $(STAMPS)/package $(STAMPS)/extra-bench ## Measure against other libraries (ARGS=--quick: minutes)
	@$(BIN)/python -m experiments.speed $(ARGS)

reproduce: $(STAMPS)/package $(STAMPS)/extra-reproduce ## The paper, re-run (ARGS=--smoke: minutes; ARGS=--list)
	@$(BIN)/python -m experiments.reproduce $(ARGS)

study-queries: $(STAMPS)/package $(STAMPS)/extra-bench ## What a query costs: alone, in groups, by threads
	@$(BIN)/python -m experiments.queries $(ARGS)

study-growth: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Growth with N (ARGS="--features X.npy --queries Q.npy")
	@$(BIN)/python -m experiments.growth $(ARGS)

study-plain: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Plain vectors (ARGS="--set NAME=X.npy,Q.npy")
	@$(BIN)/python -m experiments.plain $(ARGS)

study-quality: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Quality against time
	@$(BIN)/python -m experiments.quality $(ARGS)

study-filters: $(STAMPS)/package $(STAMPS)/extra-bench ## Filtered search against FAISS with an IDSelector
	@$(BIN)/python -m experiments.filters $(ARGS)

study-scale: $(STAMPS)/package $(STAMPS)/extra-bench ## Build, open and search a database of 5,000,000
	@$(BIN)/python -m experiments.scale $(ARGS)

study-shards: $(STAMPS)/package $(STAMPS)/extra-bench $(STAMPS)/extra-ray ## Shards on Ray against one process
	@$(BIN)/python -m experiments.shards $(ARGS)

study-match: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Matching of two sets: time and peak memory
	@$(BIN)/python -m experiments.match $(ARGS)

study-reconstruction: $(STAMPS)/package $(STAMPS)/extra-reproduce $(STAMPS)/extra-colmap ## COLMAP and hiernorm side by side (ARGS="--photos ROOT/photos")
	@$(BIN)/python -m experiments.reconstruction $(ARGS)

study-photos: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Pairs of real photos, matched (ARGS="--data ROOT")
	@$(BIN)/python -m experiments.photos.pairs $(ARGS)

study-places: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Photos found among others (ARGS="--photos FOLDER")
	@$(BIN)/python -m experiments.photos.places $(ARGS)

study-text: $(STAMPS)/package $(STAMPS)/extra-test ## Text embeddings against FAISS
	@$(BIN)/python -m experiments.text $(ARGS)

study-synthetic: $(STAMPS)/package $(STAMPS)/extra-bench ## How hard the synthetic vectors are
	@$(BIN)/python -m experiments.synthetic $(ARGS)

study-descriptors: $(STAMPS)/package $(STAMPS)/extra-bench ## Real descriptors beside other libraries (ARGS="--features FOLDER")
	@$(BIN)/python -m experiments.descriptors $(ARGS)

study-public: $(STAMPS)/package $(STAMPS)/extra-reproduce ## Public shapes: SIFT, GIST, OpenAI (ARGS="--sets FOLDER")
	@$(BIN)/python -m experiments.public $(ARGS)

study-attention: $(STAMPS)/package $(STAMPS)/extra-test ## Keys of attention, searched by its queries
	@$(BIN)/python -m experiments.attention $(ARGS)

study-roofs: $(STAMPS)/package $(STAMPS)/extra-bench ## What bounds a search, and how far we are
	@$(BIN)/python -m experiments.roofs $(ARGS)

checks: $(STAMPS)/package $(STAMPS)/extra-bench ## Sanitizers, emulation, fuzzers, long tests: figures of all
	@$(BIN)/python -m experiments.checks $(ARGS)

record: $(STAMPS)/package $(STAMPS)/extra-test $(STAMPS)/extra-reproduce ## Every figure of the pages, again (ARGS="--data ROOT"; ARGS=--list)
	@$(BIN)/python -m experiments.record $(ARGS)

tables: $(STAMPS)/package $(STAMPS)/extra-bench ## Render the tables of README and docs from the results
	@$(BIN)/python -m experiments.tables $(ARGS)

sanitize: $(STAMPS)/build-tools ## Run the core's C++ tests under ASan, UBSan and TSan
	@scripts/preflight.sh compiler
	@scripts/sanitize.sh

emulate: $(STAMPS)/build-tools ## Run them with the AVX-512 and NEON kernels emulated
	@scripts/preflight.sh compiler
	@scripts/emulate.sh

lint: $(STAMPS)/extra-lint $(STAMPS)/extra-train ## Check style and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy src experiments

audit: $(STAMPS)/extra-audit ## Look for known vulnerabilities of all packages in constraints.txt
	@$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip

# Of an environment that holds the wheel and what it needs, and nothing else.
sbom: $(STAMPS)/package $(STAMPS)/extra-audit ## List what the wheel needs: .venv/wheel/*.cdx.json (CycloneDX)
	$(call logged,installing the wheel alone,\
	    rm -rf build/sbom && $(PYTHON) -m venv --without-pip build/sbom && \
	    $(PIP) --python build/sbom/bin/python install -c constraints.txt $(VENV)/wheel/*.whl)
	@wheel=$$(echo $(VENV)/wheel/*.whl) && $(BIN)/cyclonedx-py environment build/sbom/bin/python \
	    --pyproject pyproject.toml --mc-type library --output-reproducible -o "$$wheel.cdx.json" && \
	    echo "==> $$wheel.cdx.json"

constraints: $(STAMPS)/extra-audit ## Take the newest versions of all packages into constraints.txt
	$(call logged,resolving all packages,$(BIN)/python scripts/constraints.py)

docs: $(STAMPS)/package $(STAMPS)/extra-docs ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "==> site/index.html"

clean: ## Remove .venv and everything built
	rm -rf $(VENV) build dist site wheelhouse .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests experiments -name __pycache__ -type d -exec rm -rf {} +

# $(call logged,what is being done,commands): one line if it works, the whole log if it does not.
define logged
@echo "==> $(1)"
@mkdir -p build
@{ $(2); } >build/setup.log 2>&1 || { \
    cat build/setup.log >&2; echo "==> $(1): failed, see the log above" >&2; exit 1; }
endef

$(STAMPS)/venv:
	@scripts/preflight.sh python compiler
	$(call logged,creating $(VENV),\
	    $(PYTHON) -m venv $(VENV) && $(PIP) install -c constraints.txt --upgrade pip && mkdir -p $(STAMPS))
	@touch $@

$(STAMPS)/build-tools: | $(STAMPS)/venv
	$(call logged,installing the build tools,\
	    $(PIP) install -c constraints.txt cmake ninja nanobind numpy scikit-build-core)
	@touch $@

# One wheel serves all extras, and building it with the tools of .venv, not with a fresh set each
# time, compiles only what changed.
$(STAMPS)/package: $(SOURCES) | $(STAMPS)/build-tools
	@scripts/preflight.sh compiler headers
	$(call logged,building hiernorm,\
	    rm -rf $(VENV)/wheel && PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) wheel --no-deps \
	    --no-build-isolation --check-build-dependencies --wheel-dir $(VENV)/wheel . && \
	    $(PIP) install --no-deps --force-reinstall $(VENV)/wheel/*.whl)
	@touch $@

# The C++ tests are built where the wheel was, from its objects and with its flags. They are
# deterministic: what has passed passes again until the core or a test changes.
$(STAMPS)/core-tests: $(filter-out src%,$(SOURCES)) tests/cpp $(wildcard tests/cpp/*) \
    | $(STAMPS)/package
	$(call logged,building the C++ tests,$(BIN)/cmake --build $(WHEEL_BUILD) --target core_tests)
	$(call logged,running the C++ tests,$(WHEEL_BUILD)/core_tests)
	@touch $@

# Needs a wheel, for the names of the requirements, but not the newest: no prerequisite.
$(STAMPS)/extra-%: pyproject.toml constraints.txt
	@[ $(STAMPS)/package -nt pyproject.toml ] || \
	    $(MAKE) --no-print-directory $(STAMPS)/package
	$(call logged,installing what $* needs,\
	    wheel=$$(echo $(VENV)/wheel/*.whl) && $(PIP) install -c constraints.txt "$$wheel[$*]")
	@touch $@
