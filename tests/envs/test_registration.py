from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rlvr_envs
from rlvr_envs import TaskEnv, TokenEnv, TokenVectorEnv, environment_class, environment_id
from rlvr_envs.tasks import BENCHMARKS, benchmarks
from rlvr_envs.tasks.benchmarks import rows
from rlvr_envs.testing import check_token_env
from tests.conftest import USABLE

SECTIONS = [
    "Description",
    "Action Space",
    "Observation Space",
    "Starting State",
    "Reward",
    "Episode End",
    "Information",
    "Arguments",
    "Version History",
]


def test_gymnasiums_own_checker_passes_without_a_warning(every_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(every_id)
        check_env(env.unwrapped)


def sections(documentation: str | None) -> list[str]:
    lines = inspect.cleandoc(documentation or "").splitlines()
    return [line.removeprefix("## ") for line in lines if line.startswith("## ")]


def test_every_id_documents_itself_in_gymnasiums_sections_and_refers_to_those_in_common(every_id: str) -> None:
    documentation = environment_class(every_id).__doc__ or ""
    own, common = sections(documentation), sections(TaskEnv.__doc__)
    assert own == [name for name in SECTIONS if name in own]
    assert {"Description", "Starting State", "Reward", "Arguments"} <= set(own)
    assert set(own) | set(common) == set(SECTIONS)
    assert "are those of `rlvr_envs.TaskEnv`" in documentation.splitlines()[2]


def test_the_sizes_that_are_stated_are_those_of_the_data(every_id: str) -> None:
    task = environment_class(every_id).task
    if task.source == "generated":
        assert task.sizes == {split: len(task.load(split=split)) for split in ("train", "test")}


def test_the_spec_survives_json(every_id: str) -> None:
    spec = gymnasium.spec(every_id)
    again = gymnasium.envs.registration.EnvSpec.from_json(spec.to_json())
    assert isinstance(gymnasium.make(again), TokenEnv)
    assert isinstance(gymnasium.make_vec(again, num_envs=2), TokenVectorEnv)


def test_an_id_passes_the_checks_of_environments_of_ones_own(every_id: str) -> None:
    """By a verifier that is cheap: some of their own run programs, or refuse to."""
    check_token_env(every_id, episodes=2, max_new_tokens=8, verifier=lambda completion, problem: len(completion))


_DIGEST = """
import gymnasium, hashlib, json, sys, warnings
import numpy as np, rlvr_envs
digests = {}
for name in sys.argv[1:]:
    env = gymnasium.make_vec(name, num_envs=2, max_new_tokens=6)
    digest = hashlib.sha256()
    observation, info = env.reset(seed=5)
    env.action_space.seed(9)
    for _ in range(6):
        digest.update(observation["tokens"].tobytes() + repr(list(info.get("problem_id", ""))).encode())
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        digest.update(reward.tobytes() + terminated.tobytes() + truncated.tobytes())
        for verdict in filter(None, info.get("verdict", ())):  # its cost is timed and may differ
            digest.update(repr((verdict.score, verdict.outcome, verdict.answer, verdict.detail)).encode())
    digests[name] = digest.hexdigest()
print(json.dumps(digests))
"""


def test_every_id_is_deterministic_under_a_seed_across_processes(local_data: Path) -> None:
    outputs = [_run_digest(hash_seed) for hash_seed in ("0", "1")]
    assert outputs[0] == outputs[1]
    assert set(outputs[0]) == set(USABLE)


def _run_digest(hash_seed: str) -> dict[str, str]:
    import os

    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST, *USABLE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    digests: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return digests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"splt": "test"}, r"the environment got an unexpected keyword argument 'splt'\. Did you mean 'split'\?"),
        ({"split": "tset"}, r"unknown split 'tset'\. Did you mean 'test'\?"),
        ({"verifier": "numerc"}, r"unknown verifier 'numerc'\. Did you mean 'numeric'\?"),
        ({"prompt": "boxed_cht"}, r"unknown prompt 'boxed_cht'\. Did you mean 'boxed_chat'\?"),
        ({"prompt": "no placeholder"}, r"\{problem\}"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, got 0"),
        ({"verification": "later"}, "unknown verification 'later'. Known: deferred, sync"),
        ({"stop": [999]}, r"stop token 999 is outside the vocabulary \[0, 257\)"),
    ],
)
def test_a_wrong_argument_is_named_with_what_was_expected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, LookupError), match=message):
        gymnasium.make("rlvr/Addition-v0", **arguments)


def test_an_unknown_render_mode_is_named() -> None:
    with pytest.raises(LookupError, match="unknown render_mode 'human'"):
        environment_class("rlvr/Addition-v0")(render_mode="human")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Adition", r"unknown environment 'Adition'\. Did you mean 'Addition'\?"),
        ("rlvr/Adition-v0", "Did you mean 'rlvr/Addition-v0'"),
        ("NoSuch-v1", r"unknown environment 'NoSuch-v1'\. (Known|Did you mean '(?!.*-v0'))"),
        ("CartPole-v9", r"unknown environment 'CartPole-v9'\. Did you mean 'CartPole-v1'"),
    ],
)
def test_an_unknown_id_offers_the_nearest(name: str, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        environment_id(name)


def test_a_prompt_that_does_not_fit_raises_and_is_never_cut() -> None:
    env = gymnasium.make("rlvr/Addition-v0", max_prompt_tokens=3)
    with pytest.raises(ValueError, match=r"has (\d+) tokens; .* max_prompt_tokens=3\. .* to at least \1, shorten"):
        env.reset(seed=0)


def test_every_prompt_fits_by_default(every_id: str) -> None:
    env = environment_class(every_id)()
    lengths = [len(env.streams.prompt_tokens(index)) for index in range(min(200, env.num_problems))]
    assert max(lengths) <= env.streams.rules.max_prompt_tokens


def test_restricted_actions_are_the_answers_characters_and_the_end() -> None:
    env = gymnasium.make("rlvr/Addition-v0", restrict_actions=True)
    _, info = env.reset(seed=0)
    assert sorted(np.flatnonzero(info["action_mask"])) == [*range(ord("0"), ord("9") + 1), 256]
    assert info["action_mask"].dtype == np.int8
    with pytest.raises(ValueError, match=r"token 97 of row 0 is not legal here"):
        env.step(97)
    assert env.action_space.sample(mask=info["action_mask"]) in np.flatnonzero(info["action_mask"])


def test_the_names_found_without_reading_the_tables_are_those_of_their_rows() -> None:
    assert {name: kind for kind in dict.fromkeys(BENCHMARKS.values()) for name in rows(kind)} == BENCHMARKS


def test_a_row_has_the_defaults_of_its_table_where_it_has_none_of_its_own() -> None:
    first, second = rows("mathematics")["GSM8K"], rows("mathematics")["AIME25"]
    assert (first.verifier, first.prompt, first.max_new_tokens) == ("math", "gsm8k_cot_8shot", 512)
    assert (second.verifier, second.prompt, second.max_new_tokens) == ("math", "boxed_chat", 4096)


def test_a_class_is_made_once_and_can_be_pickled() -> None:
    cls = benchmarks.GSM8KEnv
    assert rlvr_envs.environment_class("GSM8K") is cls
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert (cls.__module__, cls.__qualname__) == ("rlvr_envs.tasks.benchmarks", "GSM8KEnv")


@pytest.mark.parametrize("name", ["GSM9KEnv", "GSM8K", "AdditionEnv"])
def test_only_classes_of_rows_are_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'rlvr_envs.tasks.benchmarks' has no attribute '{name}'"):
        getattr(benchmarks, name)


def test_a_class_loads_the_code_of_its_own_row_alone() -> None:
    code = (
        "import sys, rlvr_envs; rlvr_envs.environment_class('GSM8K')\n"
        "print(sorted(name for name in sys.modules if name.startswith('rlvr_envs.tasks.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rlvr_envs.tasks.benchmarks']"
