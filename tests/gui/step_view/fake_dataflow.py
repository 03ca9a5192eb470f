"""Dataflows made by hand, in the shape of `gpu.stepping.dataflow`."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

Storage = namedtuple("Storage", "name space dtype")


def make_row(storage, label, line, first, last, column, value, computed, moment, thread, sources, block=None, launch=0):
    column, moment = np.asarray(column), np.asarray(moment)
    thread = np.asarray(thread)
    block = np.where(thread < 0, -1, 0) if block is None else np.asarray(block)
    return SimpleNamespace(
        storage=storage, label=label, launch=launch, line=line, first=first, last=last, column=column,
        value=np.asarray(value), computed=np.asarray(computed, bool), moment=moment, thread=thread,
        block=block, warp=block + thread // 32, operators="+",
        has_operation=np.asarray(computed, bool), sorted_moments=np.sort(moment), preload=lambda: None,
        sources=np.asarray(sources, np.int64).reshape(-1, 3),
    )  # fmt: skip


class FakeDataflow:
    """The up-sweep and down-sweep of a Brent-Kung scan, an event of 4 for each row."""

    def __init__(self, values):
        values = np.array(values)
        n = values.size
        given = Storage(name="data", space="global", dtype=values.dtype)
        shared = Storage(name="s", space="shared", dtype=values.dtype)
        none = np.full(n, -1)
        everything = np.arange(n)
        rows = [make_row(given, "input", 0, -1, -1, everything, values, none > 0, none, none, [])]
        latest = [(0, i) for i in range(n)]
        current = values.copy()
        steps = [("up", 2**k) for k in range(n.bit_length() - 1)]
        steps += [("down", 2**k) for k in range(n.bit_length() - 3, -1, -1)]
        for label, stride in steps:
            number = len(rows)
            event = 4 * number
            made = np.zeros(n, bool)
            moment, thread, sources = none.copy(), none.copy(), []
            before = current.copy()
            start = 2 * stride - 1 if label == "up" else 3 * stride - 1
            for t, i in enumerate(range(start, n, 2 * stride)):
                current[i] = before[i] + before[i - stride]
                made[i], moment[i], thread[i] = True, event, t
                sources += [(i, *latest[i - stride]), (i, *latest[i])]
            latest = [(number, i) for i in range(n)]
            rows.append(
                make_row(shared, f"{label} {stride}", 67, event, event, everything, current.copy(), made, moment,
                    thread, sources)
            )  # fmt: skip
        self.rows = tuple(rows)
        self.recording = SimpleNamespace(
            name_thread=lambda launch, block, thread: f"thread {thread}",
            warps=(1,),
            has_several_blocks=False,
            failure="",
        )
        self.moments = 4 * len(rows)

    def row_at(self, moment):
        return max(
            (number for number, row in enumerate(self.rows) if row.computed.any() and row.last < moment), default=0
        )

    def find_ancestors(self, row, cell):
        found, wanted = set(), [(row, cell)]
        while wanted:
            each = wanted.pop()
            if each not in found:
                found.add(each)
                sources = self.rows[each[0]].sources
                if not self.rows[each[0]].computed[each[1]] and each[0]:
                    wanted.append((each[0] - 1, each[1]))
                wanted += [tuple(s[1:]) for s in sources[sources[:, 0] == each[1]].tolist()]
        return found
