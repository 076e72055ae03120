"""What it buys that an `act` of `VLLMPolicy` returns the completions that are finished, without waiting for the others.

An engine that takes the same time for each token of all of its requests, of which it samples `--slots` at once; completions of
uneven length, lognormal; a verifier that takes the same time for each. The same episodes where `act` waits for every row and
where it streams, with a row for each slot, twice as many, and one for each completion. Seconds, and waiting / streaming.
"""

from __future__ import annotations

import argparse
import json
import platform
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from agents import CausalLMPolicy, Episode, VLLMConfig, VLLMPolicy, rollout, tiny_model
from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from rlvr_envs import CharTokenizer, Rules, TokenStreams, TokenVectorEnv
from verifiers import Outcome, Problem, Verdict

TOKENIZER = CharTokenizer("ab")


class SteadyEngine:
    """Samples a token of each request in a slot at every step, as an engine with continuous batching does.

    Args:
        model: For the shapes of its weights.
        step_s: Seconds of a step.
        slots: Number of requests that are sampled at once.
        median: Median length of a completion; the logarithm of its length has a standard deviation of 1.
    """

    def __init__(self, model: Any, step_s: float, slots: int, median: float) -> None:
        self._shapes = {name: list(weight.shape) for name, weight in model.state_dict().items()}
        self._step_s, self._slots, self._median = step_s, slots, median
        self._queue: list[tuple[int, Future[SampledCompletion]]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._sample, daemon=True).start()

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        futures: list[Future[SampledCompletion]] = [Future() for _ in requests]
        with self._changed:
            self._queue += zip(map(self._length, requests), futures, strict=True)
            self._changed.notify()
        return futures

    def _length(self, request: Request) -> int:
        length = self._median * np.exp(np.random.default_rng(request.seed).standard_normal())
        return int(np.clip(length, 1, request.max_tokens))

    def _sample(self) -> None:
        step, ends = 0, []
        while True:
            with self._changed:
                while not self._queue and not ends:
                    self._changed.wait()
                room = self._slots - len(ends)
                ends += [(step + length, length, future) for length, future in self._queue[:room]]
                del self._queue[:room]
            time.sleep(self._step_s)
            step += 1
            for end, length, future in ends:
                if end == step:
                    future.set_result(SampledCompletion([1] * (length - 1) + [TOKENIZER.eos_token], [0.0] * length))
            ends = [entry for entry in ends if entry[0] > step]

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        return [self._shapes if method == "checkpoint_shapes" else {}]

    def close(self) -> None:
        """Nothing to stop."""


def measure(args: argparse.Namespace, rows: int, streaming: bool) -> tuple[float, list[int]]:
    """Seconds for all episodes, and their lengths."""

    def judge(completion: str, problem: Problem) -> Verdict:
        time.sleep(args.verify_ms / 1000)
        return Verdict.of(Outcome.CORRECT, completion)

    rules = Rules(
        tokenizer=TOKENIZER,
        render_prompt=lambda problem: str(problem.prompt),
        max_prompt_tokens=1,
        max_new_tokens=args.longest,
        verifier=judge,
    )
    env = TokenVectorEnv(TokenStreams([Problem("0", "a", None)], rules, rows), copy=False)
    model = tiny_model(TOKENIZER.vocab_size, layers=1, hidden_size=16, max_tokens=args.longest + 1)
    engine: Any = SteadyEngine(model, args.token_ms / 1000, args.slots, args.median)
    policy = VLLMPolicy.for_env(CausalLMPolicy(model), env, VLLMConfig(streaming=streaming), engine=engine)
    episodes = [Episode(0, index, seed=index) for index in range(args.completions)]
    started = time.perf_counter()
    played = rollout(env, policy, episodes)
    seconds = time.perf_counter() - started
    env.close()
    return seconds, [int(trajectory.policy_mask.sum()) for trajectory in played]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--completions", type=int, default=64)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--median", type=float, default=30.0)
    parser.add_argument("--longest", type=int, default=300)
    parser.add_argument("--token-ms", type=float, default=20.0)
    parser.add_argument("--verify-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    sizes = (args.slots, 2 * args.slots, args.completions)
    ways = {(name, rows): name == "streaming" for name in ("waiting", "streaming") for rows in sizes}
    times: dict[tuple[str, int], list[float]] = {way: [] for way in ways}
    lengths = None
    for _ in range(args.rounds):
        for way, streaming in ways.items():
            seconds, played = measure(args, way[1], streaming)
            times[way].append(seconds)
            assert lengths is None or played == lengths, "the episodes differ"
            lengths = played
    assert lengths is not None
    median = {way: round(float(np.median(seconds)), 3) for way, seconds in times.items()}
    print(
        f"python {platform.python_version()}; {args.completions} completions of {np.mean(lengths):.0f} tokens on average"
    )
    for rows in sizes:
        seconds = {name: median[name, rows] for name in ("waiting", "streaming")}
        print(json.dumps({"rows": rows, **seconds, "ratio": round(seconds["waiting"] / seconds["streaming"], 2)}))


if __name__ == "__main__":
    main()
