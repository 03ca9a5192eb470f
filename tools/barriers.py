"""Take what orders threads out of the kernels, one by one, and see that no verdict is "verified": tools.barriers.

Each `__syncthreads()`, `__syncwarp()`, fence, `volatile` and wait for copies or products of every kernel file goes in
turn, and every variant that comes to it is checked as an edited text is before its run. What is then said must be a
finding, another result in another order, or that what was edited did not run; or it stands in `HARMLESS`, which says
why. `--jobs N` takes out N at the same time, each in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from gpu.declaration.pattern import Inputs, Params, Pattern, Progress, Variant
from gpu.engines.base import kernel_text
from gpu.messages.verdicts import verdict_of
from gpu.patterns import all_patterns, find_pattern
from gpu.run.check import check_variant

_ORDERING = re.compile(
    r"__sync(?:threads|warp)(?:_\w+)?\s*\([^;]*?\)\s*;|__threadfence(?:_\w+)?\s*\(\s*\)\s*;"
    r"|asm volatile\(\"(?:fence|wgmma\.(?:fence|commit_group|wait_group))[^\"]*\" ::: \"memory\"\);"
    r"|__pipeline_wait_prior\([^;]*\);|(?<!asm )\bvolatile\b"
)
_FUNCTION = re.compile(r"^(?!typedef)(?=\w)[^;={}]*?\b(\w+)\((?:[^;{}]|\n)*?\)\s*\{", re.MULTILINE)
_BOUNDS = re.compile(r"__launch_bounds__\([^()]*\)")
_ONLY_BODY = re.compile(r"(?:\)|\belse|\bdo)\s*\Z")

HARMLESS = {
    ("sort_quick.cu", "select_places", "__syncthreads();", 2): "No thread touches these keys again: the block is done, "
    "or comes to the barrier that begins the next round of sort_alone.",
    ("sort_quick.cu", "part_keys", "__syncthreads();", 6): "What was moved last are the keys equal to the pivot, which "
    "neither the parts' launches nor the next round of sort_alone touch; that begins with a barrier.",
    ("sort_onesweep.cu", "scan_digits", "__syncthreads();", 2): "A thread reads and writes its own digits afterwards, "
    "and both callers come to a barrier before the totals are written again.",
    ("reduction.cu", "finish", "__threadfence();", 2): "The partial values are read by __ldcg, from the L2 cache where "
    "the writers' fences have left them, and the barrier keeps that behind the ticket. PTX's memory model asks for the "
    "fence, which is why it stands there; no GPU is known that could tell.",
    ("histogram.cu", "move_sums", "__threadfence();", 2): "The sums are read by __ldcg, as reduction's partials are.",
}
"""What may be taken out: the file, the function, the text, and which of those in that function it is, to the reason."""

FURTHER: dict[str, tuple[Params, ...]] = {
    "histogram": ({"bins": 100, "blocks": 3},),
    "matmul": ({"tile": "8"}, {"dtype": "float16"}),
    "reduction": ({"block": "512"}, {"block": "1024"}),
    "sort": ({"result": "places"}, {"n": 40_000}, {"n": 40_000, "result": "places"}),
}
"""Settings of a pattern with which variants come to what they do not come to by default."""


@dataclass(frozen=True)
class Ordering:
    """Something in a kernel file that orders threads, and which of its like in its function it is, from 1."""

    file: str
    function: str
    in_kernel: bool
    text: str
    place: int
    line: int
    offset: int

    def is_of(self, pattern: Pattern, variant: Variant) -> bool:
        """Whether it stands in a kernel of a variant, or in what is no variant's and perhaps called by one."""
        kernels = (*variant.kernels, *pattern.helpers.get(self.file, ()))
        return self.function in kernels or not self.in_kernel

    @property
    def harmless(self) -> str:
        """Why it may be taken out; "" where it may not."""
        return HARMLESS.get((self.file, self.function, self.text, self.place), "")

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.text}"


@dataclass(frozen=True)
class TakenOut:
    """What was said of a variant without something that orders its threads."""

    ordering: Ordering
    variant: str
    params: Params
    kind: str
    words: str
    mended: bool
    """Whether an edit was offered with which nothing is found."""

    @property
    def missed(self) -> bool:
        """Whether it was verified, and is not known to be harmless."""
        return self.kind == "verified" and not self.ordering.harmless


def orderings(file: str) -> list[Ordering]:
    """Return all that orders threads in a kernel file, in the order of the text."""
    text = kernel_text(file, {})
    named = _BOUNDS.sub(lambda bounds: " " * len(bounds[0]), text)
    functions = [(found.start(), found[1], "__global__" in found[0]) for found in _FUNCTION.finditer(named)]
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for each in _ORDERING.finditer(text):
        begin = text.rfind("\n", 0, each.start()) + 1
        if "//" in text[begin : each.start()]:
            continue
        # A parameter stands behind the beginning of what it is of.
        _, function, in_kernel = [found for found in functions if found[0] <= each.start()][-1]
        seen[function, each[0]] += 1
        line = text.count("\n", 0, each.start()) + 1
        found.append(Ordering(file, function, in_kernel, each[0], seen[function, each[0]], line, each.start()))
    return found


def without(ordering: Ordering) -> str:
    """Return the file's text without it, everything else in its place."""
    text = kernel_text(ordering.file, {})
    before, after = text[: ordering.offset], text[ordering.offset + len(ordering.text) :]
    blank = " " * len(ordering.text)
    if ordering.text != "volatile" and _ONLY_BODY.search(before):
        blank = ";" + blank[1:]
    return before + blank + after


def take_out(pattern: Pattern, variant: Variant, ordering: Ordering, params: Params) -> TakenOut:
    """Check a variant without something that orders its threads."""

    def tell(_: Progress) -> None:
        """Nobody watches."""

    sources = {ordering.file: without(ordering)}
    check = check_variant(pattern, variant, _inputs(pattern), pattern.check(params), tell, sources=sources)[1]
    # The result counts as right: what happens to be right must not be taken for a proof.
    verdict = verdict_of(True, edited=True, check=check, lesson=variant.cautionary)
    return TakenOut(ordering, variant.name, params, verdict.kind, verdict.words, check.remedy is not None)


def all_taken_out(names: Sequence[str] = (), jobs: int = 1) -> Iterator[TakenOut]:
    """Yield what is said of every variant without each of what orders its threads, in the order of the files.

    Parameters
    ----------
    names : sequence of str
        The patterns; all, if there is none.
    jobs : int
        How many are taken out at the same time.
    """
    work = [
        (pattern.name, variant.name, ordering)
        for pattern in all_patterns().values()
        if not names or pattern.name in names
        for variant in pattern.variants
        if not variant.library
        for ordering in orderings(pattern.file_of(variant.name))
        if ordering.is_of(pattern, variant)
    ]
    if jobs == 1:
        for each in work:
            yield from _taken_out(each)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for found in pool.map(_taken_out, work):
            yield from found


def _taken_out(what: tuple[str, str, Ordering]) -> list[TakenOut]:
    """Take it out with the settings of the pattern that come to it, or with all that there are."""
    name, variant, ordering = what
    pattern = find_pattern(name)
    chosen = pattern.variant(variant)
    found = []
    for params in ({}, *FURTHER.get(name, ())):
        checked = pattern.check(params)
        if chosen.obstacle(pattern.inputs(_inputs(pattern), checked, 1), checked):
            continue
        found.append(take_out(pattern, chosen, ordering, params))
        if found[-1].kind != "unchecked":
            break
    return found


def _inputs(pattern: Pattern) -> Inputs:
    """Return an image where one is taken, whose rows begin anywhere, and else nothing: the pattern makes it."""
    if not pattern.of_images:
        return {}
    image = np.random.default_rng(5).integers(0, 256, (240, 319), np.uint8)
    return {"image": image, "maxval": np.array(255, np.uint32)}


def main() -> int:
    """Take all out, and return 1 where any is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.barriers", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="only these patterns")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time (1)")
    arguments = parser.parse_args()
    began = time.monotonic()
    found = []
    for each in all_taken_out(arguments.patterns, arguments.jobs):
        found.append(each)
        if each.missed:
            print(f"MISSED {each.ordering}: {each.variant} {dict(each.params)}", flush=True)
    print(report(found))
    print(f"{time.monotonic() - began:.0f} s")
    return any(each.missed for each in found)


def report(found: Sequence[TakenOut]) -> str:
    """Return a table of files: how many there are, and what came of them in the variants that come to them."""
    rows = ["| file | taken out | found | mended by an offered edit | harmless | reached by no variant | missed |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    files = list(dict.fromkeys(each.ordering.file for each in found))
    sums = Counter[str]()
    for file in files:
        counts = Counter[str]()
        for ordering in orderings(file):
            of_it = [each for each in found if each.ordering == ordering]
            told = [each for each in of_it if each.kind not in ("unchecked", "verified")]
            counts["all"] += 1
            counts["missed"] += any(each.missed for each in of_it)
            if ordering.harmless:
                counts["harmless"] += 1
            elif told:
                counts["told"] += 1
                counts["mended"] += any(each.mended for each in told)
            else:
                counts["unreached"] += 1
        sums += counts
        rows.append(_row(file, counts))
    rows.append(_row("**all**", sums))
    return "\n".join(rows)


def _row(name: str, counts: Counter[str]) -> str:
    columns = ("all", "told", "mended", "harmless", "unreached", "missed")
    return f"| {name} | {' | '.join(str(counts[each]) for each in columns)} |"


if __name__ == "__main__":
    sys.exit(main())
