import gymnasium
import pytest

import rlvr_envs  # noqa: F401 - registers the environments
import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, RLVRError, verifier_record

MIXED = """
verifier = "weighted_sum"
weights = {right = 1.0, form = 0.25}

[parts.right]
verifier = "hybrid"
rule = {verifier = "numeric", whole = true}
judge = {verifier = "exact", casefold = true}

[parts.form]
verifier = "format"
pattern = 'x\\d'
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text, name="mine.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return written


def test_a_file_describes_a_composition(write):
    mixed = verifiers.make(write(MIXED))
    verdict = mixed("x7", Problem("p", "", "X7"))
    assert verdict.score == 1.25
    right = verdict.detail["parts"]["right"]
    assert right["detail"]["applied"] == "judge"
    assert right["detail"]["parts"]["rule"]["detail"]["unreadable_reference"] is True
    assert mixed("7", Problem("p", "", "7")).score == 1.0


def test_the_one_liner_reads_a_file_that_changed(write):
    write('verifier = "exact"')
    assert verifiers.verify("mine.toml", "A", "a").outcome is Outcome.INCORRECT
    write('verifier = "exact"\ncasefold = true')
    assert verifiers.verify("mine.toml", "A", "a").outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('verifier = "exact"\nstrip = maybe', r"mine.toml can't be parsed: .*line 2"),
        ("parts = []", r"mine.toml must have the key 'verifier', which names the verifier; got \['parts'\]"),
        ('verifier = "mth"', r"mine.toml: unknown verifier 'mth'.*'math'"),
        (
            'verifier = "numeric"\nwhoel = true',
            r"mine.toml: the verifier 'numeric' got an unexpected keyword argument 'whoel'. Did you mean 'whole'",
        ),
        ('verifier = "gate"\nparts = ["exact", "mine.toml"]', r"mine.toml: part '1': a part can't be a file"),
        ('verifier = "gate"\n[parts.a]\nverifer = "exact"', r"mine.toml: part 'a': .* a table with the key 'verifier'"),
        ('verifier = "gate"\n[[parts]]\nverifier = 3', r"mine.toml: parts.0: the key 'verifier' must be"),
        (
            'verifier = "gate"\n[parts.a]\nverifier = "first"\n[parts.a.parts.b]\nverifier = "numeric"\nrel_tol = -1',
            r"mine.toml: part 'a': part 'b': rel_tol must be",
        ),
        ('verifier = "weighted_sum"\nparts = ["exact", "numeric"]\nweights = [1, -1]', "mine.toml: weights must not"),
        ('verifier = "judge"\nmodel = "m"\nbase_url = "x"\napi_key = "env:NO_SUCH_KEY"', "NO_SUCH_KEY, which is not"),
    ],
)
def test_errors_name_the_key(write, text, message):
    with pytest.raises(RLVRError, match=message):
        verifiers.make(write(text))


def test_json_errors_a_file_that_is_not_there_and_arguments_for_one_that_is(write):
    with pytest.raises(InvalidArgumentError, match="the key 'weights' occurs twice"):
        verifiers.make(write('{"verifier": "gate", "weights": 1, "weights": 2}', "mine.json"))
    with pytest.raises(InvalidArgumentError, match="must hold a table"):
        verifiers.make(write("[1]", "mine.json"))
    with pytest.raises(InvalidArgumentError, match=r"can't read the verifier file none.toml: No such file"):
        verifiers.make("none.toml")
    with pytest.raises(InvalidArgumentError, match=r"arguments \['strip'\] were given for mine.toml: write them into"):
        verifiers.make(write('verifier = "exact"'), strip=False)


def test_records_hold_what_the_file_says_without_secrets(write, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "sesame")
    path = write(
        'verifier = "weighted_sum"\n[parts.a]\nverifier = "exact"\napi_key = "env:JUDGE_KEY"\npassword = "sesame"'
    )
    assert verifier_record(path, {}) == (
        path,
        {
            "verifier": "weighted_sum",
            "parts": {"a": {"verifier": "exact", "api_key": "env:JUDGE_KEY", "password": "<redacted>"}},
        },
    )
    assert verifier_record("numeric", {"whole": True}) == ("numeric", {"whole": True})


@pytest.mark.parametrize("as_pair", [False, True])
def test_an_environment_takes_a_file_and_its_manifest_shows_it(write, as_pair):
    path = write('verifier = "gate"\nparts = ["exact"]')
    env = gymnasium.make("rlvr/Addition-v0", verifier=(path, {}) if as_pair else path)
    assert list(env.unwrapped.manifest["verifier"]) == [path, {"verifier": "gate", "parts": ["exact"]}]
    assert repr(env.unwrapped.streams.rules.verifier).startswith("Gate(")
