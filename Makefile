# The commands of the project. `make` alone lists them.
PYTHON ?= python3
VENV   := .venv/bin
SEED     ?=
SESSIONS ?=
KEEP     ?=

.DEFAULT_GOAL := help
.PHONY: help setup up demo test laws test-monitoring test-kafka test-browser test-examples bench check fix lock

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv with exactly the locked packages (says what is missing)
	@$(PYTHON) tools/setup.py

up: setup ## everything on this machine, until Ctrl-C
	@$(VENV)/trueup up

demo: setup ## a simulated week held against its known truth (SEED=, SESSIONS=, WORLD=hard, KEEP=1)
	@$(VENV)/trueup demo --exit $(if $(SEED),--seed $(SEED)) $(if $(SESSIONS),--sessions $(SESSIONS)) $(if $(WORLD),--world $(WORLD)) $(if $(KEEP),--keep)

test: setup ## every test that needs nothing but Python
	@$(VENV)/python -m tools.test

laws: setup ## the laws with 2,000 examples each, and every mutant (`make test`: 500, every second one)
	@TRUEUP_TESTS=thorough PYTHONHASHSEED=0 $(VENV)/python -m pytest tests/property tests/mutants -q

test-monitoring: setup ## alert rules, dashboards, runbooks, metric names (needs promtool)
	@$(VENV)/python tools/monitoring.py

test-kafka: setup ## the demo world on real Kafka brokers (needs Java and Maven)
	@$(VENV)/python deploy/kafka/kafka.py check
	@$(VENV)/python -m pytest tests/services/kafka -q

test-browser: setup ## the page at / in a real browser (names chromium where it is missing)
	@$(VENV)/python -m pytest tests/services/browser -q

test-examples: setup ## the agents, the webhook and the Collector of examples/ end to end (Go builds the Collector)
	@$(VENV)/python -m tools.examples test

bench: setup ## records per CPU second, with the machine they were measured on
	@$(VENV)/python -m tests.bench

check: setup ## format, lint, types, layers, generated files, hygiene
	@$(VENV)/python -m tools.check

fix: setup ## repair format and lint, rewrite generated files
	@$(VENV)/ruff check --fix --quiet .
	@$(VENV)/ruff format --quiet .
	@$(VENV)/python -m tools.generated

lock: setup ## resolve requirements.lock and examples/requirements.lock anew
	@$(VENV)/python -m tools.lock
