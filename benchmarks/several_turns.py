"""Learning in episodes of several turns: to call a tool, and to use what the first turn was answered.

**Calculator.** A tiny transformer starts from an early supervised checkpoint, which was shown two ways to treat sums of
`--digits` digits: to write the answer, which it has not learned to find, and to call the calculator and copy the result.
GRPO learns from the score alone. The control is the same training from the same checkpoint without the calculator.

**Two guesses.** A number from 1 to 3 is to be guessed in two turns; the first guess is answered with `higher` or `lower`.
Whoever guesses 2 and listens always wins, and whoever does not use the answer wins at most 2 of 3 games. A transformer with
random weights learns with `credit="turn"`, which compares what each turn onwards earned. The control is the same
training with answers that say nothing.

**A note.** The policy sees 1 or 2 and writes one of these digits, and a new context (`Reply.context`) holds nothing but this
note, below which it has to write what it saw: the summary of a long dialogue in its smallest form. Nobody says what a note
means. A transformer with random weights learns by GRPO. The control is the same training with a blank in place of the
note, where 1/2 is the best there is.

Measured: the mean score of sampled episodes with its 95 % interval over problems: held-out sums, and otherwise all numbers
alike, for each of several seeds.

Run: python benchmarks/several_turns.py
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch

import verifiers
from agents import (
    GRPO,
    CausalLMPolicy,
    GRPOConfig,
    LearnerConfig,
    PolicyConfig,
    SupervisedConfig,
    Trajectory,
    evaluate,
    tiny_model,
    train_supervised,
)
from agents.rollouts.given import given_turns
from rlvr_envs import CharTokenizer, FixedActions, Reply, Rules, TokenStreams, TokenVectorEnv, Turn
from rlvr_envs.games import GameInteraction
from rlvr_envs.tasks.guess_number import GuessNumberVerifier, SecretNumber, play
from verifiers import Message, Problem

CHARACTERS = CharTokenizer("\n" + "".join(map(chr, range(32, 127))))
SECRETS = (1, 2, 3)


def new_policy(seed: int) -> CausalLMPolicy:
    """A tiny transformer with random weights."""
    size = CHARACTERS.vocab_size
    return CausalLMPolicy(
        tiny_model(size, seed=seed, layers=2, hidden_size=64, intermediate_size=256),
        PolicyConfig(vocab_size=size, seed=seed),
    )


def learned(policy: CausalLMPolicy, env: Any, steps: int, problems: int, seed: int, **settings: Any) -> float:
    """Train for some steps of 8 episodes of so many problems, and return the CPU seconds that it took."""
    learner = LearnerConfig(learning_rate=3e-4, micro_batch_size=256)
    config = GRPOConfig(problems_per_step=problems, group_size=8, seed=seed, learner=learner, **settings)
    started = time.process_time()
    GRPO(policy, config).learn(env, steps=steps)
    return time.process_time() - started


def row(name: str, env: Any, policy: CausalLMPolicy, problems: int, seconds: float = 0.0) -> str:
    """The score of a policy and its share of episodes of several turns, as a row of a table."""
    result = evaluate(env, policy, problems=problems, samples=1)
    several = np.mean([not played.policy_mask[played.prompt_length :].all() for played in result.trajectories])
    low, high = result.interval
    return f"| {name} | {result.score:.3f} [{low:.3f}, {high:.3f}] | {several:.2f} | {seconds:.0f} s |"


# The calculator


def sums(split: str, digits: int, *, tool: bool) -> Any:
    """Sums, with or without the calculator, and with room for the same tokens."""
    return gymnasium.make_vec(
        "rlvr/Addition-v0",
        num_envs=256,
        split=split,
        digits=digits,
        tokenizer=CHARACTERS,
        max_new_tokens=len("<tool>+</tool>") + 2 * digits + digits + 2,
        tools="calculator" if tool else None,
        copy=False,
    )


def shown(streams: TokenStreams, index: int) -> Trajectory:
    """A demonstration: of every second problem the call and its result, of the others the answer alone."""
    problem = streams.dataset[index]
    answer = str(problem.metadata["gold_completion"])
    question = str(problem.prompt).rstrip("=")
    return given_turns(streams, index, [f"<tool>{question}</tool>", answer] if index % 2 else [answer])


def calculator(settings: argparse.Namespace) -> None:
    """Print the table of the calculator."""
    train, test = (
        {tool: sums(split, settings.digits, tool=tool) for tool in (True, False)} for split in ("train", "test")
    )
    policy = new_policy(0)
    warm_up = LearnerConfig(learning_rate=2e-3, micro_batch_size=512)
    train_supervised(
        policy,
        train[True].streams,
        SupervisedConfig(steps=settings.warm_up, batch_size=64, learner=warm_up),
        demonstrate=shown,
    )
    print(
        f"Sums of {settings.digits} digits: {settings.warm_up} supervised steps, then {settings.steps} steps of GRPO\n"
    )
    print("| policy | score on held-out sums | episodes with a call | training |\n|---|---|---|---|")
    weights = {name: tensor.clone() for name, tensor in policy.model.state_dict().items()}
    for tool, name in ((True, "with the calculator"), (False, "without (control)")):
        policy.model.load_state_dict(weights)
        policy.weights_changed()
        print(row(f"start, {name}", test[tool], policy, settings.problems), flush=True)
        seconds = learned(policy, train[tool], settings.steps, settings.problems_per_step, seed=0)
        print(row(f"GRPO, {name}", test[tool], policy, settings.problems, seconds), flush=True)


# Two guesses


def mute(turns: Sequence[Turn], problem: Problem) -> Reply:
    """The game's answer, but for what it says."""
    reply = GameInteraction(play)(turns, problem)
    return reply if reply.ends else Reply((Message("user", "\nno\n"),))


def guessing(*, listening: bool) -> Any:
    """The game of two guesses; 300 problems, of which a third has each secret."""
    digits = np.zeros(CHARACTERS.vocab_size, dtype=np.int8)
    digits[[*map(int, CHARACTERS.encode("123")), CHARACTERS.eos_token]] = 1
    secrets = [SecretNumber(SECRETS[number % 3], 2) for number in range(300)]
    return gymnasium.make_vec(
        "rlvr/Text-v0",
        num_envs=256,
        dataset=[Problem(f"guess/{number}", "1-3:", secret) for number, secret in enumerate(secrets)],
        interaction=GameInteraction(play) if listening else mute,
        verifier=GuessNumberVerifier(),
        tokenizer=CHARACTERS,
        legal_actions=FixedActions(digits),
        max_new_tokens=4,
        max_inserted_tokens=len("\nno number\n"),
        copy=False,
    )


def two_guesses(settings: argparse.Namespace) -> None:
    """Print the table of the game."""
    print(f"\nTwo guesses of a number from 1 to 3: {settings.game_steps} steps of GRPO by turns\n")
    print("| policy | score | episodes of two turns | training |\n|---|---|---|---|")
    for listening, name in ((True, "answers"), (False, "answers that say nothing (control)")):
        env = guessing(listening=listening)
        for seed in range(settings.seeds):
            policy = new_policy(seed)
            if seed == 0:
                print(row(f"start, {name}", env, policy, 300), flush=True)
            seconds = learned(policy, env, settings.game_steps, settings.problems_per_step, seed, credit="turn")
            print(row(f"seed {seed}, {name}", env, policy, 300, seconds), flush=True)


# A note


class Note:
    """Begins a new context with what the policy wrote, or without it; the turn after that ends the episode."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        """Answer the first turn, and end the episode after the second."""
        note = turns[0].text if self.kept else " "
        return Reply(context=(Message("user", f"note {note}, digit "),)) if len(turns) == 1 else None


def noting(*, kept: bool) -> Any:
    """300 episodes with a note, half of which have each digit."""
    digits = np.zeros(CHARACTERS.vocab_size, dtype=np.int8)
    digits[CHARACTERS.encode("12")] = 1
    streams = TokenStreams(
        [Problem(f"note/{number}", f"{shown}:", shown) for number, shown in enumerate(["1", "2"] * 150)],
        Rules(
            tokenizer=CHARACTERS,
            render_prompt=lambda problem: str(problem.prompt),
            max_prompt_tokens=2,
            max_new_tokens=2,
            max_inserted_tokens=16,
            turn_tokens=1,
            verifier=verifiers.make("exact"),
            interaction=Note(kept=kept),
            legal_actions=FixedActions(digits),
        ),
        256,
    )
    return TokenVectorEnv(streams, copy=False)


def notes(settings: argparse.Namespace) -> None:
    """Print the table of the note."""
    print(f"\nA digit through a note: {settings.note_steps} steps of GRPO\n")
    print("| policy | score | episodes of two turns | training |\n|---|---|---|---|")
    for kept, name in ((True, "the note"), (False, "a blank in its place (control)")):
        env = noting(kept=kept)
        for seed in range(settings.seeds):
            policy = new_policy(seed)
            if seed == 0:
                print(row(f"start, {name}", env, policy, 300), flush=True)
            seconds = learned(policy, env, settings.note_steps, settings.problems_per_step, seed)
            print(row(f"seed {seed}, {name}", env, policy, 300, seconds), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=250)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--game-steps", type=int, default=150)
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--problems-per-step", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--note-steps", type=int, default=100)
    parser.add_argument("--only", choices=("calculator", "game", "note"))
    settings = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}, one thread\n")
    for name, show in (("calculator", calculator), ("game", two_guesses), ("note", notes)):
        if settings.only in (None, name):
            show(settings)


if __name__ == "__main__":
    main()
