"""The hub path, with `datasets.load_dataset` pointed at local rows: no network."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import datasets  # type: ignore[import-untyped]  # ships no types
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest

from rlvr_envs import data, tasks
from rlvr_envs.data import Row, Source, hub
from tests.benchmark_rows import EVERY, GSM8K
from verifiers import DataError, InvalidArgumentError, MissingDataError


class Hub:
    """Stands in for `datasets.load_dataset`: records its calls and gives a real `datasets.Dataset` of the rows."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None, str]] = []
        self.revisions: list[str] = []
        self.rows: list[dict[str, object]] = []
        self.failure: Exception | None = None

    def load_dataset(self, path: str, name: str | None = None, *, split: str, **options: str) -> object:
        self.calls.append((path, name or options.get("data_dir"), split))
        self.revisions += [options["revision"]] if "revision" in options else []
        if self.failure is not None:
            raise self.failure
        return datasets.Dataset.from_list(self.rows)


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    fake = Hub()
    monkeypatch.setattr(datasets, "load_dataset", fake.load_dataset)
    monkeypatch.setattr("rlvr_envs.data.hub.ask_once", lambda name, kind: None)
    return fake


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_a_benchmark_comes_from_the_hub_where_no_folder_is_named(fake_hub: Hub, tmp_path: Path, source: Source) -> None:
    case = EVERY[source.name]
    fake_hub.rows = [case.row]
    split = "test" if "test" in source.splits else "train"
    loaded = source.load(split)
    assert fake_hub.calls[0] == case.call
    assert len(fake_hub.calls) == len(source.hub_parts.get(split, [()]))
    path = tmp_path / source.name / f"{split}.jsonl"
    path.parent.mkdir()
    path.write_text(f"{json.dumps(case.row)}\n" * len(fake_hub.calls))
    local = source.load(split, data_dir=tmp_path)
    assert list(loaded) == list(local)
    assert loaded.fingerprint == local.fingerprint


def test_the_hub_is_not_asked_where_a_folder_is_named(
    fake_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MissingDataError):
        tasks.load("gsm8k", "test", data_dir=tmp_path)
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path))
    with pytest.raises(MissingDataError):
        tasks.load("gsm8k", "test")
    assert fake_hub.calls == []


def test_a_failed_download_says_both_ways_and_can_be_tried_again(fake_hub: Hub) -> None:
    fake_hub.failure = ConnectionError("no route to host")
    with pytest.raises(MissingDataError) as caught:
        tasks.load("gsm8k", "train")
    assert str(caught.value) == (
        "openai/gsm8k (config main), split 'train', could not be downloaded from the hub: ConnectionError: no route to host. "
        "Where the hub can be reached, pip install 'rlvr-envs[hub]' is all it needs. Without the hub, put the rows at "
        "$RLVR_DATA_DIR/gsm8k/train.jsonl (or .parquet) and set RLVR_DATA_DIR, or pass that folder as data_dir="
    )
    assert caught.value.__cause__ is fake_hub.failure
    fake_hub.failure, fake_hub.rows = None, [GSM8K]
    assert len(tasks.load("gsm8k", "train")) == 1


def test_without_the_package_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDataError) as caught:
        tasks.load("humaneval", "test")
    assert str(caught.value).startswith(
        "openai/openai_humaneval, split 'test', must be downloaded from the hub, which needs the package 'datasets': "
        "pip install 'rlvr-envs[hub]'. Without the hub, put the rows at $RLVR_DATA_DIR/humaneval/test.jsonl "
    )


def test_an_empty_split(fake_hub: Hub) -> None:
    with pytest.raises(DataError, match=r"^openai/gsm8k \(config main\), split 'test': the split holds no rows$"):
        tasks.load("gsm8k", "test")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.usefixtures("cache")
def test_the_real_load_dataset_names_the_splits_there_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("sums")
    (folder / "train.jsonl").write_text(json.dumps(GSM8K))
    with pytest.raises(MissingDataError, match=r'Unknown split "test"\. Should be one of \[.train.\]') as caught:
        hub.read_rows(str(folder), None, "test", otherwise="Try a file.")
    assert str(caught.value).endswith("Try a file.")


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("Dataset scripts are no longer supported, but found sums.py"),
        ValueError("Please pass the argument `trust_remote_code=True` to allow custom code to be run."),
    ],
)
def test_a_script_names_its_parquet_copy(fake_hub: Hub, failure: Exception) -> None:
    fake_hub.failure = failure
    with pytest.raises(MissingDataError) as caught:
        data.text.load("someone/sums", split="test")
    assert "someone/sums, split 'test': on the hub this data set is a script" in str(caught.value)
    said = (
        "name it as someone/sums@refs/convert/parquet, with the configuration if it has several. Locally, give a .jsonl"
    )
    assert said in str(caught.value)


def test_a_revision_may_follow_the_name(fake_hub: Hub) -> None:
    fake_hub.rows = [{"question": "1 + 1?", "answer": "2"}]
    loaded = data.text.load("someone/sums@v2", split="test", config="small")
    assert len(loaded) == 1
    assert fake_hub.calls == [("someone/sums", "small", "test")]
    assert fake_hub.revisions == ["v2"]


@pytest.fixture
def parquet_copy(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the hub's branch of Parquet copies, which the real `datasets` reads in place of any data set's."""
    folder = tmp_path_factory.mktemp("copy")
    for config, shards in {"all": ("0000", "0001"), "easy": ("0000",)}.items():
        for shard in shards:
            path = folder / config / "test" / f"{shard}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"question": [f"{config} {shard}"], "answer": ["2"]}), path)
    load, build = datasets.load_dataset, datasets.load_dataset_builder
    monkeypatch.setattr(datasets, "load_dataset", lambda name, revision, **options: load(str(folder), **options))
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda name, revision: build(str(folder)))
    monkeypatch.setattr("rlvr_envs.data.hub.ask_once", lambda name, kind: None)
    return folder


@pytest.mark.usefixtures("cache")
def test_configurations_of_the_parquet_copies_are_never_joined(parquet_copy: Path) -> None:
    def load() -> list[Row]:
        return hub.read_rows("someone/sums@refs/convert/parquet", None, "test", otherwise="")

    with pytest.raises(InvalidArgumentError, match=r"parquet holds several configurations: all, easy\. Name one with"):
        load()
    shutil.rmtree(parquet_copy / "all")
    assert [row.values["question"] for row in load()] == ["easy 0000"]
