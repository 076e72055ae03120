"""verl loads the reward function, and its own agent loop, made as its workers make it, plays episodes of the exported file."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import hydra
import numpy as np
import pytest
import trl
from omegaconf import OmegaConf
from verl.trainer.ppo.reward import get_custom_reward_fn

from agents.adapters.verl import export
from rlvr_envs import TokenEnv, environment_class
from rlvr_envs.tasks import GuessNumber
from tests.tiny_models import byte_level_tokenizer
from verifiers import Outcome, VerifierFailureError

with warnings.catch_warnings():  # what ray and verl warn of is their own
    warnings.simplefilter("ignore")
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap

    from agents.adapters.verl_episodes import EpisodeLoop

TEMPLATE = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text(encoding="utf-8")
QWEN = byte_level_tokenizer("<|im_start|>", "<|im_end|>", eos_token="<|im_end|>", chat_template=TEMPLATE)


class Engine:
    """Says the turns of a script, with tokens after their ends, and a log-probability for each."""

    def __init__(self, turns: list[str]) -> None:
        self.turns = list(turns)
        self.prompts: list[list[int]] = []

    async def generate(self, *, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        self.prompts.append(prompt_ids)
        said = QWEN.encode(f"{self.turns.pop(0)}<|im_end|>and more")
        assert sampling_params["max_tokens"] > 0 < sampling_params["temperature"]
        assert sampling_params["stop_token_ids"] == [QWEN.eos_token_id]
        return SimpleNamespace(token_ids=said, log_probs=[-1.0] * len(said))


def loop_of(file: Path, engine: Engine, response: int = 4096) -> EpisodeLoop:
    """As verl's workers make it."""
    (agent,) = OmegaConf.load(file)
    assert agent.name == "rlvr"
    rollout = {"prompt_length": 1024, "response_length": response}
    made = hydra.utils.instantiate(
        config=agent,
        trainer_config=DictConfigWrap(OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})),
        server_manager=engine,
        tokenizer=QWEN,
        processor=None,
        hf_model_type=None,
        dataset_cls=None,
        data_config=DictConfigWrap(OmegaConf.create({})),
        tools=ToolListWrap([]),
    )
    return made


async def played(file: Path, engine: Engine, row: Any, **more: Any) -> Any:
    """An episode whose loop is made within a running event loop, as there; otherwise verl makes one that nobody closes."""
    return await loop_of(file, engine, **more).run({"temperature": 1.0}, **row)


def own_episode(env: str, index: int, turns: list[str], **arguments: Any) -> tuple[list[int], float, Outcome]:
    """The tokens of an episode here, what it pays, and its outcome."""
    made = TokenEnv(environment_class(env).make_vec(1, prompt="auto_chat", tokenizer=QWEN, **arguments).streams)
    made.reset(options={"problem": index})
    score = 0.0
    for turn in turns:
        observation, reward, terminated, truncated, info = made.step_many(np.array(QWEN.encode(f"{turn}<|im_end|>")))
        score += reward
    assert terminated or truncated
    return observation["tokens"][: int(observation["length"][0])].tolist(), score, info["verdict"].outcome


@pytest.mark.parametrize("game", [True, False])
def test_the_episode_is_the_one_here(game: bool, tmp_path: Path) -> None:
    env, arguments = ("GuessNumber", {}) if game else ("Addition", {"tools": "calculator", "digits": 2})
    data, file = export(env, tmp_path, limit=3, **arguments)
    rows = datasets.load_dataset("parquet", data_files=str(data), cache_dir=str(tmp_path))["train"]
    assert set(rows["agent_name"]) == {"rlvr"}
    call = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6*7"}}\n</tool_call>'
    problems = GuessNumber("train")
    for row in rows:
        index = row["extra_info"]["index"]
        turns = [*problems.gold_turns(problems[index])] if game else [call, r"\boxed{42}"]
        engine = Engine(turns)
        output = asyncio.run(played(file, engine, row))
        tokens, score, outcome = own_episode(env, index, turns, **arguments)
        assert output.prompt_ids + output.response_ids == tokens
        assert (output.reward_score, output.extra_fields["reward_extra_info"]["outcome"]) == (score, outcome.value)
        assert engine.prompts == [tokens[: len(prompt)] for prompt in engine.prompts]
        sampled = [token for token, own in zip(output.response_ids, output.response_mask, strict=True) if own]
        assert QWEN.decode(sampled) == "".join(f"{turn}<|im_end|>" for turn in turns)
        assert output.response_logprobs == [-1.0 * own for own in output.response_mask]
        assert output.num_turns == 2 * len(turns)


def test_what_can_not_be_judged_or_has_no_room_is_an_error(tmp_path: Path) -> None:
    data, file = export("Addition", tmp_path, limit=1, tools="calculator", verifier="tests.adapters.broken:exactly")
    row = datasets.load_dataset("parquet", data_files=str(data), cache_dir=str(tmp_path))["train"][0]
    with pytest.raises(VerifierFailureError, match="the pool died"):
        asyncio.run(played(file, Engine(["break"]), row))
    with pytest.raises(hydra.errors.InstantiationException, match=r"set data.max_response_length to that"):
        asyncio.run(played(file, Engine([]), row, response=100))


def test_verl_loads_it_with_its_settings() -> None:
    function = {
        "path": "pkg://agents.adapters.verl",
        "name": "compute_score",
        "reward_kwargs": {"verifier": "exact", "verifier_args": {"casefold": True}},
    }
    compute = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": function}}))
    row = {"data_source": "ours", "ground_truth": "yes", "extra_info": {"index": 0, "num_turns": None}}
    assert compute(solution_str="YES", **row) == {"score": 1.0, "acc": True, "outcome": "correct", "pred": "yes"}
    assert compute(solution_str="no", **row)["score"] == 0.0


def test_verl_loads_what_is_exported(tmp_path: Path) -> None:
    data, reward = export("Addition", tmp_path / "sums", limit=2, digits=1)
    function = {"path": str(reward), "name": "compute_score"}
    compute = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": function}}))
    row = datasets.load_dataset("parquet", data_files=str(data), cache_dir=str(tmp_path))["train"][1]
    answer = row["reward_model"]["ground_truth"]
    fields = {"data_source": row["data_source"], "ground_truth": answer, "extra_info": row["extra_info"]}
    assert compute(solution_str=answer, **fields)["score"] == 1.0
    assert compute(solution_str=f"{answer}0", **fields)["score"] == 0.0
