"""Which tests are the core that `make test` runs, and which are left to `make test-full`.

The core is what finds faults first, in less than ten minutes of processor time on a slow machine. Left to the full part are
files that go deep into one subject, single tests that take seconds, and of tests that run for every agent or every id all but a
few. `pytest` without `--part` runs both.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

CORE, FULL = "core", "full"

FULL_FILES = (
    "adversarial/*",
    "agents/test_adapter.py",
    "agents/test_before_loading.py",
    "agents/test_bench.py",
    "agents/test_carried.py",
    "agents/test_check_agent.py",
    "agents/test_command_errors.py",
    "agents/test_contexts.py",
    "agents/test_control.py",
    "agents/test_conversations.py",
    "agents/test_court.py",
    "agents/test_custom_policy.py",
    "agents/test_devices.py",
    "agents/test_dqn.py",
    "agents/test_endpoint.py",
    "agents/test_evaluation_record.py",
    "agents/test_fast_paths.py",
    "agents/test_gguf.py",
    "agents/test_gradient_lab.py",
    "agents/test_group_cache.py",
    "agents/test_health.py",
    "agents/test_inspect_log.py",
    "agents/test_json_files.py",
    "agents/test_lag.py",
    "agents/test_learning_curves.py",
    "agents/test_limits.py",
    "agents/test_loggers.py",
    "agents/test_lora.py",
    "agents/test_play.py",
    "agents/test_plots.py",
    "agents/test_regularisers.py",
    "agents/test_rlhf.py",
    "agents/test_run.py",
    "agents/test_saved_agents.py",
    "agents/test_search.py",
    "agents/test_secrets.py",
    "agents/test_shared_prefix.py",
    "agents/test_show.py",
    "agents/test_tabular.py",
    "agents/test_trust_region.py",
    "agents/test_verifier_errors.py",
    "agents/test_vineppo.py",
    "agents/test_worlds.py",
    "audit/test_audit.py",
    "audit/test_drawn_fields.py",
    "audit/test_planted_bugs.py",
    "audit/test_structured.py",
    "data/test_data_programs.py",
    "distributed/*",
    "games/*",
    "math/test_math_batch.py",
    "math/test_math_renaming.py",
    "math/test_math_robust.py",
    "procedural/test_procedural.py",
    "serving/test_command.py",
    "test_docs_course.py",
    "test_docs_examples.py",
    "test_examples.py",
    "test_plugin.py",
    "tools/*",
    "sandbox/*",
    "unit_tests/*",
    "verifiers/test_timeout.py",
    "vllm/*",
    "worlds/*",
)
CORE_FILES = (
    "unit_tests/test_common_forms.py",
    "unit_tests/test_foreign_code.py",
    "unit_tests/test_verifier.py",
    "worlds/test_world.py",
)
"""Exceptions from the patterns above."""
FULL_TESTS = (
    "test_a_prelude_is_the_programs_alone",
    "test_a_reference_that_nothing_can_be_judged_by_is_an_error",
    "test_an_answer_in_a_box_is_judged_like_the_bare_answer",
    "test_cases_that_fail_have_a_limit_together",
    "test_each_failure_of_a_script_has_its_class",
    "test_every_id_is_deterministic_under_a_seed_across_processes",
    "test_extraction_takes_linear_time",
    "test_reading_takes_linear_time",
    "test_it_serves_until_it_is_stopped_and_changes_nothing",
    "test_memory_that_small_objects_fill_is_memory",
    "test_the_fingerprint_is_the_same_in_every_process",
    "test_the_wheel_holds_the_three_packages_and_runs_elsewhere",
    "test_what_a_verdict_says_can_be_written_anywhere",
    "test_what_never_ends_or_fills_memory_does_no_harm",
)
EACH_AGENT = ("agents/test_agents.py", "agents/test_cli.py")
"""Files whose tests run for every agent, by a parameter `name` or `case`."""
CORE_AGENTS = ("reinforce", "ppo", "grpo", "grpo/kl")
CORE_IDS = ("Addition", "Bandit", "Countdown", "FrozenLake", "GSM8K", "GuessNumber", "HumanEval", "MATH500")
"""The ids for which the core runs tests of every id."""

_TESTS = Path(__file__).parent


def is_full(path: Path) -> bool:
    """Whether all tests of a file are left to the full part."""
    name = path.relative_to(_TESTS).as_posix() if path.is_relative_to(_TESTS) else ""
    return name not in CORE_FILES and any(fnmatch(name, pattern) for pattern in FULL_FILES)


def part_of(item: pytest.Item) -> str:
    """The part that a test belongs to."""
    full = is_full(item.path) or getattr(item, "originalname", item.name) in FULL_TESTS or _is_one_of_many(item)
    return FULL if full else CORE


def _is_one_of_many(item: pytest.Item) -> bool:
    """Whether a test runs for every agent or every id, and this one is not in the core."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "every_id" in parameters:
        return re.sub(r"rlvr/|-v\d+", "", parameters["every_id"]) not in CORE_IDS
    agent = parameters.get("name", parameters.get("case"))
    each = item.path.relative_to(_TESTS).as_posix() in EACH_AGENT
    return each and isinstance(agent, str) and agent not in CORE_AGENTS
