"""The estimators' court: its gradients as slopes, planted faults that it finds, and correct estimators that pass."""

from __future__ import annotations

import dataclasses
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from agents.advantages import gae, group_centered, leave_one_out, pass_at_k
from agents.experiments.court import Estimator, Judgement, Record, case, compare, judge, of_agent
from agents.experiments.court.cases import every_case, names
from agents.experiments.court.tables import Tables
from agents.experiments.court.trial import batches, order_matters
from agents.turns import turn_group_relative
from tests.commands import Command
from verifiers import InvalidArgumentError, UnknownNameError


def test_every_case_enumerates_a_distribution_and_its_gradient_is_a_slope() -> None:
    for one in every_case():
        if one.group_size > 3:
            continue
        tables = Tables(one)
        assert sum(chance for _, chance in batches(tables, ordered=False)) == pytest.approx(1, abs=1e-12)
        direction = torch.randn(tables.theta.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

        def objective(sign: int, tables: Tables = tables, direction: Tensor = direction) -> float:
            """J minus the KL term, by episodes."""
            logs = tables.log_probabilities(tables.theta.detach() + sign * 1e-5 * direction)
            reference = tables.log_probabilities(tables._reference_logits)
            values = tables.scores - tables.case.kl_coefficient * (logs - reference)
            return float((logs.exp() * values).sum()) / len(tables.worlds)

        slope = (objective(1) - objective(-1)) / 2e-5
        assert slope == pytest.approx(float((tables.gradient("return") * direction).sum()), rel=1e-6, abs=1e-9)


def test_no_constant_baseline_has_less_variance_than_the_best() -> None:
    tables = Tables(case("unequal lengths", 3))

    def variance(constant: float) -> float:
        return compare(Estimator("", advantages=lambda record: record.scores - constant), tables.case).variance

    at_0, at_1, at_2 = map(variance, (0.0, 1.0, 2.0))  # of a parabola
    curvature = (at_0 - 2 * at_1 + at_2) / 2
    slope = at_1 - at_0 - curvature
    assert at_0 - slope**2 / (4 * curvature) == pytest.approx(tables.best_variance(), rel=1e-9)


def policy_loss(record: Record, weights: Tensor) -> Tensor:
    return -torch.where(record.mask, weights * record.logprobs, 0.0).sum() / record.valid.sum()


def by_step(record: Record, weights: Any) -> Tensor:
    return policy_loss(record, weights) * record.valid.sum() / record.step_completions


def rloo(record: Record) -> Tensor:
    return leave_one_out(record.scores, record.groups, record.valid)


def by_turns(record: Record) -> Tensor:
    return turn_group_relative(record.rewards, record.mask, record.groups, record.valid, relative=leave_one_out)


def corrected(record: Record) -> Tensor:
    """RLOO with the ratio of whole episodes to the sampler, and k1 in the reward."""
    ratios = torch.where(record.mask, record.logprobs - record.sampler_logprobs, 0.0).sum(1).exp()
    scores = record.scores - record.kl_coefficient * torch.where(
        record.mask, record.logprobs - record.reference_logprobs, 0.0
    ).sum(1)
    own = leave_one_out(scores.detach(), record.groups, record.valid)
    return -torch.where(record.valid, ratios * own, 0.0).sum() / record.valid.sum()


RIGHT = {
    "RLOO": Estimator("", advantages=rloo),
    "by turns": Estimator("", advantages=by_turns),
    "whole ratios": Estimator("", loss=corrected, skipped={"ranks": "by its mean", "accumulation": "by its mean"}),
    "critic": Estimator("", advantages=lambda record: gae(record.rewards, record.values, record.mask)),
    "of the whole step": Estimator(
        "",
        advantages=rloo,
        loss=lambda record: by_step(record, record.advantages),
        reduction="sum",
    ),
    "best of 2": Estimator(
        "",
        advantages=lambda record: pass_at_k(record.scores, record.groups, record.valid, 2),
        objective="best of 2",
        group_sizes=range(3, 7),
        skipped={"excluded": "too small groups"},
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_estimators_are_unbiased_and_have_no_fault(name: str) -> None:
    few = [size for size in RIGHT[name].group_sizes if size < 5][:2]
    judgement = judge(dataclasses.replace(RIGHT[name], group_sizes=few))
    assert [finding.sentence for finding in judgement.findings if finding.shown_by is not None] == []
    assert judgement.findings[0].sentence.startswith("Unbiased in groups of ")
    off = {"stale samples", "another engine", "KL term"}
    for one in judgement.comparisons:
        assert one.unbiased or (one.case.name in off and name != "whole ratios"), str(one)
    if name == "whole ratios":
        sentences = " ".join(finding.sentence for finding in judgement.findings)
        assert sentences.count("the correction is exact") == 2
        assert "The KL term has the gradient of KL(policy || reference) of whole episodes." in sentences


def with_itself(record: Record) -> Tensor:
    return group_centered(record.scores, record.groups, record.valid)


def by_batch_length(record: Record) -> Tensor:
    return policy_loss(record, rloo(record)[:, None]) * record.valid.sum() / record.mask.sum()


def broken_scores_0(record: Record) -> Tensor:
    return group_centered(record.scores.nan_to_num(0.0), record.groups, torch.ones_like(record.valid))


def unshared_turns_0(record: Record) -> Tensor:
    """Leaves out turns that one episode of a group alone has."""
    scores = by_turns(record)
    shared = torch.stack(
        [
            torch.stack([(record.turns[record.groups == group] >= turn).any(1).sum() for turn in row])
            for row, group in zip(record.turns, record.groups, strict=True)
        ]
    )
    return torch.where(shared > 1, scores, 0.0)


def longest_masked(record: Record) -> Tensor:
    return torch.where(record.truncated, 0.0, rloo(record))


def beside_the_next(record: Record) -> Tensor:
    """The baseline of an episode is the score of the one before it, of the last the first's."""
    scores = record.scores.nan_to_num(0.0)
    return scores - scores.roll(1)


def k1_in_the_loss(record: Record) -> Tensor:
    k1 = torch.where(record.mask, record.logprobs - record.reference_logprobs, 0.0).sum() / record.valid.sum()
    return policy_loss(record, rloo(record)[:, None]) + record.kl_coefficient * k1


def whitened(record: Record) -> Tensor:
    scores = record.scores[record.valid]
    return torch.where(record.valid, (record.scores.nan_to_num(0.0) - scores.mean()) / (scores.std() + 1e-8), 0.0)


def sharp(record: Record) -> Tensor:
    drift = torch.where(record.mask, (record.logprobs - record.old_logprobs).abs(), 0.0).sum()
    return policy_loss(record, rloo(record)[:, None]) + drift


FAULTS: dict[str, tuple[Callable[[Record], Any], str]] = {
    "baseline with itself": (with_itself, "the size biased by the factor (n - 1) / n in groups of n"),
    "batch mean": (
        lambda record: record.scores - record.scores[record.valid].mean(),
        "the size biased by the factor (N - 1) / N in batches of N episodes",
    ),
    "broken verifiers score 0": (broken_scores_0, "the verifier breaks on an episode of each group, which should"),
    "unshared turns": (unshared_turns_0, "different numbers of turns, which are paid one by one, in groups of 2, it"),
    "truncated left out": (longest_masked, "Where episodes are truncated, which should change nothing"),
    "order": (beside_the_next, "depends on the order of the episodes in a group"),
    "whitened": (whitened, "Biased in direction"),
    "slightly": (lambda record: rloo(record) * (1 + 1e-3 * record.scores), "across the gradient is up to 0.0"),
    "nothing": (lambda record: 0 * record.scores, "There is no gradient: it is 0 in groups of every size"),
    "NaN": (lambda record: record.scores - record.scores.mean(), "not finite in the case 'excluded, groups of 3'"),
}
FAULTS_OF_LOSSES: dict[str, tuple[Callable[[Record], Any], str]] = {
    "by the batch's length": (by_batch_length, "each batch's gradient is divided by its number of tokens"),
    "k1 in the loss": (k1_in_the_loss, "The coefficient of the KL term is not used"),
    "kink": (sharp, "not differentiable where the policy equals"),
}


@pytest.mark.parametrize("name", [*FAULTS, *FAULTS_OF_LOSSES])
def test_planted_faults_are_found(name: str) -> None:
    function, sentence = (FAULTS | FAULTS_OF_LOSSES)[name]
    tried = {"advantages" if name in FAULTS else "loss": function, "skipped": {"accumulation": "slow", "ranks": "slow"}}
    judgement = judge(Estimator(name, group_sizes=(2, 3), address=f"mine:{name}", **tried))
    assert_found(judgement, sentence)
    compile(judgement.code(), name, "exec")


def assert_found(judgement: Judgement, sentence: str) -> None:
    sentences = [finding.sentence for finding in judgement.findings]
    assert any(sentence in one for one in sentences), "\n".join(sentences)


COURT = Path(__file__).parents[2] / "benchmarks" / "court"
PUBLISHED = {
    "temperature_left_out": "Where the temperature is 0.5, which should change nothing, the gradient changes",
    "returns_end_at_answers": "tokens of the environment are between the policy's own, which should change nothing",
    "gae_over_answers": "tokens of the environment are between the policy's own, which should change nothing",
    "k3_in_the_loss": "the gradient of KL(reference || policy) at the states visited, the other direction",
    "mean_of_each_micro_batch": "Divided into micro-batches of unequal size whose gradients are averaged",
    "mean_of_each_completion": "each episode's gradient is divided by its number of tokens",
}


def test_published_faults_that_are_put_back_are_found() -> None:
    published = runpy.run_path(str(COURT / "published.py"))
    assert set(published["ADDRESSES"]) == set(PUBLISHED)
    for estimator in published["ESTIMATORS"]:
        assert_found(judge(dataclasses.replace(estimator, group_sizes=(2, 3))), PUBLISHED[estimator.name])


def test_a_finding_comes_with_a_program_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(COURT))
    run, published = (runpy.run_path(str(COURT / name)) for name in ("run.py", "published.py"))
    index = list(published["ADDRESSES"]).index("mean_of_each_completion")
    small = dataclasses.replace(published["ESTIMATORS"][index], group_sizes=(2, 3))
    exec("\n".join(run["program"](judge(small), "published", index)), {})
    assert "factor 0.5" in capsys.readouterr().out


@pytest.mark.parametrize("agent", ["ppo", "a2c", "grpo", "reinforce++", "opo"])
def test_what_should_change_nothing_changes_nothing_in_biased_agents_either(agent: str) -> None:
    estimator = of_agent(agent, **({"gae_lambda": 0.5} if agent == "a2c" else {}))
    for name in ("tool tokens", "truncated", "excluded", "temperature"):
        one = compare(estimator, case(name, 3))
        same = compare(estimator, one.case.counterpart()).expected / one.case.temperature
        expected = torch.zeros_like(one.expected)
        expected[: len(same)] = same
        torch.testing.assert_close(one.expected, expected, atol=1e-9, rtol=1e-9)
        assert not one.unbiased


def test_the_table_of_our_agents_is_up_to_date() -> None:
    page = (COURT.parents[1] / "docs" / "court.md").read_text(encoding="utf-8")
    table = page.partition("<!-- court of_ours -->")[2].partition("<!-- end court -->")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    shown = {row[0].removeprefix("| "): row[1:3] for row in rows}
    estimators = runpy.run_path(str(COURT / "of_ours.py"))["ESTIMATORS"]
    assert list(shown) == [estimator.name for estimator in estimators]
    for estimator in estimators:
        for cell, name in zip(shown[estimator.name], ("one length", "unequal lengths"), strict=True):
            verdict = compare(estimator, case(name, estimator.group_sizes[0])).verdict
            assert cell.partition(":")[0] == verdict, (estimator.name, name)


def test_the_order_matters_where_it_does() -> None:
    assert order_matters(Estimator("", advantages=beside_the_next), case("one length", 3))
    assert not order_matters(Estimator("", advantages=rloo), case("excluded", 4))


@pytest.mark.parametrize("sizes", [(2,), (4,), (2, 3)])
def test_groups_of_other_sizes_than_claimed_are_never_asked_for(sizes: tuple[int, ...]) -> None:
    def checked(record: Record) -> torch.Tensor:
        assert set(record.groups.bincount().tolist()) | set(record.groups[record.valid].bincount().tolist()) <= {*sizes}
        return rloo(record)

    judgement = judge(Estimator("", advantages=checked, group_sizes=sizes))
    assert judgement.findings[0].sentence.startswith("Unbiased in groups of ")


def test_factors_and_variances_of_known_size() -> None:
    """The mean of a group scales by (n - 1) / n, and leaving one out then has the same variance at the gradient's size."""
    for size in range(2, 9):
        centred = compare(Estimator("", advantages=with_itself), case("one length", size))
        assert centred.scale == pytest.approx((size - 1) / size, rel=1e-12)
        other = compare(Estimator("", advantages=rloo), case("one length", size))
        assert centred.relative_variance == pytest.approx(other.relative_variance, rel=1e-9)
    assert math.isclose(compare(of_agent("dr-grpo"), case("unequal lengths", 4)).scale, 3 / 4 / 4, rel_tol=1e-9)


def test_what_can_not_be_tried_and_a_wrong_result_or_name_are_explained() -> None:
    def tried(**claims: Any) -> Judgement:
        return judge(Estimator("mine", **{"advantages": rloo, **claims}))

    for claim in ({"group_sizes": (16,)}, {"group_sizes": (1,)}, {"skipped": {"one length": "why"}}):
        with pytest.raises(InvalidArgumentError, match=r"'one length' in groups of 2 to 8; got"):
            tried(**claim)
    with pytest.raises(InvalidArgumentError, match=r"in groups of 2 to 4, since the order in a group matters"):
        tried(advantages=beside_the_next, group_sizes=(5,))
    with pytest.raises(InvalidArgumentError, match="groups of at most 4 are enumerated in every order, got 5"):
        compare(Estimator("", advantages=beside_the_next), case("one length", 5), ordered=True)
    with pytest.raises(InvalidArgumentError, match=r"one number for each episode, \(3,\), or for each token, \(3,"):
        tried(advantages=lambda record: torch.zeros(5))
    with pytest.raises(InvalidArgumentError, match=r"the loss of mine must be a tensor of one number, got a tensor of"):
        tried(advantages=None, loss=lambda record: record.logprobs)
    with pytest.raises(UnknownNameError, match="Did you mean 'several turns'"):
        case("severl turns")
    with pytest.raises(InvalidArgumentError, match="group_size must be at least 2, got 1"):
        case("excluded", 1)
    assert set(names()) == {one.name for one in every_case()}


def test_the_command_tries_a_function_and_its_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rlvr: Command
) -> None:
    (tmp_path / "own_estimator.py").write_text(
        "def centred(record):\n"
        "    scores = record.numpy().scores\n"
        "    return scores - scores[record.valid.numpy()].mean()\n"
        "number = 3\n"
        "def none(record):\n"
        "    record.scores - record.scores.mean()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    code, output, _ = rlvr("gradient-lab", "--estimator", "own_estimator:centred")
    assert code == 0
    assert "the size biased by the factor (N - 1) / N in batches of N episodes" in output
    program = output[output.index("from agents.experiments.court") :]
    exec(program, {})
    assert "one length, groups of 2: factor 0.5" in capsys.readouterr().out
    for arguments, message in {
        "--estimator own_estimator:number": "is no estimator: expected an agents.experiments.court.Estimator",
        "--estimator own_estimator:none": "none must return a loss, a tensor of one number, or advantages, a tensor or",
        "--court": "the court tries one estimator: name it with --estimator",
    }.items():
        code, _, error = rlvr("gradient-lab", *arguments.split())
        assert code == 2
        assert message in " ".join(error.split())
