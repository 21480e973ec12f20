PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow lint clean

help: ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make the virtual environment and install semistream into it

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "semistream needs Python 3.11 or later: set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: install ## Compare three algorithms of the family on a generated stream
	$(BIN)/semistream bench --algorithm meshjoin,hybridjoin,cachejoin --clock model --accounting papers \
		--master-rows 2000000 --memory 50MB --zipf 1 --tuples 10000000

test: lint ## Everything that guards a change: ruff, mypy, the import rule, pytest
	$(BIN)/python -m pytest -n 2

test-slow: install ## The long tests too
	$(BIN)/python -m pytest -n 2 -m "slow or soak"

lint: install ## ruff, mypy (strict) and the import rule
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
