"""Remove synchronization from the kernels, one item at a time, and check that no verdict is "verified": tools.barriers.

Each `__syncthreads()`, `__syncwarp()`, cluster barrier, fence, `volatile` and wait for copies or products of every
kernel file is removed in turn, and every variant that executes it is checked like an edited text before its run. The
verdict must be a finding, another result in another schedule, or that the edit was not executed; otherwise the item
must be in `HARMLESS`, with the reason. `--jobs N` removes N items at the same time, each in a separate process.
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
from gpu.messages.verdicts import decide_verdict
from gpu.patterns import all_patterns, find_pattern
from gpu.run.kernel_check import check_variant
from gpu.run.workload import Workload

_SYNC_ITEM = re.compile(
    r"__sync(?:threads|warp)(?:_\w+)?\s*\([^;]*?\)\s*;|__threadfence(?:_\w+)?\s*\(\s*\)\s*;"
    r"|asm volatile\(\"(?:fence|wgmma\.(?:fence|commit_group|wait_group))[^\"]*\" ::: \"memory\"\);"
    r"|__pipeline_wait_prior\([^;]*\);|\bcluster\.(?:sync|barrier_arrive|barrier_wait)\(\);|(?<!asm )\bvolatile\b"
)
_FUNCTION = re.compile(r"^(?!typedef)(?=\w)[^;={}]*?\b(\w+)\((?:[^;{}]|\n)*?\)\s*\{", re.MULTILINE)
_BOUNDS = re.compile(r"__(?:launch_bounds|cluster_dims)__\([^()]*\)")
_STATEMENT_BODY = re.compile(r"(?:\)|\belse|\bdo)\s*\Z")

HARMLESS = {
    (
        "sort_quick.cu",
        "select_places",
        "__syncthreads();",
        2,
    ): "No thread accesses these keys again: the block is done, "
    "or reaches the barrier at the start of the next round of sort_alone.",
    (
        "sort_quick.cu",
        "part_keys",
        "__syncthreads();",
        6,
    ): "The keys moved last equal the pivot, and neither the parts' "
    "launches nor the next round of sort_alone, which begins with a barrier, access them.",
    ("sort_onesweep.cu", "scan_digits", "__syncthreads();", 2): "A thread reads and writes its own digits afterwards, "
    "and both callers reach a barrier before the totals are written again.",
    (
        "reduction.cu",
        "finish",
        "__threadfence();",
        2,
    ): "The partial values are read by __ldcg, from the L2 cache, where "
    "the writers' fences have put them, and the barrier keeps the reads after the ticket. PTX's memory model requires "
    "the fence, so it stays; no known GPU makes a difference.",
    (
        "histogram.cu",
        "move_sums",
        "__threadfence();",
        2,
    ): "The sums are read by __ldcg, like reduction's partial values.",
    (
        "matmul_wgmma.cu",
        "matmul_fp16",
        "__syncwarp();",
        1,
    ): "Only lane 0 of this warp accesses memory. The barrier of "
    "a cluster that may follow counts threads, not warps: nvcc emits it without .aligned.",
}
"""Items that may be removed: file, function, text and the occurrence of the text in the function, with the reason."""

EXTRA_PARAMS: dict[str, tuple[Params, ...]] = {
    "histogram": ({"bins": 100, "blocks": 3},),
    "matmul": ({"tile": "8"}, {"dtype": "float16"}),
    "reduction": ({"block": "512"}, {"block": "1024"}),
    "sort": ({"result": "places"}, {"n": 40_000}, {"n": 40_000, "result": "places"}),
}
"""Parameters of a pattern with which variants execute items that they do not execute by default."""

CLUSTER_PARAMS: dict[str, Params] = {
    "matmul": {"n": 16, "m": 16, "k": 2048},
    "sort": {"n": 5000},
}
"""Parameters with which the checkers see clusters; by default, matmul has them in edge cases alone."""


@dataclass(frozen=True)
class SyncItem:
    """An item of a kernel file that orders threads; `occurrence` counts equal items in its function, from 1."""

    file: str
    function: str
    in_kernel: bool
    text: str
    occurrence: int
    line: int
    offset: int

    def is_used_by(self, pattern: Pattern, variant: Variant) -> bool:
        """Return whether it is in a kernel of a variant, or in a function that a variant may call."""
        kernels = (*variant.kernels, *pattern.helpers.get(self.file, ()))
        return self.function in kernels or not self.in_kernel

    @property
    def harmless_reason(self) -> str:
        """Why it may be removed; "" if it may not."""
        return HARMLESS.get((self.file, self.function, self.text, self.occurrence), "")

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.text}"


@dataclass(frozen=True)
class Removal:
    """Verdict on a variant without an item that orders its threads."""

    item: SyncItem
    variant: str
    params: Params
    kind: str
    verdict_text: str
    has_fix: bool
    """Whether the check offered a fix that removes the findings."""

    @property
    def missed(self) -> bool:
        """Whether it was verified although it is not known to be harmless."""
        return self.kind == "verified" and not self.item.harmless_reason


def find_sync_items(file: str) -> list[SyncItem]:
    """Return all items that order threads in a kernel file, in the order of the text."""
    text = kernel_text(file, {})
    blanked = _BOUNDS.sub(lambda bounds: " " * len(bounds[0]), text)
    functions = [(match.start(), match[1], "__global__" in match[0]) for match in _FUNCTION.finditer(blanked)]
    seen: Counter[tuple[str, str]] = Counter()
    items = []
    for each in _SYNC_ITEM.finditer(text):
        begin = text.rfind("\n", 0, each.start()) + 1
        if "//" in text[begin : each.start()]:
            continue
        # A qualifier of a parameter belongs to the function that begins before it.
        _, function, in_kernel = [entry for entry in functions if entry[0] <= each.start()][-1]
        seen[function, each[0]] += 1
        line = text.count("\n", 0, each.start()) + 1
        items.append(SyncItem(file, function, in_kernel, each[0], seen[function, each[0]], line, each.start()))
    return items


def remove_item(item: SyncItem) -> str:
    """Return the file's text with the item replaced by spaces."""
    text = kernel_text(item.file, {})
    before, after = text[: item.offset], text[item.offset + len(item.text) :]
    blank = " " * len(item.text)
    if item.text != "volatile" and _STATEMENT_BODY.search(before):
        blank = ";" + blank[1:]
    return before + blank + after


def check_without_item(pattern: Pattern, variant: Variant, item: SyncItem, params: Params) -> Removal:
    """Check a variant without an item that orders its threads.

    Parameters
    ----------
    variant : Variant
        A variant that uses the item.
    item : SyncItem
        The item to remove from its kernel file.
    params : mapping
        Values of some parameters; the others have their defaults.
    """

    def ignore_progress(_: Progress) -> None:
        """Ignore the progress."""

    sources = {item.file: remove_item(item)}
    check = check_variant(
        Workload(pattern, variant, _make_inputs(pattern), pattern.check(params), sources=sources), ignore_progress
    )[1]
    # Assume that the result is correct: being correct by chance must not prove anything.
    verdict = decide_verdict(True, edited=True, check=check, lesson=variant.deliberate_error)
    return Removal(item, variant.name, params, verdict.kind, verdict.words, check.remedy is not None)


def check_all_removals(names: Sequence[str] = (), jobs: int = 1) -> Iterator[Removal]:
    """Yield the verdicts on every variant without each of its items, in the order of the files.

    Parameters
    ----------
    names : sequence of str
        The patterns; empty for all.
    jobs : int
        Items removed at the same time.
    """
    work = [
        (pattern.name, variant.name, ordering)
        for pattern in all_patterns().values()
        if not names or pattern.name in names
        for variant in pattern.variants
        if not variant.library
        for ordering in find_sync_items(pattern.kernel_file_of(variant.name))
        if ordering.is_used_by(pattern, variant)
    ]
    if jobs == 1:
        for each in work:
            yield from _check_item(each)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for removals in pool.map(_check_item, work):
            yield from removals


def _check_item(task: tuple[str, str, SyncItem]) -> list[Removal]:
    """Remove an item with the first parameters that execute it, or with all parameters of the pattern."""
    name, variant_name, ordering = task
    pattern = find_pattern(name)
    variant = pattern.variant(variant_name)
    removals = []
    by_default = ({}, *EXTRA_PARAMS.get(name, ()))
    for params in (CLUSTER_PARAMS.get(name, {}),) if ordering.text.startswith("cluster.") else by_default:
        all_params = pattern.check(params)
        if variant.obstacle(pattern.prepare_inputs(_make_inputs(pattern), all_params, 1), all_params):
            continue
        removals.append(check_without_item(pattern, variant, ordering, params))
        if removals[-1].kind != "unchecked":
            break
    return removals


def _make_inputs(pattern: Pattern) -> Inputs:
    """Return an image with unaligned rows for a pattern of images; else nothing: the pattern generates its input."""
    if not pattern.is_image_pattern:
        return {}
    image = np.random.default_rng(5).integers(0, 256, (240, 319), np.uint8)
    return {"image": image, "maxval": np.array(255, np.uint32)}


def main() -> int:
    """Remove all items, and return 1 if any removal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.barriers", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="patterns to check (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="removals at the same time (default: 1)")
    arguments = parser.parse_args()
    began = time.monotonic()
    removals = []
    for each in check_all_removals(arguments.patterns, arguments.jobs):
        removals.append(each)
        if each.missed:
            print(f"MISSED {each.item}: {each.variant} {dict(each.params)}", flush=True)
    print(format_report(removals))
    print(f"{time.monotonic() - began:.0f} s")
    return any(removal.missed for removal in removals)


def format_report(removals: Sequence[Removal]) -> str:
    """Return a table with one row per file: the number of removals, and their results."""
    rows = ["| file | removed | found | fixed by an offered edit | harmless | executed by no variant | missed |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    files = list(dict.fromkeys(removal.item.file for removal in removals))
    sums = Counter[str]()
    for file in files:
        counts = Counter[str]()
        for ordering in find_sync_items(file):
            of_item = [removal for removal in removals if removal.item == ordering]
            detected = [each for each in of_item if each.kind not in ("unchecked", "verified")]
            counts["all"] += 1
            counts["missed"] += any(each.missed for each in of_item)
            if ordering.harmless_reason:
                counts["harmless"] += 1
            elif detected:
                counts["found"] += 1
                counts["fixed"] += any(each.has_fix for each in detected)
            else:
                counts["unreached"] += 1
        sums += counts
        rows.append(_format_row(file, counts))
    rows.append(_format_row("**all**", sums))
    return "\n".join(rows)


def _format_row(name: str, counts: Counter[str]) -> str:
    columns = ("all", "found", "fixed", "harmless", "unreached", "missed")
    return f"| {name} | {' | '.join(str(counts[column]) for column in columns)} |"


if __name__ == "__main__":
    sys.exit(main())
