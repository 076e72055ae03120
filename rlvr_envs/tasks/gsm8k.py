"""GSM8K: grade-school word problems (Cobbe et al. 2021, arXiv:2110.14168), with worked solutions."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import Exemplar, TextPrompt, register_prompt
from verifiers import Problem

_MARK = "#### "


def _to_problem(row: Row, default_id: str) -> Problem:
    solution = row.text("answer")
    _, mark, answer = solution.rpartition(_MARK)
    if not mark or not answer.strip():
        raise row.error(f"column 'answer' should end with the final answer after {_MARK!r}, got: …{solution[-60:]!r}")
    metadata = row.without("question", "answer")
    return Problem(default_id, row.text("question"), answer.strip(), metadata | {"gold_completion": solution})


SOURCE = Source(
    name="gsm8k",
    hub_id="openai/gsm8k",
    hub_config="main",
    sizes={"train": 7473, "test": 1319},
    to_problem=_to_problem,
)
"""The prompt is the question. The reference is the text after the last `"#### "`, as it is written in the data, with
thousands separators (`"1,080"`). The gold completion is the worked solution, calculator annotations included.
"""

EXEMPLARS = (
    Exemplar(
        "A bakery bakes 48 rolls every morning. On Monday it sold 31 of them before noon and 9 more in the afternoon. "
        "How many of Monday's rolls were left in the evening?",
        "The bakery sold 31 + 9 = 40 rolls on Monday. So 48 - 40 = 8 rolls were left.\n#### 8",
    ),
    Exemplar(
        "Nadia reads 15 pages on every day from Monday to Friday and 30 pages on each day of the weekend. How many "
        "pages does she read in 3 weeks?",
        "From Monday to Friday she reads 5 * 15 = 75 pages. On the weekend she reads 2 * 30 = 60 pages. That makes "
        "75 + 60 = 135 pages a week. In 3 weeks she reads 3 * 135 = 405 pages.\n#### 405",
    ),
    Exemplar(
        "A jacket at $80 is reduced by 25%. Omar buys the jacket and a scarf for $14. How many dollars does he pay?",
        "The price of the jacket goes down by 80 * 25 / 100 = 20 dollars. The jacket then costs 80 - 20 = 60 dollars. "
        "With the scarf he pays 60 + 14 = 74 dollars.\n#### 74",
    ),
    Exemplar(
        "A tank that can hold 900 litres of water is one third full. A pump adds 25 litres every minute. After how "
        "many minutes is the tank full?",
        "There are 900 / 3 = 300 litres in the tank. To fill it, 900 - 300 = 600 litres are missing. The pump needs "
        "600 / 25 = 24 minutes.\n#### 24",
    ),
    Exemplar(
        "Lena's brother is 9 years old. Lena's age is 4 more than twice her brother's. How old will she be in 5 years?",
        "Twice the brother's age is 2 * 9 = 18. Lena is 18 + 4 = 22 years old. In 5 years she will be 22 + 5 = 27."
        "\n#### 27",
    ),
    Exemplar(
        "A school orders 7 boxes with 24 pencils in each and shares all of the pencils equally among 6 classes. How "
        "many pencils does each class get?",
        "The boxes hold 7 * 24 = 168 pencils. Each class gets 168 / 6 = 28 pencils.\n#### 28",
    ),
    Exemplar(
        "Two cyclists leave the same village in opposite directions, one at 14 km per hour and the other at 18 km per "
        "hour. How many kilometres apart are they after 3 hours?",
        "Every hour the distance between them grows by 14 + 18 = 32 kilometres. After 3 hours they are 3 * 32 = 96 "
        "kilometres apart.\n#### 96",
    ),
    Exemplar(
        "Tom has $150. He buys 3 books for $12 each and 2 records for $19 each, and saves half of what is left. How "
        "many dollars does he save?",
        "The books cost 3 * 12 = 36 dollars and the records 2 * 19 = 38 dollars. Together that is 36 + 38 = 74 "
        "dollars. He has 150 - 74 = 76 dollars left and saves 76 / 2 = 38 dollars.\n#### 38",
    ),
)
"""Eight word problems with worked solutions, written for this package in the form of GSM8K's."""

PROMPT = register_prompt(
    TextPrompt(
        name="gsm8k_cot_8shot",
        template="Question: {problem}\nAnswer:",
        exemplars=EXEMPLARS,
        answer_format="#### {answer}",
        stop=("Question:", "</s>", "<|im_end|>"),
        source="Eight chains of thought (Wei et al. 2022, arXiv:2201.11903) in GSM8K's own answer format, which ends "
        "with '#### ' and the number; layout and stop strings as usual in evaluation harnesses. Examples of our own.",
    )
)


class GSM8KEnv(TaskEnv):
    """Grade-school word problems.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Word problems that take two to eight steps of arithmetic (Cobbe et al. 2021, arXiv:2110.14168): 7473 for training, 1319
    for testing. Gold answers are whole numbers.

    ## Starting State
    A question. Default prompt `gsm8k_cot_8shot`: eight worked examples, each ending `#### n`.

    ## Reward
    1 when the final answer equals the gold number, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("math", {}),
        prompt=PROMPT,
        max_new_tokens=512,
    )
