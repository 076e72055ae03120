"""What a verdict or a process reward model pays before the end is learned at its tokens: `Verdict.token_scores`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import verifiers
from agents import Action, Episode, Trajectory, rollout
from rlvr_envs import ByteTokenizer, HuggingFaceTokenizer, Rules, TokenEnv, TokenStreams, TokenVectorEnv
from tests.tiny_models import SHAPE, byte_level_tokenizer, character_tokenizer, save, spread, transformers
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict, VerifierContractError

EOS = ByteTokenizer.eos_token


def steps(completion: str, problem: Problem) -> Verdict:
    """1 for each `+` and -2 for each `-`, paid there, and 10 at the end."""
    paid = {"+": 1.0, "-": -2.0}
    pairs = tuple((end, paid[byte]) for end, byte in enumerate(completion, 1) if byte in paid)
    return Verdict(10.0 + sum(amount for _, amount in pairs), Outcome.SCORED, token_scores=pairs)


def streams(num_streams: int, verifier: Any = steps, **rules: Any) -> TokenStreams:
    settings: dict[str, Any] = {
        "tokenizer": ByteTokenizer(),
        "render_prompt": lambda problem: problem.prompt,
        "max_prompt_tokens": 4,
        "max_new_tokens": 12,
        "verifier": verifiers.from_function(verifier),
    }
    return TokenStreams([Problem("p", "QQ", None)], Rules(**{**settings, **rules}), num_streams)


class Script:
    """Writes a script in each row, so many tokens at a time, behind a prompt of two."""

    version = 0

    def __init__(self, scripts: list[list[int]], width: int) -> None:
        self.scripts, self.width = scripts, width

    def begin(self, rows: Any, seeds: Any) -> None: ...

    def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Action:
        length = observation["length"].reshape(-1) - 2
        count = len(length)
        tokens, counts = np.zeros((count, self.width), dtype=np.int64), np.zeros(count, dtype=np.int64)
        for row in np.flatnonzero(rows):
            script = self.scripts[row][length[row] : length[row] + self.width]
            tokens[row, : len(script)], counts[row] = script, len(script)
        return Action(tokens, counts, np.full(tokens.shape, -1.0, dtype=np.float32))


def play(text: bytes, width: int, end: bool = True, **rules: Any) -> Trajectory:
    return rollout(TokenVectorEnv(streams(1, **rules)), Script([[*text, *[EOS] * end]], width), [Episode(0, 0, 0)])[0]


@pytest.mark.parametrize("width", [1, 2, 3, 12])
@pytest.mark.parametrize("verification", ["sync", "deferred"])
def test_each_part_is_paid_at_its_token_however_the_tokens_come(width: int, verification: str) -> None:
    result = play(b"a+b-+", width, verification=verification)
    assert result.rewards.tolist() == [0, 0, 0, 1, 0, -2, 1, 10]
    assert result.verdict is not None
    assert result.score == result.verdict.score == 10.0


def test_a_completion_that_the_budget_or_a_stop_string_cuts_off_is_paid_the_same() -> None:
    result = play(b"a+b-", 1, end=False, max_new_tokens=4)
    assert result.truncated
    assert result.rewards.tolist() == [0, 0, 0, 1, 0, 10 - 2]
    result = play(b"+a-b##", 1, end=False, stop=["##"])
    assert result.completion == "+a-b"
    assert result.rewards.tolist() == [0, 0, 1, 0, -2, 0, 0, 10]


def test_an_end_stands_in_the_token_that_completes_the_character() -> None:
    # An umlaut has two bytes and so two tokens; a byte that is no text is a character of its own.
    result = play("ü+".encode() + b"\xff-", 1)
    assert result.completion == "ü+\ufffd-"
    assert result.rewards.tolist() == [0, 0, 0, 0, 1, 0, -2, 10]

    def half(completion: str, problem: Problem) -> Verdict:
        return Verdict(1.0, Outcome.SCORED, token_scores=((1, 0.25), (2, 0.5)))

    # The first character is complete with its second byte, and the last, which is cut short, only with the end.
    result = play("ü".encode() + b"\xe2\x82", 1, verifier=half)
    assert result.rewards.tolist() == [0, 0, 0, 0.25, 0, 0, 0.75]


def test_environments_pay_the_whole_score_at_the_end_and_say_what_belongs_where() -> None:
    env = TokenEnv(streams(1))
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step_many([*b"a+", EOS])
    assert (reward, terminated) == (11.0, True)
    assert info["rewards"].tolist() == [0, 0, 11]
    assert info["token_scores"] == ((3, 1.0),)
    envs = TokenVectorEnv(streams(2))
    envs.reset(seed=0)
    tokens = np.array([[*b"a+", EOS], [*b"ab", EOS]])
    *_, info = envs.step_many(tokens, [3, 3])
    assert info["token_scores"].tolist() == [((3, 1.0),), None]
    assert info["_token_scores"].tolist() == [True, False]


def test_environments_of_gymnasiums_own_vectorisation_pay_at_the_same_tokens() -> None:
    mode = gymnasium.vector.AutoresetMode.DISABLED
    env = gymnasium.vector.SyncVectorEnv([lambda: TokenEnv(streams(1))] * 2, autoreset_mode=mode)
    results = rollout(env, Script([[*b"a+", EOS], [*b"ab", EOS]], 1), [Episode(-1, 0, 0, 0), Episode(-1, 1, 0, 0)])
    assert [episode.rewards.tolist() for episode in results] == [[0, 0, 0, 1, 10], [0, 0, 0, 0, 10]]


def test_a_wrapper_that_scales_a_reward_scales_what_its_tokens_are_paid() -> None:
    env = gymnasium.wrappers.vector.TransformReward(TokenVectorEnv(streams(1)), lambda reward: reward / 2)
    result = rollout(env, Script([[*b"a+", EOS]], 1), [Episode(0, 0, 0)])[0]
    assert result.score == 5.5
    assert result.rewards.tolist() == [0, 0, 0, 0.5, 5]


@pytest.mark.parametrize(
    "pairs", [(0.1, 0.4), ((0, 1.0),), ((1, float("nan")),), ((1.5, 1.0),), [(1, 1.0)], ((True, 1.0),)]
)
def test_what_is_no_pair_of_end_and_amount_is_refused(pairs: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"pairs \(end, amount\)"):
        Verdict(1.0, Outcome.SCORED, token_scores=pairs)


def test_ends_beyond_the_completion_are_refused() -> None:
    def beyond(completion: str, problem: Problem) -> Verdict:
        return Verdict(1.0, Outcome.SCORED, token_scores=((len(completion) + 1, 1.0),))

    with pytest.raises(VerifierContractError, match="the first 3 characters of a completion of 2"):
        play(b"ab", 1, verifier=beyond)
    with pytest.raises(InvalidArgumentError, match="has no token scores"):
        Verdict(float("nan"), Outcome.VERIFIER_ERROR, token_scores=((1, 1.0),))


# Steps scored by a process reward model


MERGES = (("Ċ", "Ċ"), (".", "ĊĊ"), ("o", "k"), ("ĊĊ", "ok"))
"""The policy's tokens join the end of a step with what separates it, and that with the next step's beginning."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = transformers.LlamaConfig(**SHAPE, num_labels=2)
    model = spread(transformers.LlamaForTokenClassification(config))
    return save(tmp_path_factory.mktemp("prm"), model, character_tokenizer())


@pytest.mark.parametrize("width", [1, 4, 99])
@pytest.mark.parametrize("reduction", ["min", "sum"])
def test_an_episode_is_paid_at_the_tokens_that_end_its_steps(folder: Path, reduction: str, width: int) -> None:
    prm = verifiers.make(
        "process_reward_model", model=folder, preset="trl", split="\n\n", reduction=reduction, device="cpu"
    )
    tokenizer = HuggingFaceTokenizer(byte_level_tokenizer(merges=MERGES))
    text = "go.\n\nü=2\n\nok\n\n\n\nso"
    tokens = [*tokenizer.encode(text).tolist(), tokenizer.eos_token]
    pieces = [tokenizer.token_bytes(token).decode(errors="replace") for token in tokens]
    assert pieces == ["g", "o", ".\n\n", "\ufffd", "\ufffd", "=", "2", "\n\nok", "\n\n", "\n\n", "s", "o", ""]

    env = TokenVectorEnv(streams(1, prm, tokenizer=tokenizer, max_new_tokens=32))
    episode = rollout(env, Script([tokens], width), [Episode(0, 0, 0)])[0]

    verdict = prm(text, Problem("p", "QQ", None))
    assert verdict.outcome is Outcome.SCORED
    ends, (a, b, c, d) = zip(*verdict.detail["steps"], strict=True)  # type: ignore[call-overload, misc]
    assert ends == (5, 10, 14, 18)
    if reduction == "sum":
        first, second, third, last = a, b, c, d
    else:
        first, second, third, last = a, min(a, b) - a, min(a, b, c) - min(a, b), min(a, b, c, d) - min(a, b, c)
    # The second step is over with the line breaks in "\n\nok"; the last one is over with the end token alone.
    expected = [0, 0, 0, 0, first, 0, 0, 0, 0, second, third, 0, 0, 0, last]
    assert episode.rewards.tolist() == pytest.approx(expected, abs=1e-6)
    assert episode.rewards.sum() == pytest.approx(verdict.score)
    assert episode.score == verdict.score
