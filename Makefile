SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.SILENT:
.DEFAULT_GOAL := help

VENV := .venv
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest
PARTS := agent sandbox tests bench scripts
ENGINE ?= $(firstword $(foreach name,docker podman buildah,$(if $(shell command -v $(name)),$(name))))
IMAGE ?= spark-ui-agent:$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
FAST_ONLY := "not real and not spark and not e2e"
SEEDS ?= 10
LIVES ?= 7

.PHONY: help
help: ## this list
	echo "spark-ui-agent: targets (the first run sets up $(VENV); PYTHON=python3.13 chooses the interpreter)"
	sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name does; do printf '  %-13s %s\n' "$$name" "$$does"; done

.PHONY: setup
setup: ## .venv from requirements/dev.txt; does nothing while the lock is unchanged
	scripts/setup.sh $(VENV) requirements/dev.txt $(PYTHON)

.PHONY: demo
demo: setup ## a real Spark driver, its UI found and published, parked at its end; CLUSTER=real: on a real control plane
	$(RUN) -m sandbox.demo $(if $(CLUSTER),--cluster $(CLUSTER))

.PHONY: test
test: setup ## everything, real parts included
	$(PYTEST) --cov --cov-report=term

.PHONY: test-fast
test-fast: setup ## without the real control plane and without Spark
	$(PYTEST) -q -m $(FAST_ONLY)

.PHONY: e2e
e2e: setup ## of it, real Pods on a real node alone (root; images are made by the first run)
	$(PYTEST) tests/e2e

.PHONY: test-pythons
test-pythons: setup ## unit and stand-in tests with each other Python from 3.11 to 3.14 that is found
	scripts/pythons.sh $(VENV)

.PHONY: soak
soak: setup ## the same tests SEEDS=10 times over, random seeds and more examples, to the first failure, then margins and pairs; FAST=1: as test-fast
	for ((n = 1; n <= $(SEEDS); n++)); do \
	  seed=$$RANDOM; echo "soak: $$n of $(SEEDS), again with --hypothesis-profile=soak --hypothesis-seed=$$seed" >&2; \
	  $(PYTEST) -q $(if $(FAST),-m $(FAST_ONLY)) --hypothesis-profile=soak --hypothesis-seed=$$seed; \
	done
	$(if $(FAST),,$(MAKE) margins pairs)

.PHONY: margins
margins: setup ## how long before its closing a UI was parked, at LIVES=20 ends of each kind; fails when it was not
	$(RUN) -m bench.margins --lives $(if $(filter file,$(origin LIVES)),20,$(LIVES))

.PHONY: pairs
pairs: setup ## LIVES=20 times two drivers under hostNetwork on one real node: a client never gets the other's page
	$(PYTEST) tests/e2e/test_host_network.py --pairs $(if $(filter file,$(origin LIVES)),20,$(LIVES))

.PHONY: lint
lint: setup ## ruff, mypy --strict, the import rule, the settings table of the docs
	echo "lint: ruff" >&2; $(RUN) -m ruff check --quiet $(PARTS) && $(RUN) -m ruff format --quiet --check $(PARTS)
	echo "lint: mypy" >&2; $(RUN) -m mypy --no-error-summary
	echo "lint: imports" >&2; out=$$($(VENV)/bin/lint-imports --no-cache 2>&1) || { echo "$$out"; exit 1; }
	echo "lint: docs/settings.md" >&2; $(RUN) -m scripts.settings_doc --check

.PHONY: footprint
footprint: setup ## memory and CPU of the running agent, without test packages; medians of LIVES=7
	$(RUN) -m scripts.footprint --lives $(LIVES)

.PHONY: image
image: ## the container image; BASE=... for another base image
	$(if $(ENGINE),,echo "image: found no docker, podman or buildah on PATH; install one, or name it: make image ENGINE=..." >&2; exit 1;) \
	$(ENGINE) build $(if $(BASE),--build-arg BASE=$(BASE)) --tag $(IMAGE) .

.PHONY: lock
lock: setup ## requirements/*.txt anew from pyproject.toml; UPGRADE=1 takes newer versions
	scripts/lock.sh $(VENV)/bin/uv $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## what was made here; the caches of the sandbox in ~/.cache/spark-ui-agent stay
	rm -rf $(VENV) build dist .coverage .coverage.* .hypothesis .*_cache *.egg-info
	find $(PARTS) -name __pycache__ -type d -prune -exec rm -rf {} +
