"""SVG of a distributed run: its task graph, and a timeline of its workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from gpu.base.drawing import THEMES, format_svg, format_text
from gpu.distributed.task_layout import (
    TaskCell,
    TaskLayout,
    format_short_bytes,
    format_short_time,
    lay_out_tasks,
    worker_name,
)
from gpu.messages.runs.distributed_run import DistributedRun

MAX_CELLS = 256

WORKER_COLORS = {
    "light": ("#0969c3", "#6d46c9", "#0b7a70", "#a8520e", "#ad2f7b", "#4c7612", "#3f6596", "#7d6500"),
    "dark": ("#4cc2ff", "#b79cff", "#45d6c0", "#f2a66a", "#f08cc4", "#a9d35f", "#8fb4e8", "#d9c46a"),
}
"""Colors of the workers, cycled like those of warps in the window."""

_MARGIN, _LABELS = 24, 190
_CELL, _HIGH, _COLUMN, _ROW = 150, 48, 178, 104
_HEAD, _LANE, _BAR = 62, 30, 18
_STYLE = ".moved,.stays,.rule{fill:none;stroke-width:1.3}.moved{stroke-width:2}.cell{fill-opacity:.16;stroke-width:1.5}"


@dataclass(frozen=True)
class _Cell:
    """Position and labels of a task or a chunk of the input."""

    x: float
    y: float
    lines: tuple[str, str]
    worker: int | None


def draw_task_graph(run: DistributedRun, title: str) -> str:
    """Draw a run's tasks as an SVG that follows the reader's light or dark theme.

    At the top is the task graph, with a row for each step of each round, from the input's chunks down; below it is the
    workers' timeline. The graph shows only the last execution of a repeated task, the timeline all of them. With more
    than `MAX_CELLS` tasks there is no graph.
    """
    number = {worker.address: index for index, worker in enumerate(run.workers)}
    layout = lay_out_tasks(run.tasks if len(run.tasks) <= MAX_CELLS else ())
    width = 2 * _MARGIN + _LABELS + max(layout.columns, 3) * _COLUMN
    cells = {name: _task_cell(cell, number) for name, cell in layout.tasks.items()}
    inputs = {name: _input_cell(cell) for name, cell in layout.inputs.items()}
    below = _HEAD + (len(layout.steps) + 1) * _ROW if layout.steps else _HEAD
    height = below + 56 + len(run.workers) * _LANE + _MARGIN
    parts = [
        format_text(_MARGIN, 34, title, "title"),
        *_draw_legend(width),
        *_draw_labels(layout),
        *(_draw_edge(inputs[task], cells[task], crosses_workers=False) for task in inputs),
        *(
            _draw_edge(cells[edge.source], cells[edge.target], crosses_workers=edge.crosses_workers)
            for edge in layout.edges
        ),
        *(part for cell in (*inputs.values(), *cells.values()) for part in _draw_cell(cell)),
        *_draw_timeline(run, number, below, width),
    ]
    return format_svg(width, height, title, parts, _STYLE, _format_color_rules)


def _task_cell(cell: TaskCell, number: dict[str, int]) -> _Cell:
    record, worker = cell.record, number.get(cell.record.worker)
    result_bytes = sum(size for _, size in record.result_parts)
    took = f"{format_short_bytes(result_bytes)} · {format_short_time(record.end - record.begin)}"
    return _Cell(*_find_cell_position(cell), (worker_name(worker), took), worker)


def _input_cell(cell: TaskCell) -> _Cell:
    first, end = cell.record.elements or (0, 0)
    lines = f"{end - first:,}".replace(",", "\u202f"), f"from {first:,}".replace(",", "\u202f")
    return _Cell(*_find_cell_position(cell), lines, None)


def _find_cell_position(cell: TaskCell) -> tuple[float, float]:
    return _MARGIN + _LABELS + cell.column * _COLUMN, _HEAD + cell.row * _ROW


def _draw_labels(layout: TaskLayout) -> Iterator[str]:
    if not layout.steps:
        return
    yield format_text(_MARGIN, _HEAD + 20, "input", "name")
    yield format_text(_MARGIN, _HEAD + 38, "elements of each chunk", "small")
    for row, (step, moved) in enumerate(zip(layout.steps, layout.transferred_bytes, strict=True), 1):
        y = _HEAD + row * _ROW
        yield format_text(_MARGIN, y + 20, step, "name")
        from_others = f"{format_short_bytes(moved)} from others" if moved else "nothing from others"
        yield format_text(_MARGIN, y + 38, from_others, "small")


def _draw_edge(source: _Cell, target: _Cell, *, crosses_workers: bool) -> str:
    x0, y0, x1, y1 = source.x + _CELL / 2, source.y + _HIGH, target.x + _CELL / 2, target.y
    bend = (y1 - y0) / 2
    path = f"M{x0:g} {y0:g}C{x0:g} {y0 + bend:g} {x1:g} {y1 - bend:g} {x1:g} {y1:g}"
    return f'<path class="{"moved" if crosses_workers else "stays"}" d="{path}"/>'


def _draw_cell(cell: _Cell) -> Iterator[str]:
    color = "input" if cell.worker is None else f"w{cell.worker % len(WORKER_COLORS['light'])}"
    yield f'<rect class="back" x="{cell.x:g}" y="{cell.y:g}" width="{_CELL}" height="{_HIGH}" rx="6"/>'
    yield f'<rect class="cell {color}" x="{cell.x:g}" y="{cell.y:g}" width="{_CELL}" height="{_HIGH}" rx="6"/>'
    yield format_text(cell.x + _CELL / 2, cell.y + 20, cell.lines[0], "middle name")
    yield format_text(cell.x + _CELL / 2, cell.y + 38, cell.lines[1], "middle small")


def _draw_legend(width: float) -> Iterator[str]:
    for right, kind, words in ((330, "stays", "stays on the worker"), (150, "moved", "to another worker")):
        x = width - _MARGIN - right
        yield f'<path class="{kind}" d="M{x:g} 30h26"/>'
        yield format_text(x + 34, 34, words, "small")


def _draw_timeline(run: DistributedRun, number: dict[str, int], top: float, width: float) -> Iterator[str]:
    """Draw when each worker executed tasks."""
    if not run.tasks:
        return
    begin, end = min(task.begin for task in run.tasks), max(task.end for task in run.tasks)
    left = _MARGIN + _LABELS
    scale = (width - _MARGIN - left) / max(end - begin, 1e-9)
    yield f'<path class="rule" d="M{_MARGIN} {top:g}H{width - _MARGIN:g}"/>'
    yield format_text(_MARGIN, top + 26, "in time", "name")
    yield format_text(left, top + 26, "0", "small")
    yield format_text(width - _MARGIN, top + 26, format_short_time(end - begin), "end small")
    for each in run.workers:
        y = top + 40 + number[each.address] * _LANE
        yield format_text(_MARGIN, y + 14, worker_name(number[each.address]), "small")
        yield f'<rect class="lane" x="{left}" y="{y:g}" width="{width - _MARGIN - left:g}" height="{_BAR}" rx="3"/>'
    for record in run.tasks:
        worker = number.get(record.worker)
        if worker is None:
            continue
        x, y = left + (record.begin - begin) * scale, top + 40 + worker * _LANE
        long = max((record.end - record.begin) * scale, 2)
        words = f"{record.step}: {format_short_time(record.end - record.begin)}"
        yield (
            f'<rect class="busy b{worker % len(WORKER_COLORS["light"])}" x="{x:.1f}" y="{y:g}" width="{long:.1f}" '
            f'height="{_BAR}" rx="2"><title>{escape(words)}</title></rect>'
        )


def _format_color_rules(theme: str) -> str:
    t = THEMES[theme]
    rules = [
        f".back{{fill:{t['surface']}}}",
        f".moved{{stroke:{t['accent']}}}.stays{{stroke:{t['muted']}}}.rule{{stroke:{t['border']}}}",
        f".input{{fill:none;stroke:{t['muted']}}}.lane{{fill:{t['border']};fill-opacity:.45}}",
        *(f".w{n}{{fill:{color};stroke:{color}}}.b{n}{{fill:{color}}}" for n, color in enumerate(WORKER_COLORS[theme])),
    ]
    return "".join(rules)
