"""OpenEnv's own client plays episodes of a served environment."""

from __future__ import annotations

import warnings

import pytest

from agents.adapters.episodes import streams_of
from agents.serving.env_app import create_env_app
from rlvr_envs.tasks import GuessNumber
from tests.serving.service import running

with warnings.catch_warnings():  # what the package warns of is its own
    warnings.simplefilter("ignore")
    from openenv.core.generic_client import GenericEnvClient


def test_episodes_of_two_clients() -> None:
    games = GuessNumber("train")
    app = create_env_app(streams_of("GuessNumber", None, None, {}), "GuessNumber")
    with running(app) as served, GenericEnvClient(base_url=f"http://127.0.0.1:{served.port}").sync() as client:
        with GenericEnvClient(base_url=f"http://127.0.0.1:{served.port}").sync() as other:
            for index in (0, 1):
                begun = client.reset(problem=index)
                other.reset(problem=index)
                assert begun.observation["problem"] == index
                turns = games.gold_turns(games[index])
                results = [client.step({"text": guess}) for guess in turns]
                assert [result.done for result in results] == [False] * (len(turns) - 1) + [True]
                assert (sum(result.reward for result in results), client.state()["step_count"]) == (1.0, len(turns))
                assert other.step({"text": "0"}).observation["messages"][0]["content"].strip() == "higher"
        with pytest.raises(RuntimeError, match="reset first"):
            client.step({"text": "1"})
