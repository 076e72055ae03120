"""Every pair of a prompt and the verifier that goes with it can meet: an answer in the form that is asked for is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import verifiers
from rlvr_envs import ChatPrompt, TaskEnv, TextPrompt, get_prompt
from rlvr_envs.envs import question_in
from rlvr_envs.envs.fitting import check_pair, gold_answer
from rlvr_envs.prompts import asked_form, written_answer
from rlvr_envs.tasks import CLASSES
from rlvr_envs.tokenizers import ByteTokenizer
from verifiers import (
    InvalidArgumentError,
    Message,
    MissingDataError,
    MissingDependencyError,
    Outcome,
    Problem,
    preferring,
)
from verifiers.completion import move_in

FOLDER = os.environ.get("RLVR_DATA_DIR")
PROBLEMS = 20


class ChatBytes(ByteTokenizer):
    """Bytes, with a chat template."""

    fingerprint = "chat-bytes"

    @staticmethod
    def chat_template(messages: tuple[Message, ...]) -> str:
        return "".join(f"<{message.role}>{message.content}</{message.role}>\n" for message in messages) + "<assistant>"


def short_name(cls: type[TaskEnv]) -> str:
    return cls.__name__.removesuffix("Env")


def load(cls: type[TaskEnv]) -> Any:
    options = {"data_dir": FOLDER} if "data_dir" in cls.task.data_options and short_name(cls) != "Text" else {}
    if options and FOLDER is None:
        pytest.skip("needs RLVR_DATA_DIR, a folder with the published rows")
    try:
        return cls.task.load(split=cls.task.default_split, **options)
    except (MissingDependencyError, MissingDataError) as error:
        pytest.skip(str(error))


ALL = pytest.mark.parametrize("cls", CLASSES, ids=short_name)
MADE = pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls.task.source == "generated"], ids=short_name)


def judge_of(cls: type[TaskEnv], dataset: Any, prompt: Any) -> tuple[Any, Any]:
    """A task's verifier for a prompt, by name and made."""
    spec = cls.task.verifier_of(dataset, chat=isinstance(prompt, ChatPrompt))
    return spec, preferring(verifiers.make(spec[0], **spec[1]), asked_form(prompt))


@ALL
@pytest.mark.parametrize("name", ["its own text", "its own chat", "chat", "boxed_chat", "tagged_chat", "answer_only"])
def test_the_gold_in_the_form_that_a_prompt_asks_for_is_correct(cls: type[TaskEnv], name: str) -> None:
    """In that of its own prompts, and in every form where the answer is text."""
    dataset = load(cls)
    own = name.startswith("its own")
    prompt = cls.task.prompt_for(dataset, chat="chat" in name) if own else get_prompt(name)
    spec, verifier = judge_of(cls, dataset, prompt)
    if own or spec[0] in ("choice", "countdown", "exact", "math", "numeric"):
        check_pair(spec, verifier, prompt, dataset)
        problems = [] if own else [dataset[index] for index in range(min(len(dataset), 8))]
        assert all(gold_answer(problem) is not None for problem in problems), "the check would pass without a gold"


def test_a_problem_without_a_gold_answer_says_nothing_of_the_pair() -> None:
    problems = [Problem("none", "?", [1]), Problem("one", "1+1", "2", {})]
    verifier = verifiers.make("numeric", whole=True)
    with pytest.raises(InvalidArgumentError, match="gold answer of problem 'one'"):
        check_pair(("numeric", {"whole": True}), verifier, get_prompt("boxed_chat"), problems)  # type: ignore[arg-type] # a list will do


@MADE
@pytest.mark.parametrize("name", ["chat", "boxed_chat", "tagged_chat"])
def test_the_gold_of_a_made_task_is_correct_in_every_form_that_a_chat_is_asked_for(
    cls: type[TaskEnv], name: str
) -> None:
    if (short_name(cls) == "Function" and name == "boxed_chat") or (cls.task.tokenizer == "char" and name != "chat"):
        with pytest.raises(InvalidArgumentError, match=f"prompt '{name}' asks"):
            gymnasium.make(f"rlvr/{short_name(cls)}-v0", prompt=name, tokenizer="byte")
        return
    dataset, prompt = load(cls), get_prompt(name)
    _, verifier = judge_of(cls, dataset, prompt)
    for index in range(min(len(dataset), PROBLEMS)):
        problem = dataset[index]
        gold = problem.metadata.get("gold_completion")
        if gold is None:
            continue
        (verdict,) = verifiers.verify_batch(verifier, [written_answer(prompt, str(gold))], [problem])
        assert verdict.outcome is Outcome.CORRECT, (written_answer(prompt, str(gold)), verdict)


@MADE
def test_a_chat_is_asked_in_words_that_are_longer_by_the_same_number_of_bytes(cls: type[TaskEnv]) -> None:
    dataset = load(cls)
    question = question_in(dataset, ChatPrompt())
    assert question_in(dataset, TextPrompt()) is None
    extra = set()
    for index in range(min(len(dataset), 200)):
        words = str(question(dataset[index]).prompt)
        assert len(words.split()) >= 3, words
        extra.add(len(words.encode()) - len(str(dataset[index].prompt).encode()))
    assert extra == {question.extra_bytes}  # type: ignore[attr-defined] # an InWords


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("\\boxed{{\\text{{{gold}}}}}", Outcome.CORRECT),
        ("{gold}", Outcome.CORRECT),
        ("The sorted list is: {commas}", Outcome.CORRECT),
        ("\\boxed{{{commas}}}", Outcome.CORRECT),
        ("\\boxed{{{backwards}}}", Outcome.INCORRECT),
        ("\\boxed{{{tight}}}", Outcome.CORRECT),
        ("\\boxed{{[{commas}]}}", Outcome.CORRECT),
        ("\\boxed{{{split}}}", Outcome.INCORRECT),
        ("Sure! Here it is:\n\n{gold}", Outcome.CORRECT),
        ("I am not sure about the order of these.", Outcome.NO_ANSWER),
    ],
)
def test_a_list_is_read_where_a_chat_marks_it(answer: str, outcome: Outcome) -> None:
    made: Any = gymnasium.make("rlvr/Sort-v0", prompt="boxed_chat").unwrapped
    problem = made.streams.dataset[0]
    gold = str(problem.reference)
    numbers = gold.split()
    assert numbers != numbers[::-1]
    assert len(numbers[-1]) > 1
    forms = {
        "gold": gold,
        "commas": ", ".join(numbers),
        "tight": ",".join(numbers),
        "split": f"{gold[:-1]},{gold[-1]}",
        "backwards": " ".join(numbers[::-1]),
    }
    written = answer.format(**forms)
    assert made.streams.rules.verifier(written, problem).outcome is outcome


def test_a_pair_that_cannot_meet_is_refused_with_what_the_gold_would_be() -> None:
    refused = (
        r"'numeric' with whole=True can't read .* 'boxed_chat' .*boxed\{.*Choose another prompt=.*, such as 'numeric'$"
    )
    with pytest.raises(InvalidArgumentError, match=refused):
        gymnasium.make("rlvr/Addition-v0", prompt="boxed_chat", verifier=("numeric", {"whole": True}))
    with pytest.raises(InvalidArgumentError, match=r"'exact' can't read .* 'custom' .*<answer>"):
        gymnasium.make("rlvr/Sort-v0", prompt="{problem} Answer in <answer> and </answer>.")
    with pytest.raises(InvalidArgumentError, match=r"'unit_tests' can't read .* 'boxed_chat'"):
        gymnasium.make("rlvr/Function-v0", prompt="boxed_chat")


@pytest.mark.parametrize(
    ("name", "kind"), [("choice_chat", "choice"), ("code_chat", "unit_tests"), ("sql_chat", "sql")]
)
def test_a_prompt_that_asks_for_what_another_verifier_reads_is_refused(name: str, kind: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"asks for what the verifier '{kind}' reads, but .* is 'countdown'"):
        gymnasium.make("rlvr/Countdown-v0", prompt=name)


def test_auto_is_a_chat_where_the_tokenizer_has_a_template() -> None:
    plain: Any = gymnasium.make("rlvr/Addition-v0", prompt="auto").unwrapped
    chat: Any = gymnasium.make("rlvr/Addition-v0", prompt="auto", tokenizer=ChatBytes()).unwrapped
    asked: Any = gymnasium.make("rlvr/Addition-v0", prompt="auto_chat").unwrapped
    assert (plain.manifest["prompt"]["name"], chat.manifest["prompt"]["name"]) == ("plain", "boxed_chat")
    problem = plain.streams.dataset[0]
    assert plain.streams.rules.render_prompt(problem) == problem.prompt
    assert chat.streams.rules.render_prompt(problem).startswith("<user>What is ")
    assert asked.streams.rules.render_prompt(problem).startswith("User: What is ")
    assert chat.streams.rules.max_new_tokens >= 256 > plain.streams.rules.max_new_tokens


@pytest.mark.parametrize("name", ["math", "numeric"])
def test_the_form_that_the_prompt_asks_for_is_preferred(name: str) -> None:
    completion, problem = "<answer>12</answer> and then \\boxed{12}. #### 42", Problem("p", "?", "42")
    verifier = verifiers.make(name)
    assert verifier(completion, problem).outcome is Outcome.CORRECT
    assert preferring(verifier, "box")(completion, problem).outcome is Outcome.INCORRECT
    assert preferring(verifier, None) is verifier


def test_a_system_message_is_for_a_chat() -> None:
    made: Any = gymnasium.make("rlvr/Addition-v0", prompt="chat", system="You add.").unwrapped
    assert made.streams.rules.render_prompt(made.streams.dataset[0]).startswith("System: You add.\n\nUser: What is ")
    with pytest.raises(InvalidArgumentError, match="'plain' is text: choose a chat prompt"):
        gymnasium.make("rlvr/Addition-v0", system="You add.")


def test_a_prompt_of_a_file_is_named_by_its_attribute(tmp_path: Path) -> None:
    file = tmp_path / "my_own_prompts.py"
    file.write_text(
        "from rlvr_envs import ChatPrompt\n"
        "TAGS = ChatPrompt('{problem} Put it in tags.', answer_format='<answer>{answer}</answer>', name='tags')\n"
        "NUMBER = 3\nTEXT = 'Q: {problem}'\n"
    )
    made: Any = gymnasium.make("rlvr/Addition-v0", prompt=f"{file}:TAGS").unwrapped
    assert "Put it in tags." in made.streams.rules.render_prompt(made.streams.dataset[0])
    assert get_prompt(f"{file}:TEXT").render(Problem("p", "1+1", "2")) == "Q: 1+1"
    with pytest.raises(InvalidArgumentError, match=r"is int 3; expected a rlvr_envs\.ChatPrompt"):
        get_prompt(f"{file}:NUMBER")
    bad = tmp_path / "my_bad_prompts.py"
    bad.write_text("from rlvr_envs import ChatPrompt\n\nBAD = ChatPrompt(answer_format='<answer>')\n")
    with pytest.raises(InvalidArgumentError, match=r"needs \{answer\} .* \(.*my_bad_prompts\.py, line 3\)"):
        get_prompt(f"{bad}:BAD")


@pytest.mark.parametrize(
    ("turn", "move"),
    [
        ("50", "50"),
        ("\\boxed{50} is half of 100", "50"),
        ("<think>25? 75?</think>50", "50"),
        ("<think>50", ""),
        ("I'll guess 50, the middle of 1 and 100.", "50"),
        ("My guess is 60. Is it higher or lower than 60? I have 5 turns left.", "60"),
        ("Since it is between 1 and 100, I guess **50**.", "50"),
        ("I will take cell 5 because it is the center. Your turn 1!", "cell 5"),
        ("My first guess is crane because it has many common vowels.", "crane"),
        ("Is it big?", "Is it big?"),
    ],
)
def test_a_move_is_what_a_turn_marks_or_all_of_it(turn: str, move: str) -> None:
    assert move_in(turn) == move
