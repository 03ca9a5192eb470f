"""What a run copied is kept for its repetitions, by place, kind and shape."""

from __future__ import annotations

from itertools import count

import numpy as np

from gpu.engines.cuda.kept_transfers import KeptTransfers

LARGE, SMALL = (2**19,), (2**10,)
INT, FLOAT = np.dtype(np.int32), np.dtype(np.float32)


def test_a_repetition_gets_what_the_first_run_copied() -> None:
    kept, made = KeptTransfers(), count()

    def run(*transfers):
        kept.begin_run()
        return [kept.repeat(*transfer, lambda: next(made)) for transfer in transfers]

    whole = ("upload", LARGE, INT), ("upload", LARGE, INT), ("download", LARGE, INT)
    assert run(*whole) == [0, 1, 2]
    assert run(*whole) == [0, 1, 2]
    assert run(("upload", SMALL, INT), *whole) == [3, 0, 1, 2], "small arrays are copied each time, and have no place"
    assert run(whole[0], ("upload", LARGE, FLOAT), whole[2]) == [0, 4, 2], "another array has another type"
    assert run(whole[0], whole[2]) == [0, 2], "each direction has its own order"
    assert run(*whole, whole[0]) == [0, 1, 2, 5], "and a run that copies more copies that for itself"
    assert kept.list_kept("upload") == [0, 1, 5]
