from __future__ import annotations

import ast
import itertools
import shutil

import pytest

from tests import needs
from tools import flaky, mutants
from tools.mutants import KILLED, SURVIVED, TIMED_OUT, Mutant, MutationSubject

CODE = '''\
"""Words, 1 < 2."""
LIMIT = 3


def bounded(value: int, least: int = 0) -> int:
    """Words."""
    assert value != 7, "words"
    if value < least and not LIMIT:
        raise ValueError(f"{value - 1} is too small")
    for each in range(value):
        if each:
            continue
    return max(value, LIMIT) + 1


def other(flag):
    return flag is None or flag == "é" or flag > 2.5
'''


def list_changes(text: str, functions: tuple[str, ...] = ()) -> list[tuple[int, str, str]]:
    return [
        (mutant.line, text[mutant.start : mutant.stop], mutant.replacement)
        for mutant in mutants.generate_mutants("module.py", text, functions)
    ]


def test_every_operator_constant_and_condition_is_changed_but_no_words() -> None:
    assert sorted(list_changes(CODE)) == sorted([
        (2, "3", "4"), (2, "3", "2"), (5, "0", "1"), (8, "<", "<="), (8, "<", ">"), (8, "and", "or"),
        (8, "not ", ""), (11, "", "not "), (12, "continue", "break"), (13, "max", "min"), (13, "+", "-"),
        (13, "1", "2"), (17, "is", "is not"), (17, "or", "and"), (17, "or", "and"), (17, "==", "!="),
        (17, ">", ">="), (17, ">", "<"), (17, "2.5", "20.0"),
    ])  # fmt: skip


def test_only_the_functions_that_are_asked_for_are_changed() -> None:
    assert {line for line, *_ in list_changes(CODE, ("other",))} == {17}
    declared = "PATTERN = Pattern(tolerance=lambda inputs: 0.5, cost=lambda inputs: 4)\n"
    assert list_changes(declared, ("_tolerance",)) == [(1, "0.5", "4.0")]


def test_what_only_asserts_is_not_changed() -> None:
    assert list_changes("pairs = zip(left, right, strict=True)\nassert pairs == 1\n") == []


def test_the_length_that_is_left_is_not_changed() -> None:
    assert list_changes("pairs = values.reshape(-1, 2)\n") == [(1, "2", "1"), (1, "2", "3")]


def test_every_mutant_is_python_and_another_text() -> None:
    for mutant in mutants.generate_mutants("module.py", CODE):
        changed = mutant.apply(CODE)
        assert changed != CODE
        ast.parse(changed)
        assert any(line.startswith("+") for line in mutant.diff(CODE))


def test_a_seed_chooses_the_same_mutants_each_time(tmp_path) -> None:
    (tmp_path / "module.py").write_text(CODE, "utf-8")
    subject = MutationSubject("some", ("*.py",), (), 6)
    first = mutants.sample_mutants(subject, tmp_path, 1)
    assert len(first) == 6
    assert mutants.sample_mutants(subject, tmp_path, 1) == first
    assert mutants.sample_mutants(subject, tmp_path, 2) != first
    assert len(mutants.sample_mutants(subject, tmp_path, 1, share=0.5)) == 3


def test_modules_and_tests_that_subjects_name_are_there() -> None:
    for subject in mutants.SUBJECTS:
        assert mutants.sample_mutants(subject, mutants.ROOT, 1), subject.name
        for pattern in (*subject.modules, *subject.tests):
            assert list(mutants.ROOT.glob(pattern)), pattern
    assert sum(subject.mutant_count for subject in mutants.SUBJECTS) >= 200


def test_what_ended_how_says_what_became_of_a_mutant() -> None:
    assert [mutants.classify_exit_code(code) for code in (0, 1, 2, -11, -14)] == [
        SURVIVED,
        KILLED,
        KILLED,
        KILLED,
        TIMED_OUT,
    ]
    for code in (3, 4, 5):
        with pytest.raises(RuntimeError, match=f"pytest ended with {code}"):
            mutants.classify_exit_code(code)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@needs.posix
def test_a_mutant_dies_where_a_test_sees_it(tmp_path) -> None:
    original, tree = tmp_path / "original", tmp_path / "0"
    original.mkdir()
    (original / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\nmarkers = ['alone']\n")
    (original / "double.py").write_text("def double(n):\n    return 2 * n\n\n\ndef unseen(n):\n    return n + 1\n")
    (original / "test_double.py").write_text(
        "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
    )
    shutil.copytree(original, tree)
    subject = MutationSubject("doubling", ("double.py",), ("test_*.py",), 9)
    ended = list(mutants.run_mutants(subject, mutants.sample_mutants(subject, original, 1), original, [tree]))
    verdicts = {(mutant.line, mutant.replacement): verdict for mutant, verdict in ended}
    assert verdicts == {
        (2, "3"): KILLED, (2, "1"): KILLED, (2, "+"): KILLED, (6, "-"): SURVIVED, (6, "2"): SURVIVED,
    }  # fmt: skip
    assert (tree / "double.py").read_text() == (original / "double.py").read_text()
    written = mutants.format_table([("doubling", *each) for each in ended], original)
    assert "| doubling | double.py | 5 | 3 |" in written
    assert "3 of 5 killed, 0 of them by the time limit; 0 are explained" in written
    assert "60.0% of the others" in written
    assert "    -    return n + 1\n    +    return n - 1" in written


@needs.posix
def test_the_mutants_of_a_line_are_made_where_they_are_asked_for(tmp_path, monkeypatch, capsys) -> None:
    module = "gpu/run/verification.py"
    text = (mutants.ROOT / module).read_text("utf-8")
    every = mutants.generate_mutants(module, text)
    line = every[0].line
    seen = []

    def run(subject, made, original, trees):
        seen.extend(made)
        return [(mutant, KILLED) for mutant in made]

    monkeypatch.setattr(mutants, "run_mutants", run)
    monkeypatch.setattr(mutants, "_LIBRARIES", ())
    assert mutants.main(["--only", f"{module}:{line}", "--jobs", "1", "--out", str(tmp_path / "table")]) == 0
    assert seen == [mutant for mutant in every if mutant.line == line]
    for wrong in ("gpu/run/verification.py", "gpu/run/nothing.py:3", "gpu/run/verification.py:x"):
        with pytest.raises(SystemExit, match="2"):
            mutants.main(["--only", wrong])
        assert "is not a FILE:LINE of this tree" in capsys.readouterr().err


def test_what_is_explained_is_known_by_its_lines() -> None:
    known = mutants.parse_explained_mutants(
        "Words.\n\n```diff\nmodule.py\n-    return n + 1\n+    return n - 1\n```\nWhy.\n"
    )
    text = "def f(n):\n    return n + 1\n"
    found = mutants.generate_mutants("module.py", text)
    assert [mutant.replacement for mutant in found if mutants.is_explained(mutant, text, known)] == ["-"]
    assert mutants.parse_explained_mutants((mutants.ROOT / mutants.EXPLANATIONS_PAGE).read_text("utf-8"))


def test_what_is_explained_is_a_mutant_of_the_code_as_it_is() -> None:
    known = mutants.parse_explained_mutants((mutants.ROOT / mutants.EXPLANATIONS_PAGE).read_text("utf-8"))
    made = set()
    for mutant in itertools.chain(
        *(mutants.list_subject_mutants(subject, mutants.ROOT) for subject in mutants.SUBJECTS)
    ):
        text = (mutants.ROOT / mutant.module).read_text("utf-8")
        line = text.splitlines()[mutant.line - 1].strip()
        if any(line == before for _, before, _ in known):
            made.add((mutant.module, *(each[1:].strip() for each in mutant.diff(text))))
    assert known - made == set()


def test_a_mutant_replaces_just_its_characters() -> None:
    assert Mutant("m", 1, 4, 5, "-").apply("é + ü + 1") == "é + - + 1"


def test_failures_are_read_from_the_report(tmp_path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a" name="one"/>'
        '<testcase classname="tests.a" name="two"><failure/></testcase>'
        '<testcase classname="tests.b" name="three"><error/></testcase></testsuite></testsuites>'
    )
    assert flaky.read_failed_tests(report) == ["tests.a::two", "tests.b::three"]
