# Everything a person does here is one word. `make setup` is implied by every other word.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.meander-setup

.PHONY: setup demo test test-slow test-spark coverage bench lint clean

setup: $(STAMP)

# One fast installer (uv, itself from the package index) keeps a fresh set-up under a minute. Bytecode is compiled here:
# where PYTHONDONTWRITEBYTECODE is set, every process would compile Numba and its like again.
$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "meander needs Python 3.11 or newer: $(PYTHON) was not found" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "meander needs Python 3.11 or newer; set PYTHON=python3.11 (or newer)" >&2; exit 1; }
	@echo "setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.4,<1'
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[dev]'
	@touch $@

demo: setup
	$(BIN)/meander demo

test: setup
	$(BIN)/ruff check -q src tests
	$(BIN)/ruff format -q --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

# The same tests, and which lines they run; kernels are compiled, and so not counted.
coverage: setup
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not slow" --cov --cov-report=term

test-slow: setup
	$(BIN)/python -m pytest -q -m slow

# What differs between versions of Spark, with the newest release of one of them, in an environment of its own:
# `make test-spark SPARK=4.1`.
SPARK ?= 4.3
SPARK_TESTS := run inputs many_cells recovery_processes repartitioning connect pipelines tables

test-spark: .venv-spark-$(SPARK)/.meander-setup
	.venv-spark-$(SPARK)/bin/python -m pytest -q -m "spark and (tables or matrix or not slow)" $(SPARK_TESTS:%=tests/spark/test_spark_%.py)

.venv-spark-%/.meander-setup: pyproject.toml | setup
	@echo "setting up .venv-spark-$*"
	@$(PYTHON) -m venv .venv-spark-$*
	@$(BIN)/uv pip install --quiet --compile-bytecode --python .venv-spark-$*/bin/python -e '.[dev]' 'pyspark~=$*.0'
	@touch $@

# Every experiment of docs/benchmarks.md, and that page. What is stored already is not measured again, so an interrupted run
# is continued by the same word; `make bench OPTIONS=--quick` takes some minutes. Pathway brings some hundred packages, so it lives beside the
# project's own environment; where it cannot be installed, the others are measured without it.
bench: setup
	-@$(MAKE) --no-print-directory .venv-bench/.meander-setup
	$(BIN)/meander bench --results docs/benchmarks/results.json --page docs/benchmarks.md $(OPTIONS)

.venv-bench/.meander-setup: pyproject.toml
	@echo "setting up .venv-bench for Pathway"
	@$(PYTHON) -m venv .venv-bench
	@$(BIN)/uv pip install --quiet --python .venv-bench/bin/python 'pathway>=0.30,<0.34'
	@touch $@

lint: setup
	$(BIN)/ruff check --fix src tests
	$(BIN)/ruff format src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv .venv-bench .venv-spark-* build dist .pytest_cache .mypy_cache .ruff_cache .coverage
	find src tests -name __pycache__ -prune -exec rm -rf {} +
