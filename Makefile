# Every target sets up what it needs by itself, in .venv; a second run has nothing to set up.
#
#   make demo PYTHON=/path/to/python3.12    choose the interpreter (only when .venv is created)
#   make test ARGS="-k language -x"         hand more arguments to pytest

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check bench clean find-python

VENV := .venv
BIN := $(VENV)/bin
BENCH := .bench
ARGS ?=

# An environment knows its checkout by an absolute path. In a copied or moved checkout it would
# run the code of the old place, so the path is part of the stamp.
PLACE := $(shell pwd | cksum | cut -d ' ' -f 1)
CREATED := $(VENV)/.created-$(PLACE)
INSTALLED := $(VENV)/.installed-$(PLACE)

# Prints the newest Python >= 3.11 that can make an environment (Debian parts `venv` from Python).
define FIND_PYTHON
for name in $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3); do \
    if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
        >/dev/null 2>&1; then command -v "$$name"; exit 0; fi; \
done; \
echo "omnifair needs Python 3.11 or newer with its venv module, and none was found." >&2; \
echo "On Debian and Ubuntu: apt-get install python3-venv. Or: make ... PYTHON=/path/to/python" >&2; \
exit 1
endef

help:
	@echo "make demo     a plain and a fair model on real data, as a table"
	@echo "make test     the tests (ARGS=... for more arguments to pytest)"
	@echo "make bench    the quick benchmarks against the peers: .bench/benchmarks.md"
	@echo "make check    style, types, and which module may import which"
	@echo "make clean    remove the environment, caches and builds"

demo: $(INSTALLED)-demo
	@$(BIN)/python examples/demo.py

# The benchmark data beside the checkout is used where it is, unless OMNIFAIR_DATA says otherwise.
ifneq ($(wildcard ../shared/data/.),)
test: export OMNIFAIR_DATA ?= $(CURDIR)/../shared/data
endif
test: $(INSTALLED)-test
	@$(BIN)/python -m pytest -q -rs $(ARGS)

check: $(INSTALLED)-check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Peers with packages of their own get environments under .venv-peers. Results and tables go to
# .bench, not over those of the repository; a second run goes on where the first one ended.
# `python -m benchmarks run --full` is all.
ifneq ($(wildcard ../shared/data/.),)
bench: export OMNIFAIR_DATA ?= $(CURDIR)/../shared/data
endif
bench: $(INSTALLED)-bench
	@$(BIN)/python -m benchmarks peers
	@$(BIN)/python -m benchmarks run --jobs 2 --minutes 10 --results $(BENCH)/results $(ARGS)
	@$(BIN)/python -m benchmarks report --results $(BENCH)/results --docs $(BENCH)

clean:
	rm -rf $(VENV) .venv-peers $(BENCH) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	rm -rf .hypothesis .coverage catboost_info
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

find-python:
	@$(FIND_PYTHON)

$(CREATED):
	@python=$$($(FIND_PYTHON)); \
	echo "Creating $(VENV) with $$("$$python" --version) ($$python)"; \
	"$$python" -m venv --clear $(VENV)
	@touch $@

# One stamp for each set of extras: the demo does not wait for the packages of the tests.
# -qq leaves pip's errors to be seen and nothing else.
$(INSTALLED)-%: pyproject.toml $(CREATED)
	@echo "Installing omnifair[$*] into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --editable '.[$*]'
	@touch $@
