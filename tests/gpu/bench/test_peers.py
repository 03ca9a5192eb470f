"""The times of peers, from a library with clocks of its own for the CPU and the GPU, in microseconds."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from gpu.bench.peers import TIMERS


class _Library:
    """A part of CuPy; reading the cache once takes the GPU 30 us."""

    float32 = "float32"

    def __init__(self) -> None:
        self.cpu = self.gpu = 0
        self.cuda = SimpleNamespace(
            Device=lambda: SimpleNamespace(attributes={"L2CacheSize": 64}),
            Event=lambda: _Event(self),
            get_elapsed_time=lambda start, end: end.at - start.at,
        )

    def zeros(self, size: int, dtype: str) -> SimpleNamespace:
        return SimpleNamespace(sum=partial(self.launch, cpu_us=5, gpu_us=30))

    def launch(self, cpu_us: int, gpu_us: int) -> None:
        self.cpu += cpu_us
        self.gpu = max(self.cpu, self.gpu) + gpu_us


class _Event:
    def __init__(self, library: _Library) -> None:
        self._library = library
        self.at = 0

    def record(self) -> None:
        self.at = max(self._library.cpu, self._library.gpu)

    def synchronize(self) -> None:
        self._library.cpu = max(self._library.cpu, self.at)

    @property
    def done(self) -> bool:
        return self.at <= self._library.cpu


def test_the_time_excludes_waiting_for_a_slow_cpu() -> None:
    library = _Library()
    time = TIMERS["cupy"](library, 1, 5)
    assert time(partial(library.launch, cpu_us=50, gpu_us=10)) == [10] * 5


def test_a_peer_that_waits_for_the_gpu_is_timed_all_the_same() -> None:
    library = _Library()

    def run() -> None:
        library.launch(cpu_us=5, gpu_us=10)
        library.cpu = max(library.cpu, library.gpu)

    assert TIMERS["cupy"](library, 1, 5)(run) == [10] * 5
