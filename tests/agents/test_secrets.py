"""Secrets reach who needs them, and no file."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agents.commands.common import named_arguments, redacted_pairs
from agents.commands.main import main
from agents.runs.files.json_files import to_json
from verifiers import InvalidArgumentError, Problem, Secret, Verdict, redacted, secret, verify

SECRET = "sk-12345"


@dataclass(frozen=True)
class Judge:
    """A verifier that asks a server, and gives its key away where it is not the right one."""

    api_key: str
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        assert self.api_key == SECRET
        assert not self.headers or self.headers["X-Auth"] == SECRET
        return verify("exact", completion, str(problem.reference))


def train(folder: Path, verifier: str, *more: str) -> Any:
    options = ["--env", "Addition", "--steps", "1", "--run-folder", str(folder), "--num-envs", "2"]
    sizes = ["--problems-per-step", "1", "--group-size", "2", *more]
    own = ["--env-args", "tokenizer=char", "max_new_tokens=3", f"verifier={verifier}"]
    with pytest.raises(SystemExit) as ending:
        main(["train", "grpo", *options, *sizes, *own])
    return ending.value.code


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_key_from_the_environment_reaches_the_verifier_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    verifier = f"('{__name__}:Judge', {{'api_key': 'env:JUDGE_KEY', 'headers': {{'X-Auth': 'env:JUDGE_KEY'}}}})"
    assert train(tmp_path / "run", verifier) == 0
    assert SECRET.encode() not in everything_in(tmp_path)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["environment"]["verifier"][1] == {"api_key": "env:JUDGE_KEY", "headers": {"X-Auth": "env:JUDGE_KEY"}}
    assert train(tmp_path / "run", verifier, "--steps", "2", "--resume") == 0
    monkeypatch.delenv("JUDGE_KEY")
    assert train(tmp_path / "other", verifier) == 2


def test_a_key_on_the_command_line_is_left_out_of_the_records(tmp_path: Path) -> None:
    verifier = f"('{__name__}:Judge', {{'api_key': '{SECRET}'}})"
    assert train(tmp_path / "run", verifier) == 0
    assert SECRET.encode() not in everything_in(tmp_path)
    assert train(tmp_path / "run", verifier, "--steps", "2", "--resume") == 0
    vector = gymnasium.make_vec("rlvr_envs:rlvr/Addition-v0", num_envs=1, tokenizer="char", verifier=Judge(SECRET))
    assert "api_key='<redacted>'" in vector.manifest["verifier"]  # type: ignore[attr-defined]  # of TokenVectorEnv
    assert SECRET not in str(vector.manifest)  # type: ignore[attr-defined]


def test_the_names_of_secrets_and_those_that_only_look_like_them() -> None:
    hidden = re.findall(
        r"\S+",
        "api_key apikey API-KEY openai_api_key token hf_token auth_token password db_password secret client_secret "
        "pwd auth db_pwd Authorization credentials access_key openai_key bearer Cookie",
    )
    shown = re.findall(r"\S+", "eos_token stop_token max_new_tokens tokenizer key keys author secretary tokens")
    settings = dict.fromkeys(hidden, SECRET) | dict.fromkeys(shown, "text")
    safe = redacted({"a": [settings], "api_key": None})
    assert safe == {"a": [dict.fromkeys(hidden, "<redacted>") | dict.fromkeys(shown, "text")], "api_key": None}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("api_key=sk-1", "api_key=<redacted>"),
        ("api_key=env:NAME", None),
        ("tokenizer='char'", None),
        ("stop=('a', 'b')", None),
        ("stop=a:b@c", None),
        ("server=http://host:80/a@b", None),
        ("server=http://me:pw-1@host:80/v1", "server=http://<redacted>@host:80/v1"),
        ("url=https://h/x?n=3&api_key=sk-1&token=t#top", "url=https://h/x?n=3&api_key=<redacted>&token=<redacted>#top"),
        ("verifier=('judge', {'api_key': 'sk-1', 'n': 3})", "verifier=['judge', {'api_key': '<redacted>', 'n': 3}]"),
    ],
)
def test_pairs_of_the_command_line_are_left_as_they_are_but_for_their_secrets(given: str, kept: str | None) -> None:
    assert redacted_pairs((given,)) == [kept or given]


def test_a_secret_is_text_and_shows_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    arguments = named_arguments(["key=env:JUDGE_KEY", "other=env: JUDGE_KEY"], "a verifier")
    assert arguments == {"key": SECRET, "other": "env: JUDGE_KEY"}
    for text in (str([arguments["key"]]), to_json(arguments), to_json(copy.deepcopy(arguments))):
        assert SECRET not in text
        assert "env:JUDGE_KEY" in text
    again = pickle.loads(pickle.dumps(arguments["key"]))
    assert (again, again.source, type(again)) == (SECRET, "env:JUDGE_KEY", Secret)
    with pytest.raises(InvalidArgumentError, match="environment variable NO_SUCH, which is not set: export it first"):
        secret(["env:NO_SUCH"])
