# On a machine with Python 3.11, Java 17, Maven and make:
#   make demo    a real Pulsar and the sidecar, for any Kafka client, until Ctrl-C
#   make run     the sidecar alone, in front of PULSAR_URL and PULSAR_ADMIN_URL
#   make check   style, types, layers and the fast tests, without simulations: before every commit
#   make smoke   those tests against a real Pulsar that catch most
#   make test    all tests
#   make image   the sidecar's image, tried against a Pulsar in a container
#   make test-kubernetes   the charts on a Kubernetes of one node, which is built first (as root, with Go: 13 minutes once)
#   make soak    what takes long: a fleet of five under all faults five times, pipelines with twenty times as much to move, every Pulsar version, an upgrade
#   make simulate   partitions of several sidecars over a modelled Pulsar, a minute of seeds; SEED=N: that one, with its log
#   make simulate-coordinators   elections, terms and followed topics of several sidecars, likewise
#   make simulate-fleets   whole sidecars and their clients, likewise
#   make coverage   what the fast tests leave out, the least covered first
#   make tidy    counts what is untidy; tests/tidy.json has the numbers, which may only fall

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.set-up

.PHONY: simulate simulate-coordinators simulate-fleets image test-kubernetes golden demo run check smoke test soak test-fast coverage tidy lint fmt bench bench-quick simulate-mutants proto messages lock docs clean
.DEFAULT_GOAL := help

help:
	@grep -E '^#   make' Makefile | sed 's/^# *//'
	@echo 'also: test-fast lint fmt bench bench-quick simulate-mutants proto messages lock docs golden clean'

$(READY): requirements.lock
	@echo 'Setting up $(VENV) ...'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo ../../../../handler > $$(echo $(VENV)/lib/python3*/site-packages)/kafka-sidecar.pth
	@touch $@

demo: $(READY)
	@exec $(BIN)/python -m integration.demo

run: $(READY)
	@KAFKA_SIDECAR_PULSAR__URL=$${PULSAR_URL:?name a cluster, as in PULSAR_URL=pulsar://broker:6650} \
	 KAFKA_SIDECAR_PULSAR__ADMIN_URL=$${PULSAR_ADMIN_URL:?name its admin address, as in PULSAR_ADMIN_URL=http://broker:8080} \
	 $(BIN)/python -m kafka_sidecar serve

check: lint test-fast

SMOKE := integration/test_clients.py::test_librdkafka_reads_what_it_wrote_in_every_codec \
         integration/test_java_clients.py integration/test_native.py integration/test_topics.py \
         integration/test_groups.py::test_partitions_go_to_members_as_they_come_and_go \
         'integration/test_faults.py::test_the_topic_is_unloaded[plain]'

smoke: $(READY)
	@$(BIN)/python -m integration.prepare servers
	@$(BIN)/python -m pytest -q $(SMOKE)

# What the tests against real servers need is got and made beside the fast tests.
test: $(READY)
	@mkdir -p .cache; $(BIN)/python -m integration.prepare >.cache/prepare.log 2>&1 & preparing=$$!; \
	 trap 'kill $$preparing 2>/dev/null' INT TERM EXIT; \
	 $(BIN)/python -m pytest -q --numprocesses 2 tests || exit; \
	 wait $$preparing || { tail -20 .cache/prepare.log >&2; exit 1; }
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20 -m 'not soak and not kubernetes' integration

image: $(READY)
	@$(BIN)/python -m integration.docker.images

test-kubernetes: $(READY)
	@integration/docker/engine.sh install
	@integration/docker/engine.sh start
	@integration/kubernetes/build.sh .cache/kubernetes
	@$(BIN)/python -m pytest -q --durations 20 -m kubernetes integration/kubernetes

PIPELINES := $(wildcard integration/test_*_pipeline.py)
soak: $(READY)
	@$(BIN)/python -m integration.prepare
	@SEARCH_EXAMPLES=1 EXAMPLES_SCALE=10 $(BIN)/python -m pytest -q --numprocesses 2 $(shell grep -rl --include="*.py" "import.*given" tests)
	@CI=1 $(BIN)/python -m pytest -q -o faulthandler_timeout=5000 --durations 20 -m soak $(filter-out $(PIPELINES),$(wildcard integration/test_*.py))
	@CI=1 FLEET_FAULT_ROUNDS=5 PIPELINE_SCALE=20 TEST_SECONDS=3600 $(BIN)/python -m pytest -q -o faulthandler_timeout=5000 --durations 20 \
	  integration/test_fleet_faults.py $(PIPELINES)

test-fast: $(READY)
	@$(BIN)/python -m pytest -q --numprocesses 2 -m 'not simulation' tests

coverage: $(READY)
	@$(BIN)/coverage run -m pytest -q tests
	@$(BIN)/coverage report

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

SECONDS_OF_SIMULATION := 60
simulate: $(READY)
	@$(BIN)/python -m tests.simulation.run $(or $(SEED),1) $(if $(SEED),1 --log,1000000) --seconds $(SECONDS_OF_SIMULATION)

simulate-coordinators: $(READY)
	@$(BIN)/python -m tests.simulation.coordinators.run $(or $(SEED),1) $(if $(SEED),1 --log,1000000) --seconds $(SECONDS_OF_SIMULATION)

simulate-fleets: $(READY)
	@$(BIN)/python -m tests.simulation.fleets.run $(or $(SEED),1) $(if $(SEED),1 --log,1000000) --seconds $(SECONDS_OF_SIMULATION)

simulate-mutants: $(READY)
	@$(BIN)/python -m tests.simulation.mutants
	@$(BIN)/python -m tests.simulation.coordinators.mutants
	@$(BIN)/python -m tests.simulation.fleets.mutants

bench-quick: $(READY)
	@$(BIN)/python -m bench.quick

proto: $(READY)
	@$(BIN)/python -m grpc_tools.protoc -I grpc --python_out=handler --pyi_out=handler grpc/kafka_sidecar/pulsar/pulsar_api.proto grpc/kafka_sidecar/control/v1/control.proto grpc/kafka_sidecar/control/v1/admin.proto grpc/kafka_sidecar/partition/snapshot.proto

messages: $(READY)
	@$(BIN)/python -m tools.messages

golden: $(READY)
	@$(BIN)/python -m tests.chart.golden

tidy: $(READY)
	@$(BIN)/python -m tools.tidy

docs: $(READY)
	@$(BIN)/python -m tools.docs

# Needs uv; names and hashes only, so that any index serves.
LOCK := uv pip compile pyproject.toml --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet
lock:
	$(LOCK) --group lint --group proto --group messages --group test --group wheel -o requirements.lock
	$(LOCK) --universal -o deploy/image/requirements.lock
	$(LOCK) --universal --group wheel -o deploy/image/build.lock

clean:
	rm -rf $(VENV) .cache dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
