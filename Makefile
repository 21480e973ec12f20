PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYSPARK ?= 4.0.1
SPARK_VENV = .venv-spark-$(PYSPARK)
SPARK_STAMP = $(SPARK_VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install servers demo demo-cluster demo-retail test soak test-slow test-spark test-cluster lint clean

help: ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make the virtual environment and install semistream into it

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "semistream needs Python 3.11 or later: set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,tpch,flights]'
	@touch $(STAMP)

servers: install ## Install the servers that tests start on loopback, as far as they are missing: ONLY=postgresql,s3
	$(BIN)/python scripts/install_servers.py $(ONLY)

demo: install ## Enrich generated sales from a table far larger than memory and prove the result; needs Java 17
	$(BIN)/semistream demo

demo-cluster: install ## Enrich a stream on a cluster whose nodes share no folder, from a table in S3; needs make servers
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/kernels $(BIN)/semistream warmup
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/kernels $(BIN)/python scripts/standalone_cluster.py --apart -- \
		$(CURDIR)/$(BIN)/python $(CURDIR)/examples/cluster/enrich_from_s3.py

demo-retail: install ## Orders from Kafka, customers from PostgreSQL, products in S3, into Delta, with a kill and a proof: FOR=120 RATE=1000
	$(BIN)/python examples/retail/run.py $(if $(FOR),--seconds $(FOR)) $(if $(RATE),--rate $(RATE))

test: lint ## Everything that guards a change: ruff, mypy, the import rule, pytest
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: install ## The long tests too
	$(BIN)/python -m pytest -n 2 --dist loadfile --timeout 0 -m "slow or soak"

soak: install ## The reliability campaign, for hours; goes on where it was stopped: SEED=1 ONLY=corruption
	$(BIN)/python tests/reliability/soak.py $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

test-spark: $(SPARK_STAMP) ## The Spark tests with another PySpark, in an environment of its own: PYSPARK=4.0.1
	$(SPARK_VENV)/bin/python -m pytest -n 2 --dist loadfile tests/spark tests/pipeline tests/demo

$(SPARK_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SPARK_VENV)
	@# PySpark names the one Py4J that it goes with.
	{ grep -v -i -E '^(pyspark|py4j)==' constraints.txt; echo 'pyspark==$(PYSPARK)'; } > $(SPARK_VENV)/constraints.txt
	$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c $(SPARK_VENV)/constraints.txt -e '.[dev,tpch,flights]'
	@touch $(SPARK_STAMP)

test-cluster: install ## The tests with a standalone cluster on loopback and with spark-submit
	$(BIN)/python -m pytest -m slow tests/integration/test_cluster.py

lint: install ## ruff, mypy (strict) and the import rule
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check src tests benchmarks examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .venv-spark-* .servers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
