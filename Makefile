# make setup | demo | test | clean

EXTRAS := dev,federation,psi,serve
STAMP := .venv/.installed
DEMO := runs/demo

# The first interpreter that really runs (a pyenv shim may not), is new enough and can make environments.
PYTHON ?= $(shell for python in python3.12 python3.11 python3; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; \
	done)

.DELETE_ON_ERROR:
.PHONY: setup demo test clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "make setup: no Python 3.11 or newer with venv was found;" \
		"install one, or name it: make setup PYTHON=/path/to/python3" >&2; exit 2; }
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv; this takes a minute or two."
	.venv/bin/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[$(EXTRAS)]'
	touch $(STAMP)

demo: setup
	rm -rf $(DEMO)
	.venv/bin/dvfl train --out $(DEMO)

test: setup
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/lint-imports
	.venv/bin/mypy
	.venv/bin/pytest --numprocesses 2 --dist loadfile

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis $(DEMO)
