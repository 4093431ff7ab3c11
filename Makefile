# Two commands do everything on a machine with Python 3.11, Java 17, Maven and make:
#   make demo    a real Pulsar and the sidecar, for any Kafka client, until Ctrl-C
#   make test    all tests, those against the real Pulsar included

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-fast lint fmt bench proto lock docs clean
.DEFAULT_GOAL := help

help:
	@grep -E '^#   make' Makefile | sed 's/^# *//'
	@echo 'also: test-fast lint fmt bench proto lock docs clean'

$(READY): requirements.lock
	@echo 'Setting up $(VENV) ...'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

demo: $(READY)
	@exec $(BIN)/python -m integration.demo

test: $(READY)
	@$(BIN)/python -m integration.prepare
	@$(BIN)/python -m pytest

test-fast: $(READY)
	@$(BIN)/python -m pytest tests

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

fmt: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)
	@$(BIN)/python -m bench

proto: $(READY)
	@$(BIN)/python -m grpc_tools.protoc -I grpc --python_out=. --pyi_out=. grpc/handler/pulsar/pulsar_api.proto grpc/handler/control/v1/control.proto

docs: $(READY)
	@$(BIN)/python -m handler.docs

# Needs uv; names and hashes only, so that any index serves.
lock:
	uv pip compile pyproject.toml --group lint --group proto --group test --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header -o requirements.lock

clean:
	rm -rf $(VENV) .cache dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
