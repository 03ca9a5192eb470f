"""Export of a recording as an HTML page that plays it in any browser and embeds the recording's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu.declaration.pattern import Array, CountedText
from gpu.stepping.player_file import embedded
from gui.step_view.export.files import Caption
from gui.step_view.recording.models import Models, models_of, with_text
from gui.step_view.time.snapshots import Snapshots, snapshots_of

if TYPE_CHECKING:
    from gui.step_view.dataflow.layout import DataflowLayout

TEMPLATE = Path(__file__).with_name("player.html")
_MOST_WARPS = 8
_COUNTS = ("steps", "operations", "barriers", "sectors", "conflicts")


def write_page(models: Models, caption: Caption, text: CountedText | None = None, *, in_symbols: bool = False) -> str:
    """Return the HTML page of a recording, computed from a copy, since the original may be played meanwhile.

    Parameters
    ----------
    models : Models
    caption : Caption
    text : CountedText or None
        For a histogram of a text, the names of its arrays and bins.
    in_symbols : bool
        Show symbols instead of values.
    """
    from gpu.stepping.recording import Recording
    from gpu.stepping.symbols import Symbols

    file = BytesIO()
    models.recording.save(file)
    copied = with_text(models_of(Recording.read(file.getvalue(), caption.title)), text)
    symbols = Symbols(copied.layout.dataflow).complete() if in_symbols else None
    return player_page(copied, copied.layout.with_symbols(symbols), snapshots_of(copied), caption, file.getvalue())


def player_page(
    models: Models, layout: DataflowLayout, snapshots: Snapshots, caption: Caption, recording: bytes
) -> str:
    """Return the HTML page.

    Parameters
    ----------
    models : Models
    layout : DataflowLayout
        The recording's dataflow, with values or symbols as texts.
    snapshots : callable
        Returns the state of the cards at a moment.
    caption : Caption
    recording : bytes
        The recording's file, embedded so that the page can be opened in Lockstep.
    """
    # Escaped, so that no text can end the script element that contains it.
    data = json.dumps(_data(models, layout, snapshots, caption), separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page = TEMPLATE.read_text(encoding="utf-8")
    head, _, rest = page.partition("@DATA@")
    middle, _, tail = rest.partition("@RECORDING@")
    return "".join((head, data, middle, embedded(recording), tail))


def _data(models: Models, layout: DataflowLayout, snapshots: Snapshots, caption: Caption) -> dict[str, Any]:
    recording, end = models.recording, models.recording.moments
    files = list(dict.fromkeys(models.files))
    numbers = {file: number for number, file in enumerate(files)}
    phases = models.phases
    words: dict[str, int] = {}
    states: dict[str, int] = {}
    words_at, lanes_at = [], []
    for moment in range(end + 1):
        now = snapshots(moment, None)
        words_at.append(words.setdefault(now.words, len(words)))
        warps = [
            states.setdefault("".join(map(str, lanes)), len(states))
            for lanes in now.lanes.state[now.block, :_MOST_WARPS].tolist()
        ]
        lanes_at.append([now.block, now.blocks, warps])
    tallied = [models.tally.at(moment) for moment in range(end + 1)]
    return {
        "title": caption.title,
        "settings": caption.settings,
        "end": end,
        "several": models.several_blocks,
        "columns": layout.columns,
        "texts": [{"name": Path(file).name, "text": recording.text(file)} for file in files],
        "files": _runs(np.array([numbers[file] for file in models.files])),
        "lines": _runs(models.lines),
        "phases": list(phases.names),
        "phase_at": _runs(phases.of_event),
        "stretches": [[each.first, each.last, each.name] for each in phases.stretches],
        "segments": [[each.first, each.last, each.label] for each in models.segments],
        "words": list(words),
        "words_at": _runs(np.array(words_at)),
        "states": list(states),
        "lanes_at": lanes_at,
        "counts": {
            name: [getattr(each, "bank_conflicts" if name == "conflicts" else name) for each in tallied]
            for name in _COUNTS
        },
        "row_at": _runs(np.array([layout.row_at(moment) for moment in range(end + 1)])),
        "rows": list(_rows(models, layout)),
    }


def _rows(models: Models, layout: DataflowLayout) -> Iterator[dict[str, Any]]:
    """Yield each row as its differences from its `base`, the last row of its storage."""
    last: dict[object, int] = {}
    for number, row in enumerate(layout.rows):
        base = last.get(row.storage, -1)
        at = np.full(row.column.size, -1)
        if base >= 0:
            before = layout.rows[base].column
            if np.isin(before, row.column).all():
                place = np.minimum(np.searchsorted(before, row.column), max(before.size - 1, 0))
                at = np.where(before[place] == row.column, place, -1) if before.size else at
            else:
                base = -1
        yield _row(models, layout, number, base, at)
        last[row.storage] = number


def _row(models: Models, layout: DataflowLayout, number: int, base: int, at: Array) -> dict[str, Any]:
    """Return a row's data; `at` is the base's cell in the same column for each cell, -1 for none."""
    row, edges = layout.rows[number], layout.edges[number]
    texts, origin = layout.texts(number, layout.longest), layout.dataflow.kept_from(number)
    differs = at < 0
    if base >= 0:
        below, base_texts = layout.rows[base], layout.texts(base, layout.longest)
        for values, base_values in ((row.moment, below.moment), (row.block, below.block), (row.thread, below.thread)):
            differs |= values != base_values[np.maximum(at, 0)]
        differs |= np.array([text != base_texts[place] for text, place in zip(texts, at.tolist(), strict=True)], bool)
    listed = np.flatnonzero(differs | row.made)
    # By default, a cell's value comes from the base's cell in the same column.
    moved = (origin[:, 0] != base) | (origin[:, 1] != at)
    kept = np.flatnonzero(~row.made & moved & ((origin[:, 0] >= 0) | (at >= 0)))
    # The edges after those of the sources lead from characters to their bins.
    letters = np.stack((edges.cell, edges.row, edges.column), axis=1)[len(row.sources) :]
    return {
        "label": row.label,
        "name": row.storage.name,
        "first": row.first,
        "base": base,
        "warps": models.warps[row.launch],
        "column": _runs(row.column[listed]),
        "text": [texts[cell] for cell in listed.tolist()],
        "made": _runs(row.made[listed]),
        "worked": _runs(row.worked[listed]),
        "moment": _runs(row.moment[listed]),
        "block": _runs(row.block[listed]),
        "thread": _runs(row.thread[listed]),
        "sources": _grouped(row.sources),
        "letters": letters.reshape(-1).tolist(),
        "kept": np.column_stack((kept, origin[kept])).reshape(-1).tolist(),
    }


def _grouped(sources: Array) -> list[list[Any]]:
    """Return sources grouped by their row: that row, the cells computed from it, and the source cell of each."""
    groups = []
    for row in np.unique(sources[:, 1]).tolist():
        of_row = sources[sources[:, 1] == row]
        groups.append([row, _runs(of_row[:, 0]), _runs(of_row[:, 2])])
    return groups


def _runs(numbers: Array) -> list[int]:
    """Return the run-length encoded differences of numbers: difference, length, difference, length, ..."""
    steps = np.diff(np.asarray(numbers, np.int64), prepend=0)
    if not steps.size:
        return []
    starts = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
    lengths = np.diff(np.append(starts, steps.size))
    return [int(each) for pair in zip(steps[starts], lengths, strict=True) for each in pair]
