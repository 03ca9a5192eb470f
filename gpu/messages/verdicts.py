"""Verdict on a result: one summary of the comparison with the reference, the checkers and the schedules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from gpu.base.errors import Diagnostic, SourcePosition

_MISTAKE_NOUNS = {
    "race": "race",
    "uninitialized": "uninitialized read",
    "out-of-bounds": "out-of-bounds access",
    "null-pointer": "null pointer",
    "invalid-pointer": "access outside device memory",
    "misaligned": "misaligned access",
    "barrier": "barrier not reached by all threads",
    "endless": "endless loop",
    "unfinished": "time or iteration limit exceeded",
    "use-after-free": "use of freed memory",
    "double-free": "memory freed twice",
    "invalid-free": "free of memory that was not allocated",
    "warp-mask": "wrong lanes in a mask",
    "use-after-scope": "use of a variable after its scope",
    "stack-overflow": "stack overflow",
    "assertion": "failed assertion",
    "residency": "more blocks than the GPU holds at once",
    "read-only-load": "load of written data through the read-only cache",
    "undefined-operation": "undefined result of an operation",
}
"""Nouns for a kernel's mistakes, by the kind of a finding."""
_BARRIER = re.compile(r"__sync(?:warp|threads)\(\)")


class _Finding(Protocol):
    """The attributes of a finding that are used here."""

    @property
    def kind(self) -> str: ...
    @property
    def positions(self) -> tuple[SourcePosition, ...]: ...


@dataclass(frozen=True)
class Remedy:
    """An edit that was tried and removes all findings.

    Parameters
    ----------
    words : str
        Such as "Insert __syncthreads(); before line 129".
    line : int
        The line before which a line is inserted, from 1.
    text : str
        That line, indented.
    """

    words: str
    line: int
    text: str

    def adapt_advice(self, message: str) -> str:
        """Return a finding's message that advises the barrier of this edit.

        A race within one warp advises __syncwarp(), but the edit must also order the warps of larger inputs.
        """
        barrier = _BARRIER.search(self.text)
        return _BARRIER.sub(barrier[0], message) if barrier else message


@dataclass(frozen=True)
class Mistake:
    """A kernel's error: the kind of a finding, and its lines in the kernel's file."""

    kind: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """Findings of a kernel's run on a small input with checkers, and the comparison of its schedules.

    Parameters
    ----------
    diagnostics : tuple of Diagnostic
        The mistakes as diagnostics at their lines.
    ended : bool
        Whether a mistake ended the run, so that there is no result.
    input : str
        Description of the input, such as "n = 4999".
    orders : tuple of str
        The other schedules in which it ran.
    ordered_input : str
        Description of the input for those schedules.
    unreached : tuple of int
        Edited lines that no thread executed, neither the new text nor the old; nothing is known about them.
    left_out : tuple of int
        Those of the unreached lines that the preprocessor excludes.
    wrong_input : str
        Description of the first other input with a wrong result or a mistake, such as "n = 1"; "" if there is none.
    edge_cases : int
        The number of edge cases on which it ran with correct results. See `gpu.declaration.edge_cases`.
    skipped : int
        The number of edge cases that were skipped, as they would take too long.
    excluded : tuple of str
        Edge cases that the pattern or the variant rejects, or for which the original kernel is wrong as well.
    differing : tuple of str
        The schedules with a wrong result or, for a kernel without reference, a result that differs from the first.
    remedy : Remedy or None
        An edit that removes all findings, if one was found.
    failure : str
        Why it could not be checked; "" if it was.
    """

    mistakes: tuple[Mistake, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    ended: bool = False
    input: str = ""
    orders: tuple[str, ...] = ()
    ordered_input: str = ""
    unreached: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    wrong_input: str = ""
    edge_cases: int = 0
    skipped: int = 0
    excluded: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    remedy: Remedy | None = None
    failure: str = ""

    @property
    def clean(self) -> bool:
        """Whether it was checked without findings."""
        return not (self.mistakes or self.wrong_input or self.differing or self.failure)


@dataclass(frozen=True)
class Verdict:
    """Verdict on a result.

    Parameters
    ----------
    kind : {"verified", "clean", "pending", "unchecked", "flawed", "lucky", "lesson", "wrong"}
        Correct and checked; checked, without reference; not known yet; correct but not checked; correct here but with
        findings; correct, in a variant that is wrong by design; wrong in such a variant; wrong.
    words : str
        Text for a badge.
    sentence : str
        The checks and their outcome.
    """

    kind: str
    words: str
    sentence: str

    @property
    def is_bad(self) -> bool:
        """Whether something is wrong that is not wrong by design."""
        return self.kind in ("flawed", "wrong")


def decide_verdict(
    matches_reference: bool | None, *, edited: bool = False, check: Check | None = None, lesson: str = ""
) -> Verdict:
    """Return the verdict on a result; "verified" requires that every check passed.

    Parameters
    ----------
    matches_reference : bool or None
        Whether the result agrees with the reference result; None while it has not been compared.
    edited : bool
        Whether the kernel was edited; the original is checked by the project's tests, an edited one needs a check.
    check : Check or None
        Check of this text; None while there is none.
    lesson : str
        Why the variant is wrong by design; "" if it is not.
    """
    if matches_reference is None and not (check is not None and check.ended):
        return Verdict("pending", "checking…", "The reference result is computed when you stop changing settings.")
    if check is not None and check.mistakes:
        what = describe_mistakes(check.mistakes)
        if matches_reference and check.wrong_input:
            return Verdict("flawed", f"wrong for {check.wrong_input}: {what}", _summarize(check))
        if matches_reference:
            return Verdict("flawed", f"right by chance: {what}", f"The result is right by chance. {_summarize(check)}")
        return Verdict("wrong", f"✗ wrong: {what}", _summarize(check))
    if not matches_reference:
        if lesson:
            return Verdict("lesson", "wrong, by design", lesson)
        sentence = "The difference exceeds the tolerance for rounding."
        if check is not None and check.wrong_input:
            sentence += f" The result is also wrong for {check.wrong_input}."
        return Verdict("wrong", "✗ differs from reference", sentence)
    if lesson:
        return Verdict("lucky", "right this time, wrong by design", lesson)
    if check is not None and check.wrong_input:
        words = f"right for this input, wrong for {check.wrong_input}"
        return Verdict("flawed", words, _summarize(check))
    if check is not None and check.differing:
        words = f"right in this schedule, wrong in another: {check.differing[0]}"
        return Verdict("flawed", words, _summarize(check))
    agrees = "The result agrees with the reference result in float64 or integers."
    if not edited:
        return Verdict("verified", "✓ verified", agrees)
    if check is None:
        return Verdict("pending", "right; checking for races…", f"{agrees} The edited kernel is being checked.")
    if check.failure:
        return Verdict("unchecked", "right, but not checked", f"{agrees} It could not be checked: {check.failure}")
    if check.unreached:
        edit = f"the edit at {format_lines(check.unreached)}"
        where = f"With {check.input}, no" if check.input else "No"
        reason = f"{where} thread executed {edit}, so it is unchecked."
        words = f"right, but {edit} did not run"
        if check.left_out:
            reason += f" With these parameters, #if leaves out {format_lines(check.left_out)}."
            if check.left_out == check.unreached:
                words = f"right, but #if leaves out {edit}"
        return Verdict("unchecked", words, f"{agrees} {reason} {_summarize(check)}")
    return Verdict("verified", "✓ verified", f"{agrees} {_summarize(check)}")


def decide_launch_verdict(check: Check) -> Verdict:
    """Return the verdict on a launch without reference result."""
    if check.mistakes:
        return Verdict("flawed", describe_mistakes(check.mistakes), _summarize(check))
    if check.differing:
        return Verdict("flawed", f"its result depends on the schedule: {check.differing[0]}", _summarize(check))
    return Verdict("clean", "✓ no findings", _summarize(check))


def collect_mistakes(findings: Iterable[_Finding], file: str = "") -> tuple[Mistake, ...]:
    """Return findings as mistakes, each with its lines in `file`, or in all files."""
    name = PurePath(file).name

    def lines(finding: _Finding) -> tuple[int, ...]:
        return tuple(sorted({at.line for at in finding.positions if not file or PurePath(at.file).name == name}))

    return tuple(dict.fromkeys(Mistake(each.kind, lines(each)) for each in findings))


def describe_mistakes(mistakes: Sequence[Mistake]) -> str:
    """Describe a kernel's mistakes, such as "race in lines 129 and 131"."""
    kinds = dict.fromkeys(mistake.kind for mistake in mistakes)
    descriptions = []
    for kind in kinds:
        lines = sorted({line for mistake in mistakes if mistake.kind == kind for line in mistake.lines})
        what = _MISTAKE_NOUNS.get(kind, "mistake")
        descriptions.append(f"{what} in {format_lines(lines)}" if lines else what)
    return "; ".join(dict.fromkeys(descriptions))


def format_lines(lines: Iterable[int]) -> str:
    """Format line numbers as "line 3", "lines 3 and 5", "lines 3, 5 and 7"."""
    numbers = [str(line) for line in lines]
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    return f"lines {', '.join(numbers[:-1])} and {numbers[-1]}"


def _summarize(check: Check) -> str:
    """Return a sentence with the checks, their input and their outcome."""
    where = f" with {check.input}" if check.input else ""
    found = describe_mistakes(check.mistakes) or "nothing"
    summary = f"Checked for races, out-of-bounds and uninitialized accesses, barriers and masks{where}; found: {found}."
    small = f" with {check.ordered_input}" if check.ordered_input else ""
    if check.wrong_input and not check.mistakes:
        return f"{summary} The result is wrong for {check.wrong_input}."
    if check.edge_cases:
        skipped = f"; {check.skipped} more were skipped, as they would take too long" if check.skipped else ""
        summary += f" The results for {check.edge_cases} edge cases are right{skipped}."
    if check.excluded:
        summary += f" Excluded, as the original kernel fails or rejects them: {', '.join(check.excluded)}."
    if check.differing:
        summary += f" In another schedule ({check.differing[0]}) the result{small} differs."
    elif check.orders:
        summary += f" {len(check.orders)} other schedules{small} gave the same result."
    return summary
