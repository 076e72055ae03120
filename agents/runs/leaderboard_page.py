"""A leaderboard as one file of HTML, without scripts and without resources from elsewhere, and the ranks that it shows.

All names, prompts and completions are shown as text: nothing in them acts as mark-up.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.runs.at_k import problem_pass_at
from agents.runs.charts import Line, chart, shown
from agents.runs.decisions import PairDecision
from agents.runs.files.json_files import as_text
from agents.runs.leaderboard import COSTS, Leaderboard, LeaderboardCell
from agents.runs.reading import RecordedRun, paired_clusters, paired_scores
from verifiers import DataError, statistics
from verifiers.statistics import score_interval

_LONGEST = 1500
"""Maximum number of characters of a prompt or completion that are shown."""
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;margin:.8em 0}th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}
th:nth-child(2),td:nth-child(2),.left td,.left th{text-align:left}th{border-bottom:2px solid #888}
td:nth-child(3){white-space:nowrap}
svg{max-width:560px;display:block;margin:.8em 0;font-size:11px}.axis,.line{fill:none;stroke-width:1.5}.axis{stroke:#888}
.bar{display:block;height:5px;background:#e4e4e4;min-width:90px}.bar i{display:block;height:5px;background:#1b6ca8}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f5f5f5;padding:.6em}small{color:#555}
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>
<body>{body}</body></html>
"""


def leaderboard_page(board: Leaderboard) -> str:
    """The HTML page of a leaderboard: ranks, costs and scores, pass@k, each environment, and the settings of the samples."""
    parts = [
        f"<h1>{shown(board.title)}</h1>",
        _overall(board),
        *(_environment(board, name) for name in board.environments),
    ]
    parts.append(_determined(board))
    title = html.escape(board.title.encode("utf-8", "replace").decode())
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(parts))


def _overall(board: Leaderboard) -> str:
    ranking = board.ranking()
    names = [name for name, _, _ in ranking]
    ranges = rank_ranges(names, better) if (better := _better(board, board.environments)) is not None else None
    rows = [
        [_rank(ranges, name), shown(name), f"{mean:.3f}{_bar(mean)}", *map(_score, cells), *board.cost_texts(cells)]
        for name, mean, cells in ranking
    ]
    header = ["rank", "model", "mean", *map(shown, board.environments), *board.costs]
    undecided = "" if ranges is not None else " Ranks over all environments are not tested: see each environment."
    note = (
        "A rank is a range where a comparison by problem leaves it open: a model stands below all that are shown to be better, "
        f"and above all that are shown to be worse.{undecided} Scores have 95 % intervals; ≈ is approximate."
    )
    charts = [
        chart([Line(name, [(COSTS[cost](cells) or 0.0, mean)]) for name, mean, cells in ranking], cost, "mean score")
        for cost in board.costs
    ]
    costs = "".join(charts) or "<p>No tokens were counted.</p>"
    return f"{_table(header, rows)}<p><small>{note}</small></p><h2>Cost and score</h2>{costs}"


def _environment(board: Leaderboard, environment: str) -> str:
    cells = [cell for _, _, cells in board.ranking() for cell in cells if cell.environment == environment]
    cells.sort(key=lambda cell: -cell.score)
    better = _better(board, [environment])
    ranges = None if better is None else rank_ranges([cell.name for cell in cells], better)
    rows = [
        [
            _rank(ranges, cell.name),
            shown(cell.name),
            f"{_score(cell)}{_bar(cell.score)}",
            str(cell.problems),
            str(sum(len(run.rows) for run in cell.runs)),
            str(cell.errored),
            str(sum(bool(row["truncated"]) for run in cell.runs for row in run.rows)),
            *board.cost_texts([cell]),
        ]
        for cell in cells
    ]
    header = ["rank", "model", "score", "problems", "samples", "errored", "truncated", *board.costs]
    said = "".join(f"<li>{shown(decision)}</li>" for decision in board.decisions.get(environment, ()))
    decided = (
        f"<p>Problems were drawn until each pair was decided or none were left:</p><ul>{said}</ul>" if said else ""
    )
    curves = chart([_pass_curve(cell) for cell in cells], "k", "pass@k")
    pass_at = f"<h3>pass@k</h3>{curves}" if any(_draws(cell) > 1 for cell in cells) and curves else ""
    return f"<h2>{shown(environment)}</h2>{_table(header, rows)}{decided}{pass_at}{_example(cells)}"


def _better(board: Leaderboard, environments: Sequence[str]) -> list[Better] | None:
    """The pairs of models in which one is shown to be better on these environments; None if no test is valid."""
    chosen = [cell for cell in board.cells if cell.environment in environments]
    if any(len(cell.runs) > 1 for cell in chosen):
        return None  # for agents, the unit is the training seed
    if any(environment in board.decisions for environment in environments):
        return better_by_decisions(board.decisions[environments[0]]) if len(environments) == 1 else None
    runs: dict[str, list[Any]] = {}
    for environment in environments:
        for cell in chosen:
            if cell.environment == environment:
                runs.setdefault(cell.name, []).append(cell.runs[0])
    return better_by_tests(runs)


def _rank(ranges: dict[str, tuple[int, int]] | None, name: str) -> str:
    if ranges is None:
        return "–"
    first, last = ranges[name]
    return str(first) if first == last else f"{first}–{last}"


def _score(cell: LeaderboardCell) -> str:
    about = "≈" if cell.interval.approximate else ""
    return f"{cell.score:.3f} {about}[{cell.interval.low:.3f}, {cell.interval.high:.3f}]"


def _bar(score: float) -> str:
    return f'<span class="bar"><i style="width:{100 * min(1.0, max(0.0, score)):.0f}%"></i></span>'


def _draws(cell: LeaderboardCell) -> int:
    """The smallest number of samples of any problem."""
    return min((sum(row["problem"] == first for row in cell.runs[0].rows) for first in _firsts(cell)), default=0)


def _firsts(cell: LeaderboardCell) -> list[int]:
    return list(dict.fromkeys(row["problem"] for row in cell.runs[0].rows))


def _pass_curve(cell: LeaderboardCell) -> Line:
    """pass@k of a single run at powers of two, with intervals over problems."""
    samples, most = cell.runs[0].samples(), _draws(cell)
    points, ranges = [], []
    for k in sorted({2**power for power in range(most.bit_length())} | {most}) if most else ():
        values = list(problem_pass_at(samples, k).values())
        if values:
            interval = score_interval(values)
            points.append((float(k), float(np.mean(values))))
            ranges.append((interval.low, interval.high))
    return Line(cell.name, points, ranges)


def _example(cells: Sequence[LeaderboardCell]) -> str:
    """Each model's completion of the first problem that all models have, in a section that unfolds."""
    by_model = [(cell.name, {row["problem_id"]: row for row in reversed(cell.runs[0].rows)}) for cell in cells]
    asked_ids = (row["problem_id"] for row in cells[0].runs[0].rows)
    common = next((name for name in asked_ids if all(name in rows for _, rows in by_model)), None)
    if common is None:
        return ""
    asked = by_model[0][1][common]
    parts = [("prompt", asked["prompt"]), ("reference", asked["reference"])]
    said = [
        (f"{name}: {rows[common]['outcome'] or 'no verdict'}", rows[common]["completion"]) for name, rows in by_model
    ]
    shown_parts = "".join(f"<p>{shown(title)}</p><pre>{_long(text)}</pre>" for title, text in (*parts, *said))
    return f"<details><summary>An example: {shown(common)}</summary>{shown_parts}</details>"


def _long(value: object) -> str:
    text = as_text(value)
    return "<br>".join(map(shown, text[:_LONGEST].split("\n"))) + ("…" if len(text) > _LONGEST else "")


def _determined(board: Leaderboard) -> str:
    """The settings and versions of each evaluation, in sections that unfold."""
    parts = []
    for cell in board.cells:
        for run in cell.runs:
            facts = {
                **run.settings,
                **{name: run.manifest.get(name) for name in ("versions", "hardware", "started", "finished")},
            }
            rows = [[shown(name), shown(as_text(value))] for name, value in facts.items()]
            title = f"{shown(cell.environment)}, {shown(cell.name)}"
            parts.append(f"<details><summary>{title}</summary>{_table(['setting', 'value'], rows, 'left')}</details>")
    return f"<h2>What determined the samples</h2>{''.join(parts)}"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """An HTML table from cells that are already HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


Better = tuple[str, str]
"""A pair of models: the better one, then the worse one."""


def rank_ranges(names: Sequence[str], better: Iterable[Better]) -> dict[str, tuple[int, int]]:
    """The range of ranks that each model may have: below all better models, and above all worse models.

    Args:
        names: The models.
        better: The decided pairs; in any other pair, either model may be ahead.
    """
    decided = set(better)
    ranges = {}
    for name in names:
        above, below = (sum(pair[side] == name for pair in decided) for side in (1, 0))
        ranges[name] = (1 + above, len(names) - below)
    return ranges


def better_by_decisions(decisions: Iterable[PairDecision]) -> list[Better]:
    """The better and the worse model of each decided pair, from comparisons that stopped once they were decided."""
    return [
        (decision.second, decision.first) if decision.decision == "better" else (decision.first, decision.second)
        for decision in decisions
        if decision.decision in ("better", "worse")
    ]


def better_by_tests(runs: Mapping[str, Sequence[RecordedRun]]) -> list[Better]:
    """The better and the worse model of each decided pair, by the mean over some environments with equal weights.

    Differences are paired by problem, clusters stay together, and p-values are adjusted by Holm's method for all pairs: a pair
    is decided if the interval excludes 0 and the adjusted p-value is below 0.05. Problems are treated as drawn from all
    environments together, so differences between environments make the test more conservative, not less.

    Args:
        runs: The runs of each model, one for each environment, in the same order.
    """
    compared = []
    for one, two in itertools.combinations(runs, 2):
        parts = list(map(_shared, zip(runs[one], runs[two], strict=True)))
        if not all(of_part[1] for of_part in parts):  # on some environment, no problem has scores of both models
            continue
        size = sum(len(clusters) for _, clusters in parts) / len(parts)
        a, b = (np.concatenate([scores[side] * size / len(clusters) for scores, clusters in parts]) for side in (0, 1))
        together = [(number, cluster) for number, (_, clusters) in enumerate(parts) for cluster in clusters]
        compared.append(((one, two), statistics.compare(a, b, together)))
    adjusted = statistics.holm([result.p_value for _, result in compared])
    return [
        (two, one) if result.verdict == "better" else (one, two)
        for ((one, two), result), p_value in zip(compared, adjusted, strict=True)
        if result.verdict != "no difference shown" and p_value < 1 - statistics.LEVEL
    ]


def _shared(runs: tuple[RecordedRun, RecordedRun]) -> tuple[NDArray[np.float64], list[Hashable]]:
    """The scores f64[2 p] of the problems that two runs have in common, and their clusters."""
    try:
        problems, scores = paired_scores(runs)
    except DataError:
        return np.empty((2, 0)), []
    return scores, paired_clusters(runs, problems)
