"""The benchmark page: a selection of the measured rows, as tables for a reader.

Every figure is a cell of a data file, or a count, minimum or maximum of cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gpu.bench.pages.sections import ResultSection, ResultTable

_HEAD = """# Benchmarks

`python main.py bench` measured the figures on this page, except for those of the timing model (`python -m
tools.model_bench`) and of several devices (`python -m tools.cluster_bench`). It compares our variants (bold) with their
*peers*, the library routines that a user could call instead, in the same run. A variant is verified against the
reference result before it is timed. Times are medians, from device events around the kernels alone; on the simulator,
from a clock. The launches of a variant are timed together, like a peer's; before 2026-11-27 each was timed separately,
with a cold cache. Rates in GB/s count the minimum traffic: each input read once, each result written once. A *speedup*
is the peer's time divided by ours. A goal such as *half of SciPy* is a speed: at most twice SciPy's time.

The page shows a selection of the rows, and every missed target. `python main.py bench --show "Over sizes"` prints a
section with all rows, from the data files in `docs/benchmarks/`. `python main.py bench --show` lists the sections.
[Performance limits](limits.md) explains what limits the fastest variants.
"""
_ABOUT_LADDER = """\
The fastest of our variants and the best peer, at the largest measured size of each kind of work."""
_ABOUT_MISSED = """\
Benchmarks in which our fastest variant is slower than the best peer, with its speedup over the peer, and other missed
goals. [Performance limits](limits.md) gives the reasons, and the targets of single variants."""
_ABOUT_TIMING = """\
The timing model's times compared with measured ones. An error is the difference of the two times, divided by the
measured one. Tau is Kendall's rank correlation between the modeled and the measured order of a ladder's variants, at
one size, averaged over the sizes. *Foreign* kernels are from tutorials and samples. No constant was fitted to *held
out* cases, but the timing model gained effects that two foreign kernels and some cases of the sparse product had shown
to be missing. Where a cell has two figures, the first is with code from nvcc. The second is without nvcc, with PTX that
LLVM generates and estimated register counts; nothing was fitted to those cases."""
_ABOUT_COUNTERS = """\
The timing model's counts compared with Nsight Compute's: the share of launches within 15%, and the median error."""
_ABOUT_WINDOW = """\
Each cell has the smallest and the largest median of all recordings; after the slash, the largest 95th percentile."""

_WORK, _WHO, _MEDIAN, _SPREAD, _RATE, _SHARE, _REMARK = range(7)
"""Columns of a table of variants and peers; see `measurement.table`."""
_LADDER = ("work", "variant or peer", "median ms")
_OVER = ("work", "size", "ours", "median ms")
_OVER_SUMMARY = ("work", "sizes")
_CASES = ("cases", "held out", "number")
_GOALS = ("goal", "ours")
_COUNTERS = ("launches of", "number")
_TOTALS = ("all of ours", "ours, held out", "foreign", "foreign, held out")
_MODEL, _WITHOUT_NVCC = "Timing model on ", "Timing model without nvcc on "
_COUNTED, _COST = "Timing model's counters on ", "Timing model's cost"
_LOCKSTEP = ", in lockstep"
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:\^\d+)?")


def render(sections: Sequence[ResultSection]) -> str:
    """Return the page for sections in any order."""
    rest = {section.name: section for section in sections}
    parts = [_HEAD]

    def add(name: str, blocks: Callable[[ResultSection], Iterable[str]]) -> None:
        if section := rest.pop(name, None):
            parts.append("\n\n".join((section.title, *map(_on_one_line, blocks(section)))))

    add("GPU", _ladder)
    for name in sorted(name for name in rest if name.startswith("Over sizes")):
        add(name, _over_sizes)
    missed = tuple(row for section in sections for row in _missed(section))
    if missed:
        table = _table(("section", "work", "missed"), missed, 0)
        parts.append(f"## Missed targets\n\n{_on_one_line(_ABOUT_MISSED)}\n\n{table}")
    add("Simulator", _ladder)
    add("Several devices", _devices)
    add("Streamed from a disk", _everything)
    if timing := [rest.pop(name) for name in list(rest) if name.startswith("Timing model")]:
        parts.append("\n\n".join(("## Timing model", *map(_on_one_line, _timing(timing)))))
    add("Window", _window)
    for name in list(rest):
        add(name, _everything)
    return "\n".join(part.strip() + "\n" for part in parts)


def _on_one_line(block: str) -> str:
    """Return a paragraph on one line; a table is unchanged."""
    return block if block.startswith("|") else " ".join(block.split())


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: int) -> str:
    """Return a Markdown table with the last `numeric` columns right-aligned."""
    right = tuple(index >= len(columns) - numeric for index in range(len(columns)))
    return ResultTable(tuple(columns), right, tuple(map(tuple, rows))).markdown()


def _everything(section: ResultSection) -> Iterator[str]:
    for block in section.blocks:
        yield block if isinstance(block, str) else block.markdown()


def _ladder(section: ResultSection) -> Iterator[str]:
    """Yield the fastest variant and the best peer of the largest work of each kind."""
    yield " ".join((*section.texts, _ABOUT_LADDER))
    largest: dict[str, tuple[float, tuple[str, ...]]] = {}
    for work, rows in _works(section).items():
        line = _headline(work, rows)
        # All works of the lockstep executor are missed targets, and listed there.
        if line is None or work.endswith(_LOCKSTEP):
            continue
        kind = re.sub(_NUMBER, "N", work).replace("N x N, N x N", "N x N")
        if kind not in largest or largest[kind][0] < _size_of(work):
            largest[kind] = (_size_of(work), line)
    columns = ("work", "fastest of ours", "median ms", "rate", "best peer", "median ms", "speedup", "remark")
    lines = [line for _, line in largest.values()]
    shown = len(columns) if any(line[-1] for line in lines) else len(columns) - 1
    yield _table(columns[:shown], (line[:shown] for line in lines), 0)


def _size_of(work: str) -> float:
    """Return the product of the numbers in the name of a work."""
    product = 1.0
    for number in _NUMBER.findall(work):
        base, _, exponent = number.partition("^")
        product *= float(base) ** int(exponent or 1)
    return product


def _works(section: ResultSection) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of each work of a table of variants and peers."""
    found: dict[str, list[tuple[str, ...]]] = {}
    table = section.table(*_LADDER)
    for row in table.rows if table else ():
        found.setdefault(row[_WORK], []).append(row)
    return found


def _fastest(rows: Iterable[tuple[str, ...]], *, ours: bool) -> tuple[str, ...] | None:
    """Return the row with the largest speedup, or the shortest time if there is no peer; None without a time."""
    timed = [row for row in rows if row[_MEDIAN] and row[_WHO].startswith("**") is ours]
    # A peer may do a part of the work, so its time alone does not compare.
    return min(timed, key=lambda row: (-_speedup(row[_SHARE]), float(row[_MEDIAN])), default=None)


def _headline(work: str, rows: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the cells of a work; None if it has neither a peer nor a goal."""
    ours, peer = _fastest(rows, ours=True), _fastest(rows, ours=False)
    failures = [f"{row[_WHO].strip('*')}: {row[_REMARK]}" for row in rows if not row[_MEDIAN]]
    goal = re.search(r"goal: .*", ours[_REMARK]) if ours else None
    if goal is None and not failures and peer is None:
        return None
    remark = "; ".join(([re.sub(r"^verified(; )?", "", ours[_REMARK])] if goal and ours else []) + failures)
    ours_cells = (ours[_WHO], ours[_MEDIAN], ours[_RATE]) if ours else ("", "", "")
    peer_cells = (peer[_WHO], peer[_MEDIAN]) if peer else ("", "")
    return (work, *ours_cells, *peer_cells, ours[_SHARE] if ours and peer else "", remark)


def _over_sizes(section: ResultSection) -> Iterator[str]:
    """Yield the summary of each work, with the figures of its largest size."""
    yield from section.texts
    summary, rows = section.table(*_OVER_SUMMARY), section.table(*_OVER)
    if summary is None or rows is None:
        return
    last = {row[0]: row for row in rows.rows}
    lines = []
    for line in summary.rows:
        row = last.get(line[0])
        # Shapes such as 4 x 2 x 3 have no order, so none of them is the largest.
        shown = (row[1], row[3], f"{row[5]}, {row[6]}", row[7]) if row and " x " not in row[1] else ("",) * 4
        lines.append((*line, *shown))
    yield _table((*summary.columns, "largest", "ours, ms", "best peer, ms", "speedup"), lines, 0)


def _devices(section: ResultSection) -> Iterator[str]:
    """Yield the section without the rows of one device and the times of steps."""
    hidden = ("its steps, ms", "ms to and from the host")
    for block in section.blocks:
        if isinstance(block, str):
            yield block
        elif "devices" in block.columns:
            kept_indices = [index for index, column in enumerate(block.columns) if column not in hidden]
            at = block.columns.index("devices")
            rows = [tuple(row[place] for place in kept_indices) for row in block.rows if row[at] != "1"]
            columns = tuple(block.columns[place] for place in kept_indices)
            yield replace(
                block, columns=columns, numeric=tuple(block.numeric[place] for place in kept_indices), rows=tuple(rows)
            ).markdown()
        else:
            yield block.markdown()


def _timing(sections: Sequence[ResultSection]) -> Iterator[str]:
    """Yield the accuracy of the timing model on all GPUs, and its cost."""
    yield from _accuracy(sections)
    counted: list[tuple[str, ...]] = []
    columns: tuple[str, ...] = _COUNTERS
    for section in sections:
        if section.name.startswith(_COUNTED) and (table := section.table(*_COUNTERS)):
            columns = (*table.columns[:2], *(name.partition(" within")[0] for name in table.columns[2:]))
            counted += [(_gpu(section), *row) for row in table.rows if row[0] in _TOTALS]
    if counted:
        yield _ABOUT_COUNTERS
        yield _table(("GPU", *columns), counted, len(columns) - 1)
    for section in sections:
        if section.name == _COST:
            yield " ".join(text for text in section.texts if not text.endswith(":"))  # others introduce a table


def _accuracy(sections: Sequence[ResultSection]) -> Iterator[str]:
    """Yield the errors on each GPU, with code from nvcc and without."""
    columns: tuple[str, ...] = ()
    figures: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    remarks: dict[str, list[str]] = {}
    for section in sections:
        for prefix in (_MODEL, _WITHOUT_NVCC):
            if not section.name.startswith(prefix):
                continue
            if table := section.table(*_CASES):
                columns = table.columns[2:]
                for row in table.rows:
                    if row[0] in _TOTALS:
                        figures.setdefault((_gpu(section), row[0]), {})[prefix] = row[2:]
            for text in section.texts[1:]:
                remarks.setdefault(text, []).append(section.name)
    if figures:
        yield _ABOUT_TIMING
        empty = ("-",) * len(columns)
        rows = [
            (*key, *map(_pair, found.get(_MODEL, empty), found.get(_WITHOUT_NVCC, empty)))
            for key, found in figures.items()
        ]
        yield _table(("GPU", "cases", *columns), rows, len(columns))
    if remarks:
        yield " ".join(f"{', '.join(names)}: {text}" for text, names in remarks.items())


def _pair(with_nvcc: str, without: str) -> str:
    return with_nvcc if with_nvcc == without else f"{with_nvcc} / {without}"


def _gpu(section: ResultSection) -> str:
    return f"{section.device}, {section.date}"


def _window(section: ResultSection) -> Iterator[str]:
    """Yield the range of the medians, and the largest 95th percentile, of each picture's moves."""
    for block in section.blocks:
        if isinstance(block, str):
            yield block
            continue
        at = block.columns.index("picture")
        moves = block.columns[at + 1 :]
        rows = []
        for picture in dict.fromkeys(row[at] for row in block.rows):
            chosen = [row for row in block.rows if row[at] == picture]
            rows.append(
                (
                    picture,
                    f"{len(chosen)}",
                    *(_range(row[index] for row in chosen) for index in range(at + 1, at + 1 + len(moves))),
                )
            )
        yield _ABOUT_WINDOW
        yield _table(("picture", "recordings", *moves), rows, len(moves) + 1)


def _range(cells: Iterable[str]) -> str:
    found = [cell.split(" / ") for cell in cells if " / " in cell]
    if not found:
        return ""
    medians = sorted((median for median, _ in found), key=float)
    return f"{medians[0]} to {medians[-1]} / {max((late for _, late in found), key=float)}"


def _missed(section: ResultSection) -> Iterator[tuple[str, str, str]]:
    """Yield section, work and result of each case that is slower than its best peer or misses a goal."""
    slower: dict[str, list[str]] = {}
    for work, rows in _works(section).items():
        ours = _fastest(rows, ours=True)
        peer = _fastest(rows, ours=False)
        if ours and peer and _speedup(ours[_SHARE]) < 1:
            slower.setdefault(peer[_WHO], []).append(f"{work}: {ours[_SHARE]}")
        for row in rows:
            if "WRONG" in row[_REMARK]:
                yield section.name, work, f"{row[_WHO]}: {row[_REMARK]}"
            elif _exceeds_its_limit(row):
                yield section.name, f"{work}, {row[_WHO]}", f"{row[_SPREAD]} ms; {row[_REMARK]}"
    for peer_name, works in slower.items():
        yield section.name, f"slower than {peer_name}", "; ".join(works)
    over = section.table(*_OVER)
    for work in dict.fromkeys(row[0] for row in over.rows) if over else ():
        cells = (
            [f"{row[7]} at {row[1]}" for row in over.rows if row[0] == work and _speedup(row[7]) < 1] if over else []
        )
        if cells:
            yield section.name, work, ", ".join(cells)
    goals = section.table(*_GOALS)
    failed = [
        f"{row[0]}, {group}: {row[place]}"
        for row in (goals.rows if goals else ())
        for group, place in (("ours", 1), ("foreign", 3))
        if "missed" in row[place + 1]
    ]
    if failed:
        yield section.name, "accuracy", "; ".join(failed)


def _exceeds_its_limit(row: Sequence[str]) -> bool:
    """Return whether a row exceeds the milliseconds that its remark allows: the stated ones, or the slowest."""
    limit = re.search(r"goal: at most (\d+) ms", row[_REMARK])
    if limit is None or not row[_SPREAD]:
        return False
    stated = re.match(r"(\d+) ms", row[_REMARK])
    return float(stated[1] if stated else row[_SPREAD].split(" to ")[1]) > float(limit[1])


def _speedup(cell: str) -> float:
    return float(cell.removesuffix(" x")) if cell else 0.0
