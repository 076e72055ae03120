"""verl's own loading of a custom reward function, by the name that the documentation gives."""

from __future__ import annotations

from pathlib import Path

import datasets
from omegaconf import OmegaConf
from verl.trainer.ppo.reward import get_custom_reward_fn

from agents.adapters.verl import export


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
