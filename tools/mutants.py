"""Change the code by one small mistake at a time and see that a test notices: python -m tools.mutants.

A mutant is one operator, constant, condition or statement changed, in a copy of the tree, against the tests that are
meant to hold that module. The choice is seeded: one seed and one tree give one list.

It is a tool of its own because none of the maintained ones samples and keeps tests beside modules. mutmut 3 changes
neither lambdas nor what is decorated, which is where declarations keep their bounds, and takes every mutant there is,
messages too. cosmic-ray edits in place and starts a new Python for each mutant, and to import the libraries takes
longer than most of the tests here; these are forked from a process that has them. mutatest ended with Python 3.8.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIRED_SHARE = 0.95
"""The part of the mutants that tests have to notice."""

_LIBRARIES = ("numpy.testing", "scipy.ndimage", "scipy.special", "hypothesis.strategies", "pytest", "PyQt6.QtWidgets",
              "PyQt6.QtTest", "clang.cindex", "llvmlite.binding", "greenlet", "PIL.Image")  # fmt: skip
_SLOWDOWN_LIMIT = 5
_MIN_LIMIT_S = 30.0
_BASELINE_LIMIT_S = 600.0


@dataclass(frozen=True)
class MutationSubject:
    """Modules, the tests that hold them, and how many mutants are made of them.

    Parameters
    ----------
    name : str
    modules, tests : tuple of str
        Patterns of paths from the root; tests run in that order, the quick ones first.
    mutant_count : int
        How many, where there are so many.
    functions : tuple of str
        The beginnings of the names of the functions that are changed; all of a module where there are none.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    mutant_count: int
    functions: tuple[str, ...] = ()


SUBJECTS = (
    MutationSubject("verification", ("gpu/run/verification.py",), ("tests/gpu/run/test_verification.py",), 20),
    MutationSubject(
        "tolerances",
        ("gpu/patterns/**/*.py", "gpu/declaration/rounding.py"),
        ("tests/gpu/patterns/test_bounds.py", "tests/gpu/patterns/test_wrong_results.py"),
        50,
        ("_tolerance", "_gamma", "gamma", "_is_whole", "_in_any_order", "_comparable"),
    ),
    MutationSubject(
        "intervals", ("gpu/simulator/compiled/intervals.py",), ("tests/gpu/simulator/compiled/test_intervals.py",), 40
    ),
    MutationSubject(
        "counters",
        ("gpu/simulator/counting/*.py",),
        ("tests/gpu/simulator/counting/test_counters.py", "tests/gpu/run/test_atomics.py"),
        50,
    ),
    MutationSubject(
        "checkers",
        ("gpu/simulator/checkers/*.py",),
        (
            "tests/gpu/simulator/checkers/test_findings.py",
            "tests/gpu/simulator/checkers/test_uninitialized_reads.py",
            "tests/gpu/simulator/checkers/test_races.py",
            "tests/gpu/simulator/checkers/test_launches.py",
            "tests/gpu/simulator/checkers/test_races_reference.py",
            "tests/gpu/simulator/checkers/test_*.py",
            "tests/gpu/kernel/test_suspicions.py",
            "tests/gpu/simulator/checkers/test_ladders.py",
        ),
        50,
    ),
    MutationSubject(
        "trace",
        ("gpu/simulator/trace/*.py",),
        (
            "tests/gpu/simulator/trace/test_*.py",
            "tests/gpu/simulator/executor/test_child_launches.py",
            "tests/gpu/stepping/**/test_[dlrtw]*.py",
        ),
        50,
    ),
)


@dataclass(frozen=True)
class Mutant:
    """A module's text with characters `start` to `stop` replaced."""

    module: str
    line: int
    start: int
    stop: int
    replacement: str

    def apply(self, text: str) -> str:
        """Return the module's text with the mistake in it."""
        return text[: self.start] + self.replacement + text[self.stop :]

    def diff(self, text: str) -> list[str]:
        """Return the lines that differ, as a diff has them."""
        before, after = text.splitlines(), self.apply(text).splitlines()
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


# --- mistakes

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"), ast.LtE: ("<", ">="), ast.Gt: (">=", "<"), ast.GtE: (">", "<="), ast.Eq: ("!=",),
    ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&",
}  # fmt: skip
_SYMBOLS = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "LShift": "<<",
            "RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^"}  # fmt: skip
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
              "floor": "ceil", "ceil": "floor", "argmax": "argmin", "zeros": "ones", "ones": "zeros"}  # fmt: skip


class _MutantCollector(ast.NodeVisitor):
    """Collects what can be changed; not words for people, types, or what only asserts."""

    def __init__(self, module: str, text: str, functions: tuple[str, ...]) -> None:
        self.mutants: list[Mutant] = []
        self._module, self._functions = module, functions
        self._is_in_scope = not functions
        self._bytes = text.encode()
        self._line_starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def _character_offset(self, line: int, column: int) -> int:
        return len(self._bytes[: self._line_starts[line - 1] + column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._character_offset(node.lineno, node.col_offset), self._character_offset(
            node.end_lineno, node.end_col_offset
        )

    def _text(self, start: int, stop: int) -> str:
        return self._bytes.decode()[start:stop]

    def _add_replacement(self, line: int, start: int, stop: int, replacement: str) -> None:
        if self._is_in_scope:
            self.mutants.append(Mutant(self._module, line, start, stop, replacement))

    def _add_operator_swap(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Change the operator between two operands."""
        start, stop = self._span(left)[1], self._span(right)[0]
        place = self._text(start, stop).find(old)
        if place >= 0:
            line = left.end_lineno or left.lineno
            self._add_replacement(line, start + place, start + place + len(old), new)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before, self._is_in_scope = self._is_in_scope, self._is_in_scope or node.name.startswith(self._functions)
        for each in (node.args, *node.body):
            self.visit(each)
        self._is_in_scope = before

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit_Call(self, node: ast.Call) -> None:
        is_shape = isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
        self.visit(node.func)
        for each in (*node.args, *node.keywords):
            # NumPy takes any negative length for the one that is left.
            if not (is_shape and isinstance(each, ast.UnaryOp)):
                self.visit(each)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == "strict":
            return  # an assertion
        # What a declaration gives beside its functions, such as `tolerance=lambda ...`.
        before = self._is_in_scope
        self._is_in_scope = before or (node.arg is not None and f"_{node.arg}" in self._functions)
        self.generic_visit(node)
        self._is_in_scope = before

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            old = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=", "Is": "is",
                   "IsNot": "is not", "In": "in", "NotIn": "not in"}[type(operator).__name__]  # fmt: skip
            for new in _COMPARISONS[type(operator)]:
                self._add_operator_swap(left, right, old, new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(isinstance(each, ast.JoinedStr | ast.Constant) and isinstance(getattr(each, "value", ""), str)
                    for each in (node.left, node.right))  # fmt: skip
        if type(node.op) in _OPERATIONS and not texts:
            self._add_operator_swap(node.left, node.right, _SYMBOLS[type(node.op).__name__], _OPERATIONS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._add_operator_swap(left, right, old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, _ = self._span(node)
        self._add_replacement(node.lineno, start, self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _OPERATIONS:
            symbol = _SYMBOLS[type(node.op).__name__]
            self._add_operator_swap(node.target, node.value, f"{symbol}=", f"{_OPERATIONS[type(node.op)]}=")
        self._add_replacement(node.lineno, *self._span(node), "pass")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add_replacement(node.lineno, *self._span(node), "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._add_negation(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._add_negation(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._add_negation(node.test)
        self.generic_visit(node)

    def _add_negation(self, test: ast.expr) -> None:
        # Comparisons and `not` are turned round by themselves.
        if not isinstance(test, ast.Compare | ast.UnaryOp | ast.BoolOp | ast.NamedExpr):
            start, _ = self._span(test)
            self._add_replacement(test.lineno, start, start, "not ")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add_replacement(node.lineno, *self._span(node), "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._add_replacement(node.lineno, *self._span(node), "continue")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _OPPOSITES:
            self._add_replacement(node.lineno, *self._span(node), _OPPOSITES[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in _OPPOSITES:
            _, stop = self._span(node)
            self._add_replacement(node.lineno, stop - len(node.attr), stop, _OPPOSITES[node.attr])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        span = self._span(node)
        if isinstance(node.value, bool):
            self._add_replacement(node.lineno, *span, str(not node.value))
        elif isinstance(node.value, int):
            self._add_replacement(node.lineno, *span, str(node.value + 1))
            if node.value > 1:
                self._add_replacement(node.lineno, *span, str(node.value - 1))
        elif isinstance(node.value, float):
            self._add_replacement(node.lineno, *span, repr(node.value * 8 if node.value else 1e-3))


def generate_mutants(module: str, text: str, functions: tuple[str, ...] = ()) -> list[Mutant]:
    """Return every mutant of a module's text that is Python, in the order of the text."""
    mistakes = _MutantCollector(module, text, functions)
    mistakes.visit(ast.parse(text))
    return sorted(set(mistakes.mutants), key=lambda mutant: (mutant.start, mutant.stop, mutant.replacement))


def list_subject_mutants(subject: MutationSubject, root: Path) -> list[Mutant]:
    """Return all mutants of a subject."""
    paths = sorted({path for pattern in subject.modules for path in root.glob(pattern)})
    return [
        mutant
        for path in paths
        for mutant in generate_mutants(path.relative_to(root).as_posix(), path.read_text("utf-8"), subject.functions)
    ]


def sample_mutants(subject: MutationSubject, root: Path, seed: int, share: float = 1.0) -> list[Mutant]:
    """Return the mutants of a subject that a seed chooses."""
    of = list_subject_mutants(subject, root)
    some = random.Random(f"{seed} {subject.name}").sample(of, min(len(of), round(subject.mutant_count * share)))
    return sorted(some, key=lambda mutant: (mutant.module, mutant.start, mutant.replacement))


# --- running

KILLED, SURVIVED, TIMED_OUT, EQUIVALENT = "killed", "survived", "too slow", "equal"
EXPLANATIONS_PAGE = Path("docs/mutants.md")
_EXPLANATION = re.compile(r"^```diff\n(\S+)\n-(.*)\n\+(.*)\n```$", re.MULTILINE)


@dataclass
class _Job:
    """A mutant whose tests are running, in the copy of that number."""

    mutant: Mutant
    process: int
    slot: int
    deadline: float


def copy_tree(target: Path) -> None:
    """Copy what belongs to the project, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def _fork_tests(tree: Path, tests: Sequence[str]) -> int:
    """Start the tests of a tree in a process of their own group; return its number."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    quiet = os.open(tree / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    os.chdir(tree)
    sys.path[0] = str(tree)
    packages = ("gpu", "gui", "tests", "tools")
    # Held until the process ends: finalizers of the parent's modules must not run among the tests.
    _parent_modules = [sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in packages]
    import pytest

    options = (
        "-x",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-m",
        "not alone",
        "-c",
        "pyproject.toml",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    )
    code = 3
    try:
        code = int(pytest.main([*options, "--rootdir", str(tree), *tests]))
    except BaseException:  # whatever it is, the other side of the fork must not go on here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _poll_tests(process: int, deadline: float) -> int | None:
    """Return how tests ended, None while they run; past the deadline they are ended."""
    done, status = os.waitpid(process, os.WNOHANG)
    if done:
        return os.waitstatus_to_exitcode(status)
    if time.monotonic() > deadline:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return -int(signal.SIGALRM)
    return None


def classify_exit_code(code: int) -> str:
    """Return what tests that ended with a code say of a mutant; an error of pytest's own is nobody's success."""
    if code in (0, 1, 2):
        return SURVIVED if code == 0 else KILLED
    if code == -int(signal.SIGALRM):
        return TIMED_OUT
    if code < 0:
        return KILLED
    raise RuntimeError(f"pytest ended with {code}")


def parse_explained_mutants(text: str) -> set[tuple[str, str, str]]:
    """Return the mutants that a text explains, which no test can notice: the module, the line, and the changed one."""
    return {(module, before.strip(), after.strip()) for module, before, after in _EXPLANATION.findall(text)}


def is_explained(mutant: Mutant, text: str, explained_mutants: set[tuple[str, str, str]]) -> bool:
    """Return whether a mutant of a module's text is among those that are explained."""
    lines = [line[1:].strip() for line in mutant.diff(text)]
    return len(lines) == 2 and (mutant.module, lines[0], lines[1]) in explained_mutants


def _list_tests(subject: MutationSubject, root: Path) -> list[str]:
    found = [sorted(path.relative_to(root).as_posix() for path in root.glob(pattern)) for pattern in subject.tests]
    return [name for group in found for name in group if Path(name).name.startswith("test_")]


def run_mutants(
    subject: MutationSubject, mutants: Sequence[Mutant], original: Path, trees: Sequence[Path]
) -> Iterator[tuple[Mutant, str]]:
    """Yield mutants with what became of each, as they end; SystemExit where the tests fail without any mutant.

    Each of the `trees`, which are copies of `original`, has one at a time.
    """
    tests = _list_tests(subject, original)
    began = time.monotonic()
    baseline = _fork_tests(trees[0], tests)
    while (code := _poll_tests(baseline, began + _BASELINE_LIMIT_S)) is None:
        time.sleep(0.05)
    if code:
        output = (trees[0] / "output.txt").read_text("utf-8", "replace")
        raise SystemExit(f"Without a mutant the tests of {subject.name} fail:\n{output[-3000:]}")
    limit = max(_MIN_LIMIT_S, _SLOWDOWN_LIMIT * (time.monotonic() - began))
    waiting, free, jobs = list(reversed(mutants)), list(range(len(trees))), list[_Job]()
    again = set[Mutant]()
    while waiting or jobs:
        while waiting and free:
            mutant, slot = waiting.pop(), free.pop()
            file = trees[slot] / mutant.module
            file.write_text(mutant.apply((original / mutant.module).read_text("utf-8")), "utf-8")
            # Another time for each, so that no compiled file of another mutant is taken for this one's.
            os.utime(file, (1, 1_000_000_000 + len(waiting)))
            jobs.append(_Job(mutant, _fork_tests(trees[slot], tests), slot, time.monotonic() + limit))
        time.sleep(0.02)
        for job in list(jobs):
            if (code := _poll_tests(job.process, job.deadline)) is not None:
                jobs.remove(job)
                free.append(job.slot)
                shutil.copy2(original / job.mutant.module, trees[job.slot] / job.mutant.module)
                try:
                    verdict = classify_exit_code(code)
                except RuntimeError as error:
                    # Such as a moment without memory; what comes twice comes of the mutant.
                    if job.mutant in again:
                        output = (trees[job.slot] / "output.txt").read_text("utf-8", "replace")
                        raise SystemExit(
                            f"The tests of {job.mutant} cannot be run: {error}.\n{output[-3000:]}"
                        ) from None
                    again.add(job.mutant)
                    waiting.append(job.mutant)
                    continue
                yield job.mutant, verdict


def format_table(verdicts: Sequence[tuple[str, Mutant, str]], original: Path) -> str:
    """Return what became of mutants: a row a module, and the survivors with what was changed."""
    made, noticed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for subject, mutant, verdict in verdicts:
        made[subject, mutant.module] += 1
        noticed[subject, mutant.module] += verdict in (KILLED, TIMED_OUT)
    lines = ["| subject | module | mutants | killed |", "|---|---|---:|---:|"]
    lines += [f"| {subject} | {module} | {made[key]} | {noticed[key]} |" for key in sorted(made)
              for subject, module in [key]]  # fmt: skip
    total, killed = len(verdicts), sum(noticed.values())
    equal = sum(verdict == EQUIVALENT for *_, verdict in verdicts)
    slow = sum(verdict == TIMED_OUT for *_, verdict in verdicts)
    lines += [
        "",
        (
            f"{killed} of {total} killed, {slow} of them by the time limit; {equal} are explained in "
            f"{EXPLANATIONS_PAGE}: {killed / max(total - equal, 1):.1%} of the others."
        ),
        "",
    ]
    for _, mutant, verdict in verdicts:
        if verdict == SURVIVED:
            text = (original / mutant.module).read_text("utf-8")
            lines += [f"{mutant.module}:{mutant.line}", *(f"    {line}" for line in mutant.diff(text)), ""]
    return "\n".join(lines)


def _parse_location(text: str) -> tuple[str, int]:
    module, colon, line = text.rpartition(":")
    if not (colon and line.isdecimal() and (ROOT / module).is_file()):
        raise argparse.ArgumentTypeError(f"{text!r} is no FILE:LINE of this tree")
    return module, int(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants, print the table; return 0 where enough of them were killed."""
    names = [subject.name for subject in SUBJECTS]
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(names)}; all")
    parser.add_argument("--seed", type=int, default=1, help="what the choice grows from")
    parser.add_argument("--share", type=float, default=1.0, help="a part of the mutants, or several times as many")
    parser.add_argument(
        "--only",
        action="append",
        type=_parse_location,
        metavar="FILE:LINE",
        default=[],
        help="every mutant of a line, rather than those that the seed chooses; may be given again",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests that run at a time")
    parser.add_argument("--out", type=Path, help="a file for the table, rather than standard output")
    options = parser.parse_args(arguments)
    if unknown := set(options.subjects) - set(names):
        parser.error(f"there is no subject {min(unknown)!r}")
    if not hasattr(os, "fork"):
        parser.error("it forks, which this system cannot")
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    for library in _LIBRARIES:
        importlib.import_module(library)
    ended = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        original, *trees = (Path(folder) / str(number) for number in range(options.jobs + 1))
        copy_tree(original)
        known = parse_explained_mutants((original / EXPLANATIONS_PAGE).read_text("utf-8"))
        for tree in trees:
            shutil.copytree(original, tree)
        for subject in SUBJECTS:
            if options.subjects and subject.name not in options.subjects:
                continue
            if options.only:
                mutants = [
                    mutant
                    for mutant in list_subject_mutants(subject, original)
                    if (mutant.module, mutant.line) in options.only
                ]
            else:
                mutants = sample_mutants(subject, original, options.seed, options.share)
            if not mutants:
                continue
            for mutant, became in run_mutants(subject, mutants, original, trees):
                text = (original / mutant.module).read_text("utf-8")
                verdict = EQUIVALENT if became == SURVIVED and is_explained(mutant, text, known) else became
                ended.append((subject.name, mutant, verdict))
                change = f"{text[mutant.start : mutant.stop]!r} -> {mutant.replacement!r}"
                print(f"{len(ended):4} {verdict:8} {mutant.module}:{mutant.line} {change}", file=sys.stderr, flush=True)
        ended.sort(key=lambda each: (each[1].module, each[1].start))
        written = format_table(ended, original)
    if options.out:
        options.out.write_text(written, "utf-8")
    else:
        print(written)
    verdicts = [verdict for *_, verdict in ended if verdict != EQUIVALENT]
    return 0 if sum(verdict != SURVIVED for verdict in verdicts) >= REQUIRED_SHARE * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
