"""A recording as one HTML file that plays it in any browser, and that holds the recording itself."""

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
    """Return the page of a recording, which may be played meanwhile: what is looked up here is another copy of it.

    Parameters
    ----------
    models : Models
    caption : Caption
    text : CountedText or None
        How a text is counted, where one is.
    in_symbols : bool
        Whether its cells have symbols instead of values.
    """
    from gpu.stepping.recording import Recording
    from gpu.stepping.symbols import Symbols

    file = BytesIO()
    models.recording.save(file)
    own = with_text(models_of(Recording.read(file.getvalue(), caption.title)), text)
    symbols = Symbols(own.layout.dataflow).complete() if in_symbols else None
    return player_page(own, own.layout.with_symbols(symbols), snapshots_of(own), caption, file.getvalue())


def player_page(
    models: Models, layout: DataflowLayout, snapshots: Snapshots, caption: Caption, recording: bytes
) -> str:
    """Return the page.

    Parameters
    ----------
    models : Models
    layout : DataflowLayout
        Its dataflow, with the texts that are to be written.
    snapshots : callable
        What there is beside the picture at each moment.
    caption : Caption
    recording : bytes
        The recording's file, which stays within the page: so it can be opened again.
    """
    # No text within may end the script that it stands in.
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
    """Yield the rows, each as what is other than in the last one of the same storage, its `base`."""
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
    """Return a row; `at` is the cell of the base that is in the same column, -1 for none."""
    row, edges = layout.rows[number], layout.edges[number]
    texts, origin = layout.texts(number, layout.longest), layout.dataflow.kept_from(number)
    other = at < 0
    if base >= 0:
        below, known = layout.rows[base], layout.texts(base, layout.longest)
        for mine, theirs in ((row.moment, below.moment), (row.block, below.block), (row.thread, below.thread)):
            other |= mine != theirs[np.maximum(at, 0)]
        other |= np.array([text != known[place] for text, place in zip(texts, at.tolist(), strict=True)], bool)
    told = np.flatnonzero(other | row.made)
    # That a cell was last seen in the base, in its own column, goes without saying.
    moved = (origin[:, 0] != base) | (origin[:, 1] != at)
    kept = np.flatnonzero(~row.made & moved & ((origin[:, 0] >= 0) | (at >= 0)))
    # Lines beside those of the sources, which come first: from letters to the bins in which they are counted.
    letters = np.stack((edges.cell, edges.row, edges.column), axis=1)[len(row.sources) :]
    return {
        "label": row.label,
        "name": row.storage.name,
        "first": row.first,
        "base": base,
        "warps": models.warps[row.launch],
        "column": _runs(row.column[told]),
        "text": [texts[cell] for cell in told.tolist()],
        "made": _runs(row.made[told]),
        "worked": _runs(row.worked[told]),
        "moment": _runs(row.moment[told]),
        "block": _runs(row.block[told]),
        "thread": _runs(row.thread[told]),
        "sources": _grouped(row.sources),
        "letters": letters.reshape(-1).tolist(),
        "kept": np.column_stack((kept, origin[kept])).reshape(-1).tolist(),
    }


def _grouped(sources: Array) -> list[list[Any]]:
    """Return sources by the row that they are in: that row, the cells that were made, and the cells they were of."""
    found = []
    for row in np.unique(sources[:, 1]).tolist():
        mine = sources[sources[:, 1] == row]
        found.append([row, _runs(mine[:, 0]), _runs(mine[:, 2])])
    return found


def _runs(numbers: Array) -> list[int]:
    """Return numbers as runs: how far each is from the one before it, and how often that comes again."""
    steps = np.diff(np.asarray(numbers, np.int64), prepend=0)
    if not steps.size:
        return []
    starts = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
    lengths = np.diff(np.append(starts, steps.size))
    return [int(each) for pair in zip(steps[starts], lengths, strict=True) for each in pair]
