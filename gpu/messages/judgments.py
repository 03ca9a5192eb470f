"""Grader's result for a submission to a lesson's task, with the smallest input that fails."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.messages.verdicts import Check, Verdict, format_lines

RANDOM_KIND = "random"
"""How most of a task's inputs are generated."""
_MAX_FINDINGS = 3
"""Findings that are shown to a student at once."""


@dataclass(frozen=True)
class GradingCase:
    """Input and schedule of a test.

    Parameters
    ----------
    n : int
        Size of the input.
    kind : str
        How the input is generated, one of `gpu.lessons.stage_arrays.INPUT_KINDS`.
    seed : int
        Random seed.
    trial : int
        Value of `trial` in the lesson's expressions: varies blocks, grids and other parameters. 0 in scenes.
    is_descending : bool
        Whether the blocks of a launch run one after the other, the last one first.
    """

    n: int
    kind: str = RANDOM_KIND
    seed: int = 0
    schedule: str = "round-robin"
    trial: int = 0
    is_descending: bool = False

    def __str__(self) -> str:
        order = "" if self.schedule == "round-robin" else f", schedule {self.schedule}"
        order += ", blocks one after the other from the last to the first" if self.is_descending else ""
        return f"n = {self.n}, {self.kind}{order}"


@dataclass(frozen=True)
class WrongElement:
    """First element that differs from the expected result.

    Parameters
    ----------
    unwritten : bool
        Whether no thread wrote it.
    is_input : bool
        Whether the array is an input, which must keep its values.
    """

    array: str
    index: int
    got: float
    expected: float
    unwritten: bool
    is_input: bool = False

    def __str__(self) -> str:
        if self.is_input:
            changed = f"changes {self.array}[{self.index}] from {format_number(self.expected)}"
            return f"the kernel {changed} to {format_number(self.got)}, but {self.array} is an input"
        if self.unwritten:
            return f"no thread writes {self.array}[{self.index}], which should be {format_number(self.expected)}"
        got, expected = format_number(self.got), format_number(self.expected)
        return f"{self.array}[{self.index}] is {got}, but should be {expected}"


@dataclass(frozen=True)
class CounterLimit:
    """Counter and its limit, at the size with the largest excess or, if there is none, the smallest margin.

    If `is_least`, the limit `most` is a lower one.
    """

    counter: str
    n: int
    counted: float
    most: float
    is_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.counted >= self.most if self.is_least else self.counted <= self.most

    def __str__(self) -> str:
        counter = self.counter.replace("_", " ")
        counter = counter[:1].upper() + counter[1:]
        mark = "✓" if self.is_met else "✗"
        limit = f"at least {self.most:g} are required" if self.is_least else f"the limit is {self.most:g}"
        return f"{mark} {counter}: {self.counted:g} at n = {self.n:,}; {limit}"


@dataclass(frozen=True)
class Judgment:
    """Grader's result for a submission.

    Parameters
    ----------
    verdict : Verdict
        Worded as for all results.
    check : Check
        The checkers' findings, with their lines.
    case : GradingCase or None
        The smallest input on which it fails; None if it passes, cannot be run, or fails only on an input that is too
        large to be recorded.
    wrong : WrongElement or None
        The first wrong element for that input; None if the result is right.
    runs : int
        How many times the submission was run.
    failure : str
        Why it could not be run: it does not compile or has another signature; "" if it could.
    input : str
        Launch of the failing case and, if they are short, its arrays; "" if no case fails.
    """

    task: str
    accepted: bool
    verdict: Verdict
    check: Check
    case: GradingCase | None = None
    wrong: WrongElement | None = None
    limits: tuple[CounterLimit, ...] = ()
    runs: int = 0
    failure: str = ""
    input: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences for the student, most important first."""
        sentences = (
            [f"{_capitalize_verdict(self.verdict.words)}."]
            if not self.accepted
            else [f"Accepted, after {self.runs} runs."]
        )
        if self.failure:
            sentences.append(self.failure)
        if self.case is not None:
            sentences.append(f"The smallest input that fails: {self.case}.")
        if self.input:
            sentences.append(f"Input: {self.input}.")
        if self.wrong is not None:
            sentences.append(f"For it, {self.wrong}.")
        lines_by_message: dict[str, list[int]] = {}
        for diagnostic in self.check.diagnostics:
            if diagnostic.severity == "error":
                lines_by_message.setdefault(diagnostic.message, []).append(diagnostic.line)
        for message, lines in [*lines_by_message.items()][:_MAX_FINDINGS]:
            sentences.append(f"{format_lines(sorted(set(lines))).capitalize()}: {message}")
        sentences += [f"{limit}." for limit in self.limits]
        return tuple(dict.fromkeys(sentences))


def format_number(value: float) -> str:
    """Format an integer with all digits, and any other number with six."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else f"{value:.6g}"


def _capitalize_verdict(text: str) -> str:
    """Capitalize a verdict's text after its mark."""
    mark, text = ("✗ ", text[2:]) if text.startswith("✗ ") else ("", text)
    return f"{mark}{text[:1].upper()}{text[1:]}"
