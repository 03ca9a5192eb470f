"""Mutation testing: make one small change to the code at a time, and check that a test fails: python -m tools.mutants.

A mutant is a copy of the tree in which one operator, constant, condition or statement is changed. The tests of the
changed module run on it. A seed determines the sample of mutants.

No maintained tool samples mutants and assigns tests to modules. mutmut 3 does not change lambdas and decorated
functions, which contain the declarations' bounds; it generates all mutants, including those of messages. cosmic-ray
edits in place and starts a Python process per mutant, in which importing the libraries takes longer than most tests;
this tool forks from a process that has imported them. mutatest supports Python up to 3.8.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
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

from gpu.base.paths import ROOT

REQUIRED_SHARE = 0.95
"""The least share of the mutants that tests have to kill."""

_LIBRARIES = ("numpy.testing", "scipy.ndimage", "scipy.special", "hypothesis.strategies", "pytest", "PyQt6.QtWidgets",
              "PyQt6.QtTest", "clang.cindex", "llvmlite.binding", "greenlet", "PIL.Image")  # fmt: skip
_SLOWDOWN_LIMIT = 5
_MIN_LIMIT_S = 30.0
_BASELINE_LIMIT_S = 600.0


@dataclass(frozen=True)
class MutationSubject:
    """Modules, their tests, and the number of mutants to sample.

    Parameters
    ----------
    modules, tests : tuple of str
        Glob patterns of paths relative to the root; tests run in this order, fast ones first.
    mutant_count : int
        Number of mutants to sample, or all if there are fewer.
    functions : tuple of str
        Prefixes of the names of the functions to change; empty for the whole module.
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
        "intervals",
        ("gpu/simulator/compiled/analysis/intervals.py",),
        ("tests/gpu/simulator/compiled/analysis/test_intervals.py",),
        40,
    ),
    MutationSubject(
        "counters",
        ("gpu/simulator/counting/*.py",),
        (
            "tests/gpu/simulator/counting/test_writers.py",
            "tests/gpu/simulator/counting/test_counters.py",
            "tests/gpu/run/test_atomics.py",
        ),
        50,
    ),
    MutationSubject(
        "checkers",
        ("gpu/base/findings.py", "gpu/simulator/checkers/**/*.py"),
        (
            "tests/gpu/base/test_findings.py",
            "tests/gpu/simulator/checkers/test_report.py",
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
        ("gpu/recording/*.py", "gpu/simulator/trace/*.py"),
        (
            "tests/gpu/recording/test_*.py",
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
        """Return the module's text with the replacement."""
        return text[: self.start] + self.replacement + text[self.stop :]

    def diff(self, text: str) -> list[str]:
        """Return the changed lines, in diff format."""
        before, after = text.splitlines(), self.apply(text).splitlines()
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


# --- mutations

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
    """Collects the mutants of a module; skips messages, types and assertions."""

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
        offset = self._text(start, stop).find(old)
        if offset >= 0:
            line = left.end_lineno or left.lineno
            self._add_replacement(line, start + offset, start + offset + len(old), new)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        was_in_scope, self._is_in_scope = self._is_in_scope, self._is_in_scope or node.name.startswith(self._functions)
        for child in (node.args, *node.body):
            self.visit(child)
        self._is_in_scope = was_in_scope

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit_Call(self, node: ast.Call) -> None:
        is_shape = isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
        self.visit(node.func)
        for argument in (*node.args, *node.keywords):
            # NumPy infers the length for any negative number, so changing -1 has no effect.
            if not (is_shape and isinstance(argument, ast.UnaryOp)):
                self.visit(argument)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == "strict":
            return  # an assertion
        # Keyword arguments of a declaration, such as `tolerance=lambda ...`.
        was_in_scope = self._is_in_scope
        self._is_in_scope = was_in_scope or (node.arg is not None and f"_{node.arg}" in self._functions)
        self.generic_visit(node)
        self._is_in_scope = was_in_scope

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
        is_text = any(
            isinstance(operand, ast.JoinedStr | ast.Constant) and isinstance(getattr(operand, "value", ""), str)
            for operand in (node.left, node.right)
        )
        if type(node.op) in _OPERATIONS and not is_text:
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
        # Other visitors already negate comparisons and `not`.
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
    """Return all mutants of a module, by position in its text."""
    collector = _MutantCollector(module, text, functions)
    collector.visit(ast.parse(text))
    return sorted(set(collector.mutants), key=lambda mutant: (mutant.start, mutant.stop, mutant.replacement))


def list_subject_mutants(subject: MutationSubject, root: Path) -> list[Mutant]:
    """Return all mutants of a subject."""
    paths = sorted({path for pattern in subject.modules for path in root.glob(pattern)})
    return [
        mutant
        for path in paths
        for mutant in generate_mutants(path.relative_to(root).as_posix(), path.read_text("utf-8"), subject.functions)
    ]


def sample_mutants(subject: MutationSubject, root: Path, seed: int, share: float = 1.0) -> list[Mutant]:
    """Return a sample of a subject's mutants, in the order of their positions.

    Parameters
    ----------
    subject : MutationSubject
        The modules and the number of mutants.
    root : Path
        The root of the project.
    seed : int
        The seed, which determines the sample together with the subject's name.
    share : float
        A factor of the number of mutants.
    """
    mutants = list_subject_mutants(subject, root)
    sample = random.Random(f"{seed} {subject.name}").sample(
        mutants, min(len(mutants), round(subject.mutant_count * share))
    )
    return sorted(sample, key=lambda mutant: (mutant.module, mutant.start, mutant.replacement))


# --- running

KILLED, SURVIVED, TIMED_OUT, EQUIVALENT = "killed", "survived", "too slow", "equal"
EXPLANATIONS_PAGE = Path("docs/mutants.md")
_EXPLANATION = re.compile(r"^```diff\n(\S+)\n-(.*)\n\+(.*)\n```$", re.MULTILINE)


@dataclass
class _Job:
    """A mutant, the process that runs its tests, and the index of its copy of the tree."""

    mutant: Mutant
    process: int
    slot: int
    deadline: float


def copy_tree(target: Path) -> None:
    """Copy the project's files, including uncommitted changes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def _fork_tests(tree: Path, tests: Sequence[str]) -> int:
    """Start the tests of a tree in a process with a separate process group; return its id."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    gc.freeze()  # pytest collects garbage five times in the end; the parent's objects would be searched and copied
    output = os.open(tree / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(tree)
    sys.path[0] = str(tree)
    packages = ("gpu", "gui", "tests", "tools")
    # Referenced until the process ends, so that finalizers of the parent's modules do not run during the tests.
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
    except BaseException:  # the child process must never return from here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _poll_tests(process: int, deadline: float) -> int | None:
    """Return the exit status of tests, None while they run; kill them after the deadline."""
    ended_process, status = os.waitpid(process, os.WNOHANG)
    if ended_process:
        return os.waitstatus_to_exitcode(status)
    if time.monotonic() > deadline:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return -int(signal.SIGALRM)
    return None


def classify_exit_code(code: int) -> str:
    """Return the verdict on a mutant, given the exit status of its tests.

    Raises
    ------
    RuntimeError
        If pytest itself failed.
    """
    if code in (0, 1, 2):
        return SURVIVED if code == 0 else KILLED
    if code == -int(signal.SIGALRM):
        return TIMED_OUT
    if code < 0:
        return KILLED
    raise RuntimeError(f"pytest ended with {code}")


def parse_explained_mutants(text: str) -> set[tuple[str, str, str]]:
    """Return the equivalent mutants that a page explains: module, original line, and changed line."""
    return {(module, before.strip(), after.strip()) for module, before, after in _EXPLANATION.findall(text)}


def is_explained(mutant: Mutant, text: str, explained_mutants: set[tuple[str, str, str]]) -> bool:
    """Return whether a mutant is one of the explained ones; `text` is its module's text."""
    lines = [line[1:].strip() for line in mutant.diff(text)]
    return len(lines) == 2 and (mutant.module, lines[0], lines[1]) in explained_mutants


def _list_tests(subject: MutationSubject, root: Path) -> list[str]:
    paths = [sorted(path.relative_to(root).as_posix() for path in root.glob(pattern)) for pattern in subject.tests]
    return [name for group in paths for name in group if Path(name).name.startswith("test_")]


def run_mutants(
    subject: MutationSubject, mutants: Sequence[Mutant], original: Path, trees: Sequence[Path]
) -> Iterator[tuple[Mutant, str]]:
    """Test mutants in parallel, and yield each with its verdict when its tests end.

    Parameters
    ----------
    original : Path
        A copy of the tree without mutants.
    trees : sequence of Path
        Further copies, each for one mutant at a time.

    Raises
    ------
    SystemExit
        If the tests fail without a mutant, or pytest fails twice for the same mutant.
    """
    tests = _list_tests(subject, original)
    start = time.monotonic()
    baseline = _fork_tests(trees[0], tests)
    while (code := _poll_tests(baseline, start + _BASELINE_LIMIT_S)) is None:
        time.sleep(0.05)
    if code:
        output = (trees[0] / "output.txt").read_text("utf-8", "replace")
        raise SystemExit(f"Without a mutant the tests of {subject.name} fail:\n{output[-3000:]}")
    limit = max(_MIN_LIMIT_S, _SLOWDOWN_LIMIT * (time.monotonic() - start))
    waiting, free, jobs = list(reversed(mutants)), list(range(len(trees))), list[_Job]()
    retried = set[Mutant]()
    while waiting or jobs:
        while waiting and free:
            mutant, slot = waiting.pop(), free.pop()
            file = trees[slot] / mutant.module
            file.write_text(mutant.apply((original / mutant.module).read_text("utf-8")), "utf-8")
            # A different modification time for each mutant, so that Python does not use another mutant's bytecode.
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
                    # The cause may be temporary, such as a lack of memory, so retry once.
                    if job.mutant in retried:
                        output = (trees[job.slot] / "output.txt").read_text("utf-8", "replace")
                        raise SystemExit(
                            f"The tests of {job.mutant} cannot be run: {error}.\n{output[-3000:]}"
                        ) from None
                    retried.add(job.mutant)
                    waiting.append(job.mutant)
                    continue
                yield job.mutant, verdict


def format_table(verdicts: Sequence[tuple[str, Mutant, str]], original: Path) -> str:
    """Return a table of mutants per module, and the survivors with their diffs.

    Parameters
    ----------
    verdicts : sequence of (str, Mutant, str)
        Subject, mutant, and verdict.
    original : Path
        A copy of the tree without mutants.
    """
    tested, killed_counts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for subject, mutant, verdict in verdicts:
        tested[subject, mutant.module] += 1
        killed_counts[subject, mutant.module] += verdict in (KILLED, TIMED_OUT)
    lines = ["| subject | module | mutants | killed |", "|---|---|---:|---:|"]
    lines += [f"| {subject} | {module} | {tested[key]} | {killed_counts[key]} |" for key in sorted(tested)
              for subject, module in [key]]  # fmt: skip
    total, killed = len(verdicts), sum(killed_counts.values())
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a FILE:LINE of this tree")
    return module, int(line)


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=(__doc__ or "").partition("\n")[0])
    names = ", ".join(subject.name for subject in SUBJECTS)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"subjects to test: {names} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--share", type=float, default=1.0, help="factor of the number of mutants (default: 1)")
    parser.add_argument(
        "--only",
        action="append",
        type=_parse_location,
        metavar="FILE:LINE",
        default=[],
        help="test all mutants of a line instead of a sample; can be repeated",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="number of mutants tested at the same time"
    )
    parser.add_argument("--out", type=Path, help="output file (default: standard output)")
    return parser


def _select_mutants(subject: MutationSubject, root: Path, options: argparse.Namespace) -> list[Mutant]:
    """Return a sample of a subject's mutants, or all those on the lines that the options name."""
    if not options.only:
        return sample_mutants(subject, root, options.seed, options.share)
    return [each for each in list_subject_mutants(subject, root) if (each.module, each.line) in options.only]


def _test_subjects(
    subjects: Sequence[MutationSubject], folder: Path, options: argparse.Namespace
) -> tuple[list[tuple[str, Mutant, str]], str]:
    """Test the mutants of some subjects on copies of the tree; return their verdicts, and a table of them."""
    original, *trees = (folder / str(number) for number in range(options.jobs + 1))
    copy_tree(original)
    explained = parse_explained_mutants((original / EXPLANATIONS_PAGE).read_text("utf-8"))
    for tree in trees:
        shutil.copytree(original, tree)
    verdicts: list[tuple[str, Mutant, str]] = []
    for subject in subjects:
        mutants = _select_mutants(subject, original, options)
        for mutant, outcome in run_mutants(subject, mutants, original, trees) if mutants else ():
            text = (original / mutant.module).read_text("utf-8")
            verdict = EQUIVALENT if outcome == SURVIVED and is_explained(mutant, text, explained) else outcome
            verdicts.append((subject.name, mutant, verdict))
            change = f"{text[mutant.start : mutant.stop]!r} -> {mutant.replacement!r}"
            print(f"{len(verdicts):4} {verdict:8} {mutant.module}:{mutant.line} {change}", file=sys.stderr, flush=True)
    verdicts.sort(key=lambda item: (item[1].module, item[1].start))
    return verdicts, format_table(verdicts, original)


def main(arguments: Sequence[str] | None = None) -> int:
    """Test the mutants and print a table; return 0 if the tests killed enough of them."""
    parser = _create_parser()
    options = parser.parse_args(arguments)
    if unknown := set(options.subjects) - {subject.name for subject in SUBJECTS}:
        parser.error(f"there is no subject {min(unknown)!r}")
    if not hasattr(os, "fork"):
        parser.error("this tool needs fork(), which this system does not have")
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    for library in _LIBRARIES:
        importlib.import_module(library)
    subjects = [subject for subject in SUBJECTS if not options.subjects or subject.name in options.subjects]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        verdicts, table = _test_subjects(subjects, Path(folder), options)
    if options.out:
        options.out.write_text(table, "utf-8")
    else:
        print(table)
    scored = [verdict for *_, verdict in verdicts if verdict != EQUIVALENT]
    return 0 if sum(verdict != SURVIVED for verdict in scored) >= REQUIRED_SHARE * len(scored) else 1


if __name__ == "__main__":
    sys.exit(main())
