"""Demonstrations of the histogram: Kirk and Hwu's text counted by four threads, and the benefit of aggregation."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.pattern import Preset
from gpu.patterns.histogram.counting_input import LETTERS

PHRASE = "programming massively parallel processors"
"""Kirk and Hwu's example text: 38 letters and three spaces."""

_SHORT = PHRASE[:24]
_LONG = "".join(np.resize(list(PHRASE + " "), 1000))
_RUNS = "".join(letter * 32 for letter in "aeimquy")
_NO_RUNS = "aeimquy" * 32


def _four_thread_preset(text: str) -> dict[str, Any]:
    return {"of": LETTERS, "text": text, "letters": 4, "block": "4", "blocks": 1}


PRESETS = (
    Preset(
        "24 letters, 4 threads: sections",
        "Block partition, six characters per thread: threads 0 to 3 first read p, m, m and e, far apart, and three of "
        "them contend for the bin m–p.",
        _four_thread_preset(_SHORT),
        variant="block-partition",
    ),
    Preset(
        "24 letters, 4 threads: interleaved",
        "The threads read prog, then ramm: coalesced accesses. Thread 0 has p r i m i y, thread 1 has r a n a v and "
        "the space.",
        _four_thread_preset(_SHORT),
        variant="interleaved",
    ),
    Preset(
        "The whole phrase: 5 5 6 10 10 1 1",
        "38 letters and three spaces, which have a separate bin. m–p and q–t have ten letters each: contention there.",
        _four_thread_preset(PHRASE),
        variant="interleaved",
    ),
    Preset(
        "1000 characters, 256 threads",
        "Sections of four: thread 8 begins at character 32; 250 threads have all the characters, and six have none.",
        {"of": LETTERS, "text": _LONG, "letters": 4, "block": "256", "blocks": 1},
        variant="block-partition",
    ),
    Preset(
        "Aggregation pays off: letters in runs",
        "Each thread counts runs of the same bin and adds each run at once: 28 atomics on shared memory instead of the "
        "privatized variant's 224.",
        _four_thread_preset(_RUNS),
        variant="aggregated",
    ),
    Preset(
        "Aggregation does not pay off: no repeated letter",
        "A thread's next letter is always in another bin: 224 atomics on shared memory, as without aggregation, plus "
        "the comparisons.",
        _four_thread_preset(_NO_RUNS),
        variant="aggregated",
    ),
)
