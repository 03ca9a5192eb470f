"""Whether a kernel can be trusted: run on a small input before the checkers' eyes, and again in several orders."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpu.declaration.pattern import Array, Inputs, Integer, Pattern, Variant
from gpu.declaration.roles import Role
from gpu.engines.base import KERNELS, kernel_text
from gpu.errors import KernelError, LaunchError
from gpu.messages.requests import CheckPattern
from gpu.messages.verdicts import Check, Mistake, Remedy, mistakes_of
from gpu.patterns import find_pattern
from gpu.run import verify
from gpu.run.drive import Tell, accept, drive, refuse_library

if TYPE_CHECKING:
    from gpu.engines.simulator import SimulatorEngine
    from gpu.simulator.checkers.findings import Finding


@dataclass(frozen=True)
class Small:
    """A small part of an input.

    Parameters
    ----------
    elements, bodies, rows, columns : int
        At most so many, by the units of a pattern's parameters; of what is given in two dimensions and is no image, at
        most `columns` either way, so that factors still fit together.
    image : tuple of int
        At most so many rows and columns of an image that is given.
    points : int
        At most so many along each edge of a grid of three dimensions.
    """

    elements: int
    bodies: int
    rows: int
    columns: int
    image: tuple[int, int]
    points: int

    @property
    def wider(self) -> Small:
        """Four times as much of what has one dimension; of all else twice as much along each."""
        rows, columns = self.image
        return Small(
            4 * self.elements,
            4 * self.bodies,
            2 * self.rows,
            2 * self.columns,
            (2 * rows, 2 * columns),
            2 * self.points,
        )


_CHECKED = Small(4999, 4999, 67, 67, (45, 67), 19)
_ORDERED = Small(1025, 129, 9, 35, (13, 35), 7)
_ALONE = Small(65, 65, 9, 11, (9, 11), 4)
"""What one thread does takes long before the checkers' eyes, and is the same of few elements as of many."""
_LONG = Small(1025, 1025, 67, 67, (45, 67), 19), Small(257, 129, 9, 35, (13, 35), 7)
"""What takes as many steps as there are elements is checked on fewer, and runs in other orders on still fewer."""
_MANY_STEPS = 3000

_SECONDS = 20.0
"""Seconds of computing after which a launch counts as endless: of what takes long and ends, that must not be said."""

_MULTIPROCESSORS = (16, 1)
"""A host program divides its work by how many there are: with one, a thread does as much as it does of a large input,
and a loop that is gone through once on little is gone through several times."""

_WIDENED = 2
"""So often more is taken where no launch had several blocks: a block alone does not show how blocks race."""

ORDERS = ("shuffle:1", "shuffle:2", "cached:0")
"""The schedules in which a kernel runs besides the one in which it is checked."""

_AROUND = 3
"""So many lines around those that race a barrier is tried before."""
_MOST_TRIES = 12
_ORDERING = re.compile(
    r"\s*((?:(?:__sync\w+|__threadfence\w*|__pipeline_wait\w*|\w+(?:\.|::)sync)\s*\([^;]*\)"
    r"|asm\s+volatile\s*\(\"(?:fence|wgmma\.(?:fence|commit|wait))[^\"]*\"[^\"]*(?:\"memory\")?\))\s*;)\s*(?://.*)?"
)
"""A line that does nothing but order what threads do."""


@dataclass(frozen=True)
class _Case:
    """A variant with the texts of its kernels, on an input, and on a device with so many multiprocessors."""

    pattern: Pattern
    variant: Variant
    inputs: Inputs
    params: Mapping[str, Any]
    sources: Mapping[str, str]
    multiprocessors: int = _MULTIPROCESSORS[0]

    @property
    def file(self) -> str:
        """The kernel file of the variant."""
        return self.pattern.file_of(self.variant.name)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of that file which have to do with the variant: its own, and those that are no variant's."""
        return (*self.variant.kernels, *self.pattern.helpers.get(self.file, ()))

    def with_sources(self, sources: Mapping[str, str]) -> _Case:
        """Return the same with other texts."""
        return replace(self, sources=sources)

    def runs_right(self, engine: SimulatorEngine, tell: Tell) -> bool:
        """Run on an engine, and return whether the result is right; LaunchError where a launch ends with a mistake."""
        engine.sources = dict(self.sources)
        engine.device = replace(engine.device, multiprocessors=self.multiprocessors)
        outputs = drive(engine, self.variant, self.inputs, self.params, tell)
        ours, right = verify.comparable(self.pattern, self.variant, self.inputs, self.params, outputs)
        return verify.compare(ours, right, self.pattern.tolerance(self.inputs, self.params))[1]


@dataclass(frozen=True)
class _Watched:
    """What came of a run before the checkers' eyes.

    `unreached` are the lines asked about that no thread came to, `blocks` the most blocks that ran together.
    """

    findings: list[Finding]
    right: bool
    ended: bool
    unreached: Collection[int] = ()
    blocks: int = 0


def check_variant(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    given: Mapping[str, Any],
    tell: Tell,
    *,
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
) -> tuple[list[Finding], Check]:
    """Run one variant on the simulator, on a small part of its input, and return what its kernels do wrong.

    With it is told whether several orders agree, and what would mend a race. More of the input is taken where it would
    have several blocks and the small part has one.

    Raises
    ------
    InputError
        Where inputs and parameters are not ones that the pattern takes; nothing was run.
    KernelError
        Where a kernel does not compile, or is launched as no GPU would.
    """
    from gpu.simulator.checkers.report import diagnostics_of

    sources = sources or {}
    case, found, unreached = _looked_for(pattern, variant, inputs, given, tell, sources, seed)
    text, original = kernel_text(case.file, sources), kernel_text(case.file, {})
    mistakes = mistakes_of(found.findings, case.file)
    part = _parts(pattern, variant, pattern.check(given))[1]
    fewer = _small_case(pattern, variant, inputs, given, sources, seed, part)
    fewer = replace(fewer, multiprocessors=case.multiprocessors)

    def mends(edited: str) -> bool:
        changed = {**sources, case.file: edited}
        try:
            # First on little, which is quick; what is offered has mended what was seen.
            for each in (fewer, case):
                again = _watched(each.with_sources(changed), tell)
                if again.findings or not again.right:
                    return False
        except KernelError:
            return False
        return True

    orders = () if found.ended else ORDERS
    return found.findings, Check(
        mistakes=mistakes,
        diagnostics=diagnostics_of(found.findings, text, KERNELS / case.file),
        ended=found.ended,
        input=_in_words(pattern, case.params),
        orders=orders,
        ordered_input=_in_words(pattern, fewer.params),
        unreached=unreached if not found.findings else (),
        differing=tuple(schedule for schedule in orders if not _right_in(schedule, fewer, tell)),
        remedy=remedy_of(found.findings, mistakes, text, mends, original),
    )


def _looked_for(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    given: Mapping[str, Any],
    tell: Tell,
    sources: Mapping[str, str],
    seed: int,
) -> tuple[_Case, _Watched, tuple[int, ...]]:
    """Run cases until something is found, and return the last one, what came of it, and the edits no case came to."""
    refuse_library(variant)
    part = _parts(pattern, variant, pattern.check(given))[0]
    case = _small_case(pattern, variant, inputs, given, sources, seed, part)
    text, original = kernel_text(case.file, sources), kernel_text(case.file, {})
    edits = _edits(original.split("\n"), text.split("\n"))
    unreached: set[int] | None = None
    several = variant.alone  # one thread does it all
    cases = [replace(case, multiprocessors=many) for many in _MULTIPROCESSORS]
    widened = 0
    while cases:
        case = cases.pop(0)
        found = _watched(case, tell, edits.inserted)
        if found.findings:
            break
        several |= found.blocks > 1
        missed = set(found.unreached)
        if edits.removed:
            # What was taken out ran, or would have: only then the rest is right without it.
            before = case.with_sources({**sources, case.file: original})
            missed |= {edits.removed[line] for line in _unreached(before, tell, edits.removed)}
        unreached = missed if unreached is None else unreached & missed
        if not several and not cases and widened < _WIDENED:
            part, widened = part.wider, widened + 1
            wider = _small_case(pattern, variant, inputs, given, sources, seed, part)
            cases = [wider] if _shapes(wider) != _shapes(case) else []
    return case, found, tuple(sorted(unreached or ()))


def _shapes(case: _Case) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in case.inputs.items()}


def check_request(request: CheckPattern, tell: Tell) -> Check:
    """Carry out a CheckPattern; errors as of `check_variant`."""
    pattern = find_pattern(request.pattern)
    inputs = {name: handle.open() for name, handle in request.inputs.items()}
    variant = pattern.variant(request.variant)
    return check_variant(pattern, variant, inputs, request.params, tell, sources=request.sources, seed=request.seed)[1]


def small_params(pattern: Pattern, params: Mapping[str, Any], part: Small = _CHECKED) -> dict[str, Any]:
    """Return parameters for a check: as they are, but for fewer elements."""
    sizes = {
        "elements": part.elements,
        "bodies": part.bodies,
        "rows": part.rows,
        "columns": part.columns,
        "points": part.points,
    }
    most = {
        each.name: sizes[each.unit] for each in pattern.parameters if isinstance(each, Integer) and each.unit in sizes
    }
    return {name: min(value, most[name]) if name in most else value for name, value in params.items()}


def remedy_of(
    findings: Sequence[Finding],
    mistakes: Sequence[Mistake],
    text: str,
    mends: Callable[[str], bool],
    original: str = "",
) -> Remedy | None:
    """Return a line with which nothing is found any more, where races are all that was found and one does that.

    What was taken out of `original` is put back where that helps; else a barrier is tried around what races.
    """
    if not mistakes or {each.kind for each in mistakes} != {"race"}:
        return None
    lines = text.split("\n")
    tries = _taken_out(original.split("\n"), lines)
    barrier = "__syncwarp();" if all("__syncwarp()" in each.message for each in findings) else "__syncthreads();"
    around: Iterable[tuple[int, str]] = (
        (number, lines[number - 1][: -len(lines[number - 1].lstrip())] + barrier)
        for number in _places({line for each in mistakes for line in each.lines}, len(lines))
        if lines[number - 1].strip()
    )
    if not any("__sync" in each.message for each in findings):
        around = ()  # a fence or a wait would order it, and which one is not known
    for number, inserted in (*tries, *around):
        if mends("\n".join([*lines[: number - 1], inserted, *lines[number - 1 :]])):
            return Remedy(f"Insert {inserted.strip()} before line {number}", number, inserted)
    return None


def _taken_out(original: Sequence[str], lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield lines that only order threads and are not there any more, and before which line each stood."""
    for _, begin, end, first, last in SequenceMatcher(None, original, lines, autojunk=False).get_opcodes():
        for place in range(begin, end):
            if original[place : place + 1] == lines[first + place - begin : first + place - begin + 1]:
                continue
            if found := _ORDERING.fullmatch(original[place]):
                indent = original[place][: -len(original[place].lstrip())]
                yield min(first + place - begin, last) + 1, indent + found[1]


def _places(racing: Collection[int], last: int) -> Iterator[int]:
    """Yield the lines before which a barrier may help, those behind the race first."""
    first, end = min(racing, default=1), max(racing, default=0)
    behind, before = range(end + 1, end + 1 + _AROUND), range(first - 1, first - 1 - _AROUND, -1)
    places = (line for line in (*behind, *range(end, first - 1, -1), *before) if 1 <= line <= last)
    yield from islice(places, _MOST_TRIES)


@dataclass(frozen=True)
class _Edits:
    """The lines of a text that are not in another one, and those of that which are gone, with where each stood."""

    inserted: Collection[int]
    removed: Mapping[int, int]


def _edits(original: Sequence[str], lines: Sequence[str]) -> _Edits:
    inserted: list[int] = []
    removed: dict[int, int] = {}
    for tag, begin, end, first, last in SequenceMatcher(None, original, lines, autojunk=False).get_opcodes():
        if tag != "equal":
            inserted += range(first + 1, last + 1)
            removed |= {place + 1: min(first + place - begin, max(last - 1, first)) + 1 for place in range(begin, end)}
    return _Edits(inserted, removed)


def _small_case(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    given: Mapping[str, Any],
    sources: Mapping[str, str],
    seed: int,
    part: Small,
) -> _Case:
    """Return a variant on a small part of its input."""
    params = small_params(pattern, pattern.check(given), part)
    return _Case(pattern, variant, small_inputs(pattern, inputs, params, seed, part), params, sources)


def _parts(pattern: Pattern, variant: Variant, params: Mapping[str, Any]) -> tuple[Small, Small]:
    """Return the part of an input that a variant is checked on, and the one that it runs on in other orders."""
    if variant.alone:
        return _ALONE, _ALONE
    if variant.checked is not None:
        side = variant.checked(params)
        return replace(_CHECKED, rows=side, columns=side), _ORDERED
    n = pattern.elements(small_params(pattern, params))
    book = None if n is None else pattern.textbook_of(variant, params, n)
    return _LONG if book is not None and book.steps > _MANY_STEPS else (_CHECKED, _ORDERED)


def _watched(case: _Case, tell: Tell, lines: Collection[int] = ()) -> _Watched:
    """Run before the checkers' eyes; of some lines of the variant's file it is told whether threads came to them."""
    from gpu.engines.checking import CheckingEngine  # a GPU's process has no use for it

    accept(case.pattern, case.variant, case.inputs, case.params)
    with closing(CheckingEngine()) as engine:
        engine.max_seconds = _SECONDS
        try:
            right = case.runs_right(engine, tell)
        except LaunchError:
            if not engine.findings:
                raise
            return _Watched(engine.findings, right=False, ended=True)
        unreached = engine.unreached(case.file, lines, case.kernels) if lines else ()
        return _Watched(engine.findings, right, ended=False, unreached=unreached, blocks=engine.blocks)


def _unreached(case: _Case, tell: Tell, lines: Collection[int]) -> Collection[int]:
    """Return those of some lines of the variant's file that no thread comes to."""
    from gpu.engines.checking import CheckingEngine

    with closing(CheckingEngine(checks=False)) as engine:
        engine.max_seconds = _SECONDS
        case.runs_right(engine, tell)
        return engine.unreached(case.file, lines, case.kernels)


def _right_in(schedule: str, case: _Case, tell: Tell) -> bool:
    """Return whether the result is right when threads run in another order."""
    from gpu.engines.simulator import SimulatorEngine

    with closing(SimulatorEngine("lockstep", schedule=schedule)) as engine:
        try:
            return case.runs_right(engine, tell)
        except LaunchError:
            return False


def small_inputs(pattern: Pattern, inputs: Inputs, params: Mapping[str, Any], seed: int, part: Small) -> Inputs:
    """Return inputs for a check: the beginnings of arrays, and of what has two dimensions a corner."""
    rows, columns = part.image if pattern.takes(params) == "image" else (part.columns, part.columns)

    def corner(values: Array) -> Array:
        if values.ndim >= 2:
            return values[:rows, :columns]
        return values[: part.elements] if values.ndim else values

    return pattern.inputs({name: corner(values) for name, values in inputs.items()}, params, seed)


def _in_words(pattern: Pattern, params: Mapping[str, Any]) -> str:
    """Return what a pattern was checked on."""
    said = (pattern.size, pattern.parameter(Role.BLOCK))
    return ", ".join(f"{each.name} = {params[each.name]}" for each in said if each is not None and each.name in params)
