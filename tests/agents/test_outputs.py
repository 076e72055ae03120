"""Where results go is found out first, and what is there stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.runs.files.outputs import check_folder, check_new_file, check_new_folder, free_folder, whole_folder
from tests.commands import Command
from verifiers import InvalidArgumentError


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A path where nothing can be, also not by a superuser: below a file."""
    (tmp_path / "file").write_text("mine")
    return tmp_path / "file" / "folder"


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    check_new_folder(tmp_path / "c")
    check_new_file(tmp_path / "d" / "report.json", overwrite=False)
    check_folder(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_or_is_there_is_named_and_stays(blocked: Path) -> None:
    file, folder = blocked.parent, blocked.parent.parent
    for check in (check_folder, check_new_folder):
        with pytest.raises(InvalidArgumentError, match=r"can't write to the folder .*file/folder: Not a directory"):
            check(blocked)
        with pytest.raises(InvalidArgumentError, match=r"can't write to the folder .*file: it is not a folder"):
            check(file)
    with pytest.raises(InvalidArgumentError, match="can't write to the folder /proc/1: "):
        check_folder(Path("/proc/1"))
    with pytest.raises(InvalidArgumentError, match="is a folder: expected the path of a file"):
        check_new_file(folder, overwrite=True)
    with pytest.raises(InvalidArgumentError, match="is not empty: choose another folder"):
        check_new_folder(folder)
    with pytest.raises(InvalidArgumentError, match=r"exists already: choose another path, or .*--overwrite"):
        check_new_file(file, overwrite=False)
    check_new_file(file, overwrite=True)
    assert file.read_text() == "mine"


def test_the_next_free_folder(tmp_path: Path) -> None:
    assert free_folder(tmp_path / "new", "a") == tmp_path / "new" / "a-1"
    (tmp_path / "a-1").mkdir()
    (tmp_path / "a-2").symlink_to("nowhere")
    assert free_folder(tmp_path, "a").name == "a-3"


def test_a_folder_appears_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def fill(folder: Path, *, fail: bool) -> None:
        with whole_folder(folder) as partial:
            (partial / "a").touch()
            if fail:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "x", fail=True)
    assert not list(tmp_path.iterdir())
    (tmp_path / "x").mkdir()
    fill(tmp_path / "x", fail=False)
    with pytest.raises(OSError, match="not empty"):
        fill(tmp_path / "x", fail=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["x", "a"]


def test_an_audits_file_is_replaced_only_when_that_is_asked_for(tmp_path: Path, rlvr: Command) -> None:
    path = tmp_path / "report.json"
    path.write_text("mine")
    arguments = ("audit-verifier", "numeric", "--dataset", "Addition", "--limit", "2", "--json", str(path))
    _, _, errors = rlvr(*arguments)
    assert "exists already" in errors
    assert path.read_text() == "mine"
    rlvr(*arguments, "--overwrite")
    assert path.read_text().startswith("{\n")
