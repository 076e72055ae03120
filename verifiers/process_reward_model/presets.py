r"""The formats of published process reward models.

| preset | made for | source of the format |
|---|---|---|
| `qwen2.5-math-prm` | Qwen/Qwen2.5-Math-PRM-7B and -72B | the model card, and vLLM's `Qwen2ForProcessRewardModel` |
| `trl` | models that TRL's `PRMTrainer` trains | `PRMTrainer.tokenize_row`, trl/experimental/prm/prm_trainer.py |
| `math-shepherd` | peiyi9979/math-shepherd-mistral-7b-prm | the model card |
| `rlhflow` | RLHFlow/Llama3.1-8B-PRM-Deepseek-Data | math-rm/prm_evaluate.py in RLHFlow/RLHF-Reward-Modeling |
| `skywork-o1-prm` | Skywork/Skywork-o1-Open-PRM-Qwen-2.5-1.5B and -7B | `prepare_input` in SkyworkAI/skywork-o1-prm-inference |

If a published script splits differently, pass `split`: for RLHFlow's Mistral-Data model, each line is a step (`"\n"`). The
scripts of TRL and Skywork make a step of every line; here, blank lines are not steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from verifiers.process_reward_model.heads import Head
from verifiers.process_reward_model.layouts import StepFormat

PRESETS: Mapping[str, tuple[StepFormat, Head]] = {
    "math-shepherd": (
        StepFormat("text", split="\n", mark="ки", prompt_end=" ", step_end=" ", mark_end="\n"),
        "token_pair",
    ),
    "qwen2.5-math-prm": (
        StepFormat(
            "chat",
            split="\n\n",
            mark="<extra_0>",
            system="Please reason step by step, and put your final answer within \\boxed{}.",
        ),
        "mlp",
    ),
    "rlhflow": (StepFormat("turns", split="\n\n", mark="+", prompt_end=" "), "token_pair"),
    "skywork-o1-prm": (StepFormat("pieces", split="\n", mark="\n", prompt_end="\n"), "value_head"),
    "trl": (StepFormat("pieces", split="\n", mark="\n"), "token_classifier"),
}
