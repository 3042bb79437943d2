# Everything a person needs: make demo, make test, make check; make soak takes many minutes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test soak check clean system

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (only the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]" --group dev
	@touch $(STAMP)

.venv: $(STAMP)

demo: .venv
	@$(BIN)/aboyeur demo $(ARGS)

system:
	@sh tests/install-system.sh

test: .venv system
	@$(BIN)/python -m pytest $(ARGS)

soak: .venv system
	@$(BIN)/python -m pytest -m soak $(ARGS)

check: .venv
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
