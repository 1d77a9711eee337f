# The project's commands; each sets up what it needs. Needs only make and Python 3.10 or newer.
#   make run     train on MNIST: soft-max regression, then a convolutional network
#   make test    lint, type check, tests
#   make check   the tests with every rewrite and all generated code proved; for every night
#   make plain   the tests without machine code, as on a torch without oneDNN and MKL
#   make bench   the benchmarks, with whichever peers are installed

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed

# Test processes share the cores: one thread each is faster than several that fight.
TEST_THREADS ?= 1

# Hundreds of test processes import the sources: they are compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup run test check plain lint format types bench clean

help:
	@sed -n '2,6s/^#  *//p' Makefile

setup: $(READY)

# torch comes first and exactly, so that no dependant of it pulls another build in.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $$(grep '^torch==' constraints.txt)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

run: $(READY)
	$(BIN)/python examples/mnist.py

test: lint types
	OMP_NUM_THREADS=$(TEST_THREADS) $(BIN)/python -m pytest -n $(JOBS) -q

check: $(READY)
	FLOWSTONE_CHECK=1 OMP_NUM_THREADS=$(TEST_THREADS) $(BIN)/python -m pytest -n $(JOBS) -q

plain: $(READY)
	FLOWSTONE_NATIVE=0 OMP_NUM_THREADS=$(TEST_THREADS) $(BIN)/python -m pytest -n $(JOBS) -q --plain-torch

lint: $(READY)
	$(BIN)/ruff check .

format: $(READY)
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/compare.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis mnist.png
