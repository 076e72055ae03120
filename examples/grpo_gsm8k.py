"""GRPO on GSM8K with a model from the hub.

    python examples/grpo_gsm8k.py --model Qwen/Qwen2.5-0.5B-Instruct --steps 200
    python examples/grpo_gsm8k.py --dry-run     # the same way with a tiny model and made-up rows: no download, no GPU

The first is made for a GPU and needs the extra `hub`; it has not been run to its end yet. The second learns nothing: it
shows that everything fits together.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym

import agents
import rlvr_envs


def made_up_rows(folder: Path) -> Path:
    """Write a few rows in GSM8K's columns, as a local folder of data."""
    for split in ("train", "test"):
        path = folder / "gsm8k" / f"{split}.jsonl"
        path.parent.mkdir(exist_ok=True)
        rows = [
            {
                "question": f"A tray holds {n} cups. How many do 3 trays hold?",
                "answer": f"3 * {n} = {3 * n}\n#### {3 * n}",
            }
            for n in range(2, 18)
        ]
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def train(
    policy: agents.CausalLMPolicy, config: agents.GRPOConfig, steps: int, folder: Path, arguments: dict[str, Any]
) -> agents.Evaluation:
    """Train on the train split and evaluate on the test split; `arguments` are those of the environment."""
    at_once = config.problems_per_step * config.group_size
    envs = gym.make_vec("rlvr_envs:rlvr/GSM8K-v0", num_envs=at_once, split="train", **arguments)
    test = gym.make_vec("rlvr_envs:rlvr/GSM8K-v0", num_envs=at_once, split="test", **arguments)
    agent = agents.GRPO(policy, config)
    run = agents.Run(folder, {"example": "grpo_gsm8k"})
    try:
        agent.learn(envs, steps=steps, run=run, checkpoint_every=50)
    finally:
        run.close()
    return agent.evaluate(test)


def from_the_hub(model: str, steps: int, folder: Path) -> agents.Evaluation:
    """Train a model of the hub on the hub's problems."""
    policy, tokenizer = agents.load_policy(model, dtype="float32")
    config = agents.GRPOConfig(problems_per_step=16, group_size=8, kl_coefficient=0.001)
    return train(policy, config, steps, folder, {"tokenizer": tokenizer, "prompt": "boxed_chat"})


def dry_run(folder: Path) -> agents.Evaluation:
    """Two steps of a tiny model on made-up rows."""
    policy = agents.CausalLMPolicy(agents.tiny_model(rlvr_envs.ByteTokenizer().vocab_size, max_tokens=128))
    config = agents.GRPOConfig(problems_per_step=2, group_size=2)
    with tempfile.TemporaryDirectory() as data:
        arguments = {"data_dir": made_up_rows(Path(data)), "prompt": "plain", "max_new_tokens": 8}
        return train(policy, config, 2, folder, arguments)


def main(arguments: list[str] | None = None) -> agents.Evaluation:
    """Read the command line, train, and print the score on the test split."""
    parser = argparse.ArgumentParser(description="GRPO on GSM8K")
    parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B-Instruct")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("runs/gsm8k"))
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args(arguments)
    folder = options.folder
    result = dry_run(folder) if options.dry_run else from_the_hub(options.model, options.steps, folder)
    print(result)
    return result


if __name__ == "__main__":
    main()
