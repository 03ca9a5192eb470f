"""What is said of a result: one verdict, of the reference, the checkers and several orders, wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from gpu.errors import Diagnostic, SourcePosition

_MISTAKES = {
    "race": "races",
    "uninitialized": "reads what nobody wrote",
    "out-of-bounds": "leaves an array",
    "null-pointer": "follows a null pointer",
    "misaligned": "accesses memory out of alignment",
    "barrier": "has a barrier that not all threads reach",
    "endless": "does not end in time",
    "use-after-free": "uses memory that was freed",
    "double-free": "frees memory twice",
    "invalid-free": "frees what was never allocated",
    "warp-mask": "names the wrong lanes in a mask",
    "use-after-scope": "uses a variable that is gone",
    "stack-overflow": "nests calls too deep",
    "assertion": "fails an assertion",
}
"""What a kernel does, by the kind of a finding."""


class _Found(Protocol):
    """A finding, as far as it is looked at here."""

    @property
    def kind(self) -> str: ...
    @property
    def positions(self) -> tuple[SourcePosition, ...]: ...


@dataclass(frozen=True)
class Remedy:
    """An edit with which nothing is found any more: it was tried.

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


@dataclass(frozen=True)
class Mistake:
    """What a kernel does wrong: a finding's kind, and the lines of the kernel's file that it has to do with."""

    kind: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """What the simulator found when a kernel ran before the checkers' eyes, and in several orders, on a small input.

    Parameters
    ----------
    mistakes : tuple of Mistake
    diagnostics : tuple of Diagnostic
        The same at their lines, in words.
    ended : bool
        Whether a mistake ended the run: there is no result.
    input : str
        What it ran on, such as "n = 4999".
    orders : tuple of str
        The schedules in which it ran too.
    ordered_input : str
        What it ran on in them.
    unreached : tuple of int
        The lines where the text is another one, and no thread came to what is there or was there: of that nothing is
        said.
    differing : tuple of str
        Those of them that gave a wrong result, or of a kernel without reference another one than the first.
    remedy : Remedy or None
        What mends it, where an edit was found that does.
    failure : str
        Why it could not be checked; "" where it was.
    """

    mistakes: tuple[Mistake, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    ended: bool = False
    input: str = ""
    orders: tuple[str, ...] = ()
    ordered_input: str = ""
    unreached: tuple[int, ...] = ()
    differing: tuple[str, ...] = ()
    remedy: Remedy | None = None
    failure: str = ""

    @property
    def clean(self) -> bool:
        """Whether it was checked and nothing was found."""
        return not (self.mistakes or self.differing or self.failure)


@dataclass(frozen=True)
class Verdict:
    """What is said of a result.

    Parameters
    ----------
    kind : {"verified", "clean", "pending", "unchecked", "flawed", "lucky", "lesson", "wrong"}
        Right and nothing found; nothing found, where there is no reference; not known yet; right, but not checked;
        right here, but with mistakes; right, in a variant that is wrong by design; wrong there; wrong.
    words : str
        For a badge.
    sentence : str
        What was checked and what came of it.
    """

    kind: str
    words: str
    sentence: str

    @property
    def bad(self) -> bool:
        """Whether something is wrong that is not meant to be."""
        return self.kind in ("flawed", "wrong")


def verdict_of(right: bool | None, *, edited: bool = False, check: Check | None = None, lesson: str = "") -> Verdict:
    """Return what is to be said of a result: "verified" is its best case, never a part of it.

    Parameters
    ----------
    right : bool or None
        Whether the result agrees with the reference; None while it has not been compared.
    edited : bool
        Whether the kernel is another than the project's own, which its tests check: then "verified" takes a check.
    check : Check or None
        Of this text; None while there is none.
    lesson : str
        Why the variant is wrong by design; "" where it is not.
    """
    if right is None and not (check is not None and check.ended):
        return Verdict("pending", "checking…", "The reference is computed when the settings rest.")
    if check is not None and check.mistakes:
        what = mistakes_in_words(check.mistakes)
        if right:
            return Verdict("flawed", f"right here, but it {what}", f"The result is right, by luck. {_checked(check)}")
        return Verdict("wrong", f"✗ wrong: it {what}", _checked(check))
    if not right:
        if lesson:
            return Verdict("lesson", "wrong, by design", lesson)
        return Verdict("wrong", "✗ differs from reference", "The result is further off than rounding explains.")
    if lesson:
        return Verdict("lucky", "right this time, wrong by design", lesson)
    if check is not None and check.differing:
        words = f"right here, but wrong in another order: {check.differing[0]}"
        return Verdict("flawed", words, _checked(check))
    agrees = "The result agrees with a reference in float64 or integers."
    if not edited:
        return Verdict("verified", "✓ verified", agrees)
    if check is None:
        return Verdict("pending", "right; checking for races…", f"{agrees} The edited kernel is being checked.")
    if check.failure:
        return Verdict("unchecked", "right, but not checked", f"{agrees} It could not be checked: {check.failure}")
    if check.unreached:
        edit = f"the edit at {lines_in_words(check.unreached)}"
        where = f"With {check.input} no" if check.input else "No"
        said = f"{where} thread came to {edit}, so nothing is said of it."
        return Verdict("unchecked", f"right, but {edit} did not run", f"{agrees} {said} {_checked(check)}")
    return Verdict("verified", "✓ verified", f"{agrees} {_checked(check)}")


def verdict_of_launch(check: Check) -> Verdict:
    """Return what is to be said of a launch that there is no reference for."""
    if check.mistakes:
        return Verdict("flawed", f"it {mistakes_in_words(check.mistakes)}", _checked(check))
    if check.differing:
        return Verdict("flawed", f"its result depends on the order: {check.differing[0]}", _checked(check))
    return Verdict("clean", "✓ no findings", _checked(check))


def mistakes_of(findings: Iterable[_Found], file: str = "") -> tuple[Mistake, ...]:
    """Return findings' kinds, with the lines that each has to do with: those of a file, or of all."""
    name = PurePath(file).name

    def lines(found: _Found) -> tuple[int, ...]:
        return tuple(sorted({at.line for at in found.positions if not file or PurePath(at.file).name == name}))

    return tuple(dict.fromkeys(Mistake(each.kind, lines(each)) for each in findings))


def mistakes_in_words(mistakes: Sequence[Mistake]) -> str:
    """Return what a kernel does, such as "races: lines 129 and 131"."""
    kinds = dict.fromkeys(each.kind for each in mistakes)
    said = []
    for kind in kinds:
        lines = sorted({line for each in mistakes if each.kind == kind for line in each.lines})
        what = _MISTAKES.get(kind, "makes a mistake")
        said.append(f"{what}: {lines_in_words(lines)}" if lines else what)
    return "; ".join(dict.fromkeys(said))


def lines_in_words(lines: Iterable[int]) -> str:
    """Return "line 3", "lines 3 and 5", "lines 3, 5 and 7"."""
    numbers = [str(line) for line in lines]
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    return f"lines {', '.join(numbers[:-1])} and {numbers[-1]}"


def _checked(check: Check) -> str:
    """Return what was looked for, on what, and what came of it."""
    where = f" with {check.input}" if check.input else ""
    found = f"it {mistakes_in_words(check.mistakes)}" if check.mistakes else "nothing"
    said = f"Looked for races, accesses out of bounds, reads of what nobody wrote, barriers and masks{where}: {found}."
    small = f" with {check.ordered_input}" if check.ordered_input else ""
    if check.differing:
        said += f" In another order of threads ({check.differing[0]}) the result{small} is another."
    elif check.orders:
        said += f" {len(check.orders)} other orders of threads{small} gave the same."
    return said
