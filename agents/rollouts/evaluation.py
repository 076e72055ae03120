"""Evaluates a policy, with a confidence interval for its score."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.console.counting import counted
from agents.deferred import torch
from agents.rollouts import endpoint
from agents.rollouts.loop import Episode, play
from agents.rollouts.search import Search
from agents.rollouts.vector_adapter import num_problems
from agents.runs.at_k import answer_verifier, check_draws, count_votes
from agents.runs.clusters import problem_cluster
from agents.runs.drawing_order import cluster_by, dataset_order
from agents.runs.evaluation import Evaluation, summarize_evaluation
from agents.runs.evaluation_record import EvaluationRecord, Sample, SampledRow, sample_line
from agents.seeding import env_seeds, sample_seeds
from agents.types import Policy, Trajectory
from verifiers import InvalidArgumentError, Problem

MAX_SAMPLES = 10_000_000
"""Largest number of samples in an evaluation; their scores are held in memory together."""
_EVALUATION = 2**63
"""The seed stream of evaluations, separate from those of training steps, which count from 0."""


def evaluate(
    env: VectorEnv[Any, Any, Any],
    policy: Policy | endpoint.Endpoint,
    *,
    problems: int | None = None,
    samples: int = 1,
    seed: int = 0,
    pass_at: Sequence[int] = (),
    maj_at: Sequence[int] = (),
    search: Search | None = None,
    record: EvaluationRecord | None = None,
    on_sample: Callable[[Sample], None] | None = None,
    order_seed: int | None = None,
    clusters: str | None = None,
    repeat_errored: bool = True,
) -> Evaluation:
    """Evaluate a policy on the first problems of an environment's data set.

    An environment without `num_problems` draws each problem itself from a seed. It draws the same problems in every evaluation
    with the same `seed`, and the same problem for all samples of one number.

    The seed of a sample depends only on `seed`, its problem and its number. So a sample has the same tokens whichever other
    samples are played with it, except for rounding: the last digits of a model's outputs depend on the shape of the batch, and
    may decide between two tokens of nearly equal probability.

    Args:
        env: The environment; see `rollout`.
        policy: The policy to evaluate, or the endpoint of a server that answers.
        problems: Number of problems; None for all, if the environment has `num_problems`.
        samples: Number of completions for each problem.
        seed: Seed of sampling.
        pass_at: Each k for which pass@k is estimated, at most `samples`.
        maj_at: Each k for which maj@k is estimated, at most `samples`; the environment's verifier then has to compare answers
            with each other, like a `verifiers.AnswerVerifier`.
        search: Chooses each sample among several tries, like `agents.search.BestOfN`; None samples once. With the guide
            `"oracle"` the score is an upper bound, as pass@k is, and `Evaluation.oracle` says so.
        record: Record to which each sample is written as its episode ends; samples of a resumed record are not repeated.
        on_sample: Called with each sample: first with the record's samples, then with each new sample as its episode ends.
        order_seed: Seed of a random order of the problems, of which the first are taken; None for the order of the data set.
            See `agents.runs.drawing_order`.
        clusters: The column of the data set whose value is shared by problems that belong together, for all intervals; None
            groups problems with equal prompts.
        repeat_errored: Whether errored samples of a resumed record are repeated.

    Raises:
        InvalidArgumentError: If the environment has fewer problems, if the number of problems is unknown, if a resumed record
            is of another evaluation, if an endpoint is to search, or if a search without random draws is to find several
            samples.
        EngineError: If an endpoint can't be reached, or refuses what all requests have in common.
        OSError: If the record can't be written; it then holds all earlier samples.
    """
    if endpoint.is_endpoint(policy):
        endpoint.endpoint_env(env, policy)
    count = number_of_problems(num_problems(env), problems, samples)
    check_draws(samples, pass_at=pass_at, maj_at=maj_at)
    votes = _vote_counter(env) if maj_at else None  # first, so that an error comes before any sampling
    _check_search(samples, search)
    warn_of_equal_samples(samples, greedy=getattr(policy, "temperature", None) == 0)
    cluster = cluster_by(clusters)
    drawn = range(count) if order_seed is None else problem_order(env, order_seed, clusters)[:count]
    settings = {"problems": count, "samples": samples, "seed": seed, **_settings(env, policy)} if record else {}
    settings |= {} if order_seed is None else {"order_seed": order_seed}
    settings |= {} if clusters is None else {"clusters": clusters}
    if search is not None:
        settings["search"] = dict(search.manifest)
    ordered, played = complete_samples(
        [(index, number) for index in drawn for number in range(samples)],
        lambda missing: sampled_rows(env, policy, missing, seed, (max(drawn) + 1, samples), search),
        settings=settings,
        record=record,
        on_sample=on_sample,
        problem=lambda index: _problem(env, index),
        question=lambda problem: asked_problem(env, problem),
        cluster=cluster,
        repeat_errored=repeat_errored,
    )
    result = summarize_evaluation(
        ordered,
        count,
        samples,
        trajectories=played,
        pass_at=pass_at,
        maj_at=maj_at,
        votes=[] if votes is None else votes(ordered),
        search=None if search is None else search.manifest,
    )
    if record is not None:
        record.finish(result.summary())
    return result


def complete_samples(
    keys: Sequence[tuple[int, int]],
    make: Callable[[Sequence[tuple[int, int]]], Generator[SampledRow]],
    *,
    settings: Mapping[str, Any],
    record: EvaluationRecord | None,
    on_sample: Callable[[Sample], None] | None,
    problem: Callable[[int], Problem | None] = lambda index: None,
    question: Callable[[Problem], Problem] = lambda problem: problem,
    cluster: Callable[[Problem | None], str | None] = problem_cluster,
    repeat_errored: bool = True,
) -> tuple[list[Sample], list[Trajectory]]:
    """Make the samples of an evaluation that its record does not have yet.

    Args:
        keys: Problem and number of each sample, in the order in which the samples are made.
        make: Makes samples, each given by problem and number, in any order.
        settings: The settings that determine the samples, for the record.
        record: Record to which each sample is written; the samples of a resumed record are not repeated.
        on_sample: Called with each sample: first with the record's samples, then with each new sample as it is made.
        problem: Returns the problem with a given index, for the record.
        question: Returns a problem as it is put to the policy, for the record.
        cluster: Returns the cluster of a problem.
        repeat_errored: Whether errored samples of the record are made again.

    Returns:
        All samples in the order of the keys, and the episodes of the newly made samples, in the same order.
    """
    rows = {} if record is None else record.begin(settings)
    rows = {
        key: sample if (asked := problem(key[0])) is None else sample.of_problem(asked, cluster)
        for key, sample in rows.items()
    }
    for key in keys:
        if on_sample is not None and key in rows and not rows[key].errored:
            on_sample(rows[key])
    missing = [key for key in keys if key not in rows or (repeat_errored and rows[key].errored)]
    played: dict[tuple[int, int], Trajectory] = {}
    with contextlib.closing(make(missing)) as sampled:
        for made in sampled:
            asked = problem(made.sample.problem)
            sample = made.sample.of_problem(asked, cluster)
            if record is not None:
                record.add(sample_line(sample, made.completion, made.verdict, asked, asked and question(asked)))
            rows[sample.key] = sample
            if made.trajectory is not None:
                played[sample.key] = made.trajectory
            if on_sample is not None:
                on_sample(sample)
    return [rows[key] for key in keys], [played[key] for key in missing if key in played]


def problem_order(env: VectorEnv[Any, Any, Any], seed: int, clusters: str | None) -> list[int]:
    """The indices of an environment's problems in a random order, in which the problems of a cluster stay together."""
    world = env.unwrapped
    if not isinstance(world, rlvr_envs.TokenVectorEnv):
        raise InvalidArgumentError(
            f"an order needs the problems of a TokenVectorEnv, but this is a {type(world).__name__}: leave order_seed out"
        )
    return dataset_order(world.streams.dataset, seed, clusters)[0]


def problem_id(given: str, problem: int, seed: int, *, drawn: bool) -> str:
    """The id of a problem in an evaluation; the id of a drawn problem includes the seed and number of the draw.

    Drawn problems may have no id, or may share one. With seed and number, samples of different problems can still be
    distinguished, and evaluations with the same seed compared.
    """
    return f"{given or 'drawn'}@{seed}.{problem}" if drawn else given


def sampled_rows(
    env: VectorEnv[Any, Any, Any],
    policy: Policy | endpoint.Endpoint,
    keys: Sequence[tuple[int, int]],
    seed: int,
    size: tuple[int, int],
    search: Search | None = None,
) -> Generator[SampledRow]:
    """Make the samples given by problem and number, and yield them in the order in which they end."""
    seeds = sample_seeds(seed, _EVALUATION, *size)
    if endpoint.is_endpoint(policy):
        if search is not None:
            raise InvalidArgumentError(
                "a server's completions can't be searched, since episodes are played token by token in a search: take several "
                "samples with pass@k and maj@k, or another engine"
            )
        own = [int(seeds[key]) for key in keys]
        yield from endpoint.sample_endpoint(endpoint.endpoint_env(env, policy), policy, keys, own)
        return
    episodes = _episodes(env, keys, seed, seeds)
    if search is not None:
        for index, found in search.find(env, policy, episodes):
            problem, number = keys[index]
            sample = Sample.of(found.trajectory, problem=problem, sample=number)
            # The seed is the search's, and the seeds of its tries follow from it.
            sample = dataclasses.replace(sample, seed=episodes[index].seed, search_tokens=found.tokens)
            yield SampledRow(sample, found.trajectory.completion, found.trajectory.verdict, found.trajectory)
        return
    drawn = num_problems(env) is None
    for index, trajectory in play(env, policy, episodes) if episodes else ():
        problem, number = keys[index]
        sample = Sample.of(trajectory, problem=problem, sample=number)
        named = problem_id(sample.problem_id, problem, seed, drawn=drawn)
        sample = dataclasses.replace(sample, problem_id=named)
        yield SampledRow(sample, trajectory.completion, trajectory.verdict, trajectory)


def _episodes(
    env: VectorEnv[Any, Any, Any], keys: Sequence[tuple[int, int]], seed: int, seeds: NDArray[np.uint64]
) -> list[Episode]:
    """The episodes of some samples, each given by its problem and number, with their sampling seeds u64[p s]."""
    drawn = num_problems(env) is None
    starts = env_seeds(env, seed, _EVALUATION, len(seeds))
    return [
        Episode(-1 if drawn else problem, problem, int(seeds[problem, sample]), starts[problem])
        for problem, sample in keys
    ]


def _vote_counter(env: VectorEnv[Any, Any, Any]) -> Callable[[Sequence[Sample]], list[list[int | None]]]:
    """Make a function that counts the votes of samples, with the environment's verifier."""
    world = env.unwrapped
    if not isinstance(world, rlvr_envs.TokenVectorEnv):
        raise InvalidArgumentError(
            f"maj@k needs the verifier of a TokenVectorEnv, but this is a {type(world).__name__}: leave maj@k out"
        )
    verifier = answer_verifier(world.streams.rules.verifier)
    dataset = world.streams.dataset
    return lambda rows: count_votes(rows, dataset, verifier)


def _check_search(samples: int, search: Search | None) -> None:
    if samples > 1 and not getattr(search, "draws", True):
        raise InvalidArgumentError(
            f"all {samples} samples of a problem would be the same: {type(search).__name__} draws nothing, at any temperature. "
            "Take 1 sample, or the search best-of-n"
        )


def warn_of_equal_samples(samples: int, *, greedy: bool) -> None:
    """Warn if nothing can distinguish the samples of a problem."""
    if samples > 1 and greedy:
        warnings.warn(
            f"all {samples} samples of a problem are the same at temperature 0: choose a higher one, or take 1 sample",
            stacklevel=3,
        )


def _settings(env: VectorEnv[Any, Any, Any], policy: Policy | endpoint.Endpoint) -> dict[str, Any]:
    """The settings that determine the samples, as far as environment and policy report them."""
    names = ("temperature", "top_k", "top_p", "min_p", "precision")
    settings = {name: getattr(policy, name) for name in names if hasattr(policy, name)}
    if endpoint.is_endpoint(policy):
        settings["endpoint"] = policy.config.manifest
    # A sampler such as vLLM's has the weights of its learner.
    model = getattr(getattr(policy, "learner", policy), "model", None)
    if model is not None:
        settings["weights"] = _weights_fingerprint(model)
    world = env.unwrapped
    settings["environment"] = getattr(world, "manifest", {})
    if isinstance(world, rlvr_envs.TokenVectorEnv):
        first = world.streams.dataset[0]
        if endpoint.is_endpoint(policy):
            settings["example_prompt"] = endpoint.endpoint_env(env, policy).start(first).prompt
        else:
            settings["example_prompt"] = world.streams.prompt_text(first)
    return settings


def _weights_fingerprint(model: torch.nn.Module) -> str:
    """Hexadecimal sha256 over the names, dtypes, shapes and bytes of a model's weights."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        data = weight.detach().cpu().contiguous()
        digest.update(f"{name} {data.dtype} {tuple(data.shape)}\n".encode())
        digest.update(data.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _problem(env: VectorEnv[Any, Any, Any], index: int) -> Problem | None:
    """A problem of an environment; None if the environment does not expose its problems."""
    world = env.unwrapped
    return world.streams.dataset[index] if isinstance(world, rlvr_envs.TokenVectorEnv) else None


def asked_problem(env: VectorEnv[Any, Any, Any], problem: Problem) -> Problem:
    """A problem as the environment's prompt presents it: a chat prompt puts generated problems in words."""
    world = env.unwrapped
    render = world.streams.rules.render_prompt if isinstance(world, rlvr_envs.TokenVectorEnv) else None
    asked: Callable[[Problem], Problem] | None = getattr(
        render, "asked", None
    )  # an attribute of prompt renderers and of their mixtures
    return problem if asked is None else asked(problem)


def number_of_problems(available: int | None, wanted: int | None, samples: int) -> int:
    """The number of problems of an evaluation: the wanted number or, by default, all that are available."""
    count = available if wanted is None else wanted
    if count is None:
        raise InvalidArgumentError(
            "the environment has no num_problems: say how many problems to draw, as in evaluate(env, problems=100)"
        )
    if count < 1 or samples < 1 or (available is not None and count > available):
        said = (
            "at least 1 of each is needed"
            if available is None
            else f"the environment has {counted(available, 'problem')}"
        )
        raise InvalidArgumentError(f"can't evaluate {count} problems x {samples}: {said}")
    if count * samples > MAX_SAMPLES:
        raise InvalidArgumentError(
            f"an evaluation can have at most {MAX_SAMPLES} samples, got {count} problems x {samples} samples"
        )
    return count
