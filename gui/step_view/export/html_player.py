"""Export of a recording as an HTML page that plays it in any browser and embeds the recording's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu.declaration.pattern import Array, CountedText
from gpu.recording.player_file import encode_recording
from gui.step_view.export.files import Caption
from gui.step_view.recording.models import RecordingModels, add_text, build_models
from gui.step_view.time.snapshots import Snapshots, make_snapshots

if TYPE_CHECKING:
    from gui.step_view.dataflow.layout import DataflowLayout

TEMPLATE = Path(__file__).with_name("player.html")
_MAX_WARPS = 8
_COUNTS = ("steps", "operations", "barriers", "sectors", "conflicts")


def write_page(
    models: RecordingModels, caption: Caption, text: CountedText | None = None, *, in_symbols: bool = False
) -> str:
    """Return the HTML page of a recording, computed from a copy, since the original may be played meanwhile.

    Parameters
    ----------
    text : CountedText or None
        For a histogram of a text, the names of its arrays and bins.
    in_symbols : bool
        Show symbols instead of values.
    """
    from gpu.recording.recording import Recording
    from gpu.stepping.symbols import Symbols

    file = BytesIO()
    models.recording.save(file)
    copied = add_text(build_models(Recording.read(file.getvalue(), caption.title)), text)
    symbols = Symbols(copied.layout.dataflow).compute_all() if in_symbols else None
    return format_page(copied, copied.layout.with_symbols(symbols), make_snapshots(copied), caption, file.getvalue())


def format_page(
    models: RecordingModels, layout: DataflowLayout, snapshots: Snapshots, caption: Caption, recording: bytes
) -> str:
    """Return the HTML page.

    Parameters
    ----------
    layout : DataflowLayout
        The recording's dataflow, with values or symbols as texts.
    snapshots : callable
        Returns the state of the cards at a moment.
    recording : bytes
        The recording's file, embedded so that the page can be opened in Lockstep.
    """
    # Escaped, so that no text can end the script element that contains it.
    data = json.dumps(_build_data(models, layout, snapshots, caption), separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page = TEMPLATE.read_text(encoding="utf-8")
    head, _, rest = page.partition("@DATA@")
    middle, _, tail = rest.partition("@RECORDING@")
    return "".join((head, data, middle, encode_recording(recording), tail))


def _build_data(
    models: RecordingModels, layout: DataflowLayout, snapshots: Snapshots, caption: Caption
) -> dict[str, Any]:
    recording, end = models.recording, models.recording.event_count
    files = list(dict.fromkeys(models.files))
    numbers = {file: number for number, file in enumerate(files)}
    phases = models.data.phases
    words: dict[str, int] = {}
    states: dict[str, int] = {}
    words_at, lanes_at = [], []
    for moment in range(end + 1):
        now = snapshots(moment, None)
        words_at.append(words.setdefault(now.effect, len(words)))
        warps = [
            states.setdefault("".join(map(str, lanes)), len(states))
            for lanes in now.lanes.state[now.block, :_MAX_WARPS].tolist()
        ]
        lanes_at.append([now.block, now.blocks, warps])
    tallied = [models.data.tally.counts_at(moment) for moment in range(end + 1)]
    return {
        "title": caption.title,
        "settings": caption.settings,
        "end": end,
        "several": models.recording.has_several_blocks,
        "columns": layout.columns,
        "texts": [{"name": Path(file).name, "text": recording.text(file)} for file in files],
        "files": _encode_runs(np.array([numbers[file] for file in models.files])),
        "lines": _encode_runs(models.lines),
        "phases": list(phases.names),
        "phase_at": _encode_runs(phases.event_phases),
        "stretches": [[interval.first, interval.last, interval.name] for interval in phases.intervals],
        "segments": [[segment.first, segment.last, segment.label] for segment in models.data.segments],
        "words": list(words),
        "words_at": _encode_runs(np.array(words_at)),
        "states": list(states),
        "lanes_at": lanes_at,
        "counts": {
            name: [getattr(each, "bank_conflicts" if name == "conflicts" else name) for each in tallied]
            for name in _COUNTS
        },
        "row_at": _encode_runs(np.array([layout.row_at(moment) for moment in range(end + 1)])),
        "rows": list(_encode_rows(models, layout)),
    }


def _encode_rows(models: RecordingModels, layout: DataflowLayout) -> Iterator[dict[str, Any]]:
    """Yield each row as its differences from its `base`, the last row of its storage."""
    last: dict[object, int] = {}
    for number, row in enumerate(layout.rows):
        base = last.get(row.storage, -1)
        at = np.full(row.column.size, -1)
        if base >= 0:
            before = layout.rows[base].column
            if np.isin(before, row.column).all():
                index = np.minimum(np.searchsorted(before, row.column), max(before.size - 1, 0))
                at = np.where(before[index] == row.column, index, -1) if before.size else at
            else:
                base = -1
        yield _encode_row(models, layout, number, base, at)
        last[row.storage] = number


def _encode_row(
    models: RecordingModels, layout: DataflowLayout, number: int, base: int, base_cells: Array
) -> dict[str, Any]:
    """Return a row's data; `base_cells` is the base's cell in the same column for each cell, -1 for none."""
    row, edges = layout.rows[number], layout.edges[number]
    texts, origin = layout.texts(number, layout.max_text_length), layout.dataflow.find_previous_locations(number)
    differs = base_cells < 0
    if base >= 0:
        below, base_texts = layout.rows[base], layout.texts(base, layout.max_text_length)
        for values, base_values in ((row.moment, below.moment), (row.block, below.block), (row.thread, below.thread)):
            differs |= values != base_values[np.maximum(base_cells, 0)]
        differs |= np.array(
            [text != base_texts[base_cell] for text, base_cell in zip(texts, base_cells.tolist(), strict=True)], bool
        )
    listed = np.flatnonzero(differs | row.computed)
    # By default, a cell's value comes from the base's cell in the same column.
    moved = (origin[:, 0] != base) | (origin[:, 1] != base_cells)
    kept = np.flatnonzero(~row.computed & moved & ((origin[:, 0] >= 0) | (base_cells >= 0)))
    # The edges after those of the sources lead from characters to their bins.
    letters = np.stack((edges.cell, edges.row, edges.column), axis=1)[len(row.sources) :]
    return {
        "label": row.label,
        "name": row.storage.name,
        "first": row.first,
        "base": base,
        "warps": models.recording.warps[row.launch],
        "column": _encode_runs(row.column[listed]),
        "text": [texts[cell] for cell in listed.tolist()],
        "computed": _encode_runs(row.computed[listed]),
        "operation": _encode_runs(row.has_operation[listed]),
        "moment": _encode_runs(row.moment[listed]),
        "block": _encode_runs(row.block[listed]),
        "thread": _encode_runs(row.thread[listed]),
        "sources": _group_sources(row.sources),
        "letters": letters.reshape(-1).tolist(),
        "kept": np.column_stack((kept, origin[kept])).reshape(-1).tolist(),
    }


def _group_sources(sources: Array) -> list[list[Any]]:
    """Return sources grouped by their row: that row, the cells computed from it, and the source cell of each."""
    groups = []
    for row in np.unique(sources[:, 1]).tolist():
        of_row = sources[sources[:, 1] == row]
        groups.append([row, _encode_runs(of_row[:, 0]), _encode_runs(of_row[:, 2])])
    return groups


def _encode_runs(numbers: Array) -> list[int]:
    """Return the run-length encoded differences of numbers: difference, length, difference, length, ..."""
    steps = np.diff(np.asarray(numbers, np.int64), prepend=0)
    if not steps.size:
        return []
    starts = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
    lengths = np.diff(np.append(starts, steps.size))
    return [int(each) for pair in zip(steps[starts], lengths, strict=True) for each in pair]
