# Two commands do everything on a machine that has Python 3.11+ and make:
#   make demo    set up .venv, then watch GRPO teach a tiny transformer to add
#   make test    set up .venv, then lint, strict types and tests
PYTHON ?= python3
BIN := .venv/bin
OLDER := .cache/transformers-for-vllm

.PHONY: demo test setup lint types tests tests-older bench clean

demo: setup
	$(BIN)/rlvr demo

test: lint types tests tests-older

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,lora,hub,report,dev]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

tests: setup
	$(BIN)/pytest -n 2 --dist loadfile

# The agents again, on the transformers that vLLM needs.
tests-older: setup $(OLDER)/.installed
	PYTHONPATH=$(OLDER) $(BIN)/pytest tests/agents --override-ini 'addopts=' -n 2 --dist loadfile

$(OLDER)/.installed: constraints-vllm.txt
	rm -rf $(OLDER)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -c constraints-vllm.txt --target $(OLDER) transformers
	touch $@

bench: setup
	$(BIN)/python benchmarks/env_steps.py

clean:
	rm -rf .venv .cache runs
