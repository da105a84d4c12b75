# Two commands. Each sets everything up by itself (.venv, install) and is cheap to run again.
#
#   make demo    learn to translate, export, and answer from the export: a few minutes
#   make test    everything that must hold before a change lands
#
#   make resume-test    kills a training at 20 random moments; it must end as the unbroken one: minutes
#
# The parts of `make test`, in its order: make lint, rooms, types, wheel, unit.
# Also: make format (what lint would ask for), make coverage, make clean (build leftovers and caches).
# A Python of your choice: make test PYTHON=/path/to/python3.12

PYTHON  ?=
VENV    := .venv
PY      := $(VENV)/bin/python
# Names of which the first that runs and is suitable is taken, so the newest.
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3.10 python3
SUITABLE := import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))
heading = printf '\n== %s\n' "$(1)"

.PHONY: help demo test lint rooms types wheel unit resume-test format coverage clean
# Cheap checks first: `make -j` must not reorder them.
.NOTPARALLEL:

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.installed-evaluate
	@$(VENV)/bin/tf-transformer demo --run runs/demo

test: lint rooms types wheel unit

lint: $(VENV)/.installed-test
	@$(call heading,Lint (ruff))
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet . || { $(PY) -m ruff format --diff .; exit 1; }

rooms: $(VENV)/.installed-test
	@$(call heading,Rooms: who may import whom (import-linter))
	@$(VENV)/bin/lint-imports --no-logo

types: $(VENV)/.installed-test
	@$(call heading,Types (mypy))
	@$(PY) -m mypy

wheel: $(VENV)/.installed-test
	@$(call heading,Wheel: built and installed and run outside the checkout)
	@$(PY) tests/wheel_check.py

unit: $(VENV)/.installed-test
	@$(call heading,Tests and doctests and README blocks (pytest))
	@$(PY) -m pytest -q -n 2 --durations 10

resume-test: $(VENV)/.installed-test
	@$(call heading,Exact resume: killed at random moments)
	@$(PY) -m tests.kill_and_resume

format: $(VENV)/.installed-test
	@$(PY) -m ruff check --fix --quiet .
	@$(PY) -m ruff format --quiet .

coverage: $(VENV)/.installed-test
	@$(PY) -m pytest -q -n 2 --cov --cov-report term

clean:
	@rm -rf build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	@find tf_transformer training export tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras: `evaluate` for the demo, `test` for the tests.
$(VENV)/.installed-%: setup.cfg pyproject.toml
	@$(call heading,Setting up $(VENV) (the first time TensorFlow is downloaded: minutes))
	@if ! { $(PY) -c '$(SUITABLE)' && $(PY) -m pip --version; } >/dev/null 2>&1; then \
	    found=; \
	    for name in $(PYTHONS); do \
	        if "$$name" -c '$(SUITABLE)' >/dev/null 2>&1; then found=$$name; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "Python 3.10, 3.11, 3.12 or 3.13 with its venv module is needed; none of" >&2; \
	        echo "  $(PYTHONS)" >&2; \
	        echo "is one. (On Debian and Ubuntu: apt install python3-venv.)" >&2; \
	        exit 1; \
	    fi; \
	    "$$found" --version && "$$found" -m venv --clear $(VENV); \
	fi
	@$(PY) -m pip install -qq --disable-pip-version-check --editable '.[$*]'
	@touch $@
