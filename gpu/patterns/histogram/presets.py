"""Demonstrations of the histogram: texts that Kirk and Hwu count by four threads, and what aggregating gains."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.pattern import Preset
from gpu.patterns.histogram.counted import LETTERS

PHRASE = "programming massively parallel processors"
"""Kirk and Hwu's text: 38 letters and three spaces."""

_SHORT = PHRASE[:24]
_LONG = "".join(np.resize(list(PHRASE + " "), 1000))
_RUNS = "".join(letter * 32 for letter in "aeimquy")
_NO_RUNS = "aeimquy" * 32


def _four_threads(text: str) -> dict[str, Any]:
    return {"of": LETTERS, "text": text, "letters": 4, "block": "4", "blocks": 1}


PRESETS = (
    Preset(
        "24 letters, 4 threads: sections",
        "Each thread has a section of six: at first threads 0 to 3 read p, m, m and e, far apart, and three of them "
        "want the bin m–p at once.",
        _four_threads(_SHORT),
        variant="block-partition",
    ),
    Preset(
        "24 letters, 4 threads: interleaved",
        "The threads read prog, then ramm: neighbors in one access. Thread 0 has p r i m i y, thread 1 r a n a v and "
        "the space.",
        _four_threads(_SHORT),
        variant="interleaved",
    ),
    Preset(
        "The whole phrase: 5 5 6 10 10 1 1",
        "38 letters and three spaces, which are counted apart. m–p and q–t have ten each: the threads queue there.",
        _four_threads(PHRASE),
        variant="interleaved",
    ),
    Preset(
        "1000 characters, 256 threads",
        "Sections of four: thread 8 begins at character 32, and 250 threads have all there is. Six have none.",
        {"of": LETTERS, "text": _LONG, "letters": 4, "block": "256", "blocks": 1},
        variant="block-partition",
    ),
    Preset(
        "Aggregation gains: letters in runs",
        "A thread meets the same bin again and again, and adds each run at once: 28 atomics on shared memory where the "
        "privatized variant has 224.",
        _four_threads(_RUNS),
        variant="aggregated",
    ),
    Preset(
        "Aggregation gains nothing: no letter twice",
        "A thread's next letter is in another bin each time: 224 atomics on shared memory, as many as without, and the "
        "comparisons on top.",
        _four_threads(_NO_RUNS),
        variant="aggregated",
    ),
)
