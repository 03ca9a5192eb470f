"""Time peers in GPU libraries: PyTorch and CuPy.

The module runs as a separate process, because the libraries create their own CUDA context. It prints one JSON line per
measurement, with the fields of `Measurement`. For a library that is not installed, it prints a line with that remark.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpu.declaration.benchmark import Case, SizeComparison
from gpu.declaration.pattern import Pattern
from gpu.patterns import all_patterns

GPU, SIZES = "gpu", "sizes"
"""Kinds of cases: of `bench gpu`, and of the size comparisons."""
WARM_UP = 3
LEAD_CACHES = 2
"""Bytes that the GPU reads before each repetition, as a multiple of its L2 cache, so that the cache is cold."""
MAX_LEADS = 16
"""How often the GPU reads them at most, while the CPU queues a repetition."""

Timer = Callable[[Callable[[], Any]], list[float]]
"""Function that runs an action several times and returns the milliseconds of each repetition."""


@dataclass(frozen=True)
class _QueuedRun:
    """The milliseconds of a repetition, and whether the GPU started it before the CPU had queued all of it."""

    elapsed_ms: float
    has_started: bool


def _time(
    queue: Callable[[Callable[[], Any], int], _QueuedRun], repetitions: int, action: Callable[[], Any]
) -> list[float]:
    """Return the milliseconds of each repetition, without the time in which the GPU waits for the CPU.

    If the GPU starts an action before the CPU has queued all of it, the repetition counts only if more leads do not
    help: an action that waits for the GPU itself always starts early.
    """
    leads = 1
    runs: list[_QueuedRun] = []
    while len(runs) < WARM_UP + repetitions:
        run = queue(action, leads)
        if run.has_started and leads < MAX_LEADS:
            leads *= 2
            continue
        runs.append(run)
    return [run.elapsed_ms for run in runs[WARM_UP:]]


def _print_row(
    work: str, name: str, times_ms: list[float], amount: float = 0, unit: str = "", remark: str = ""
) -> None:
    row = {"work": work, "name": name, "is_variant": False, "times_ms": times_ms, "amount": amount, "unit": unit}
    print(json.dumps({**row, "remark": remark}), flush=True)


def _torch_timer(torch: Any, seed: int, repetitions: int) -> Timer:
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(seed)
    cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    lead = torch.zeros(LEAD_CACHES * cache_bytes // 4, device="cuda")

    def queue(action: Callable[[], Any], leads: int) -> _QueuedRun:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(leads):
            lead.sum()
        start.record()
        action()
        end.record()
        has_started = start.query()
        end.synchronize()
        return _QueuedRun(start.elapsed_time(end), has_started)

    time = partial(_time, queue, repetitions)
    block = torch.rand(2**28, device="cuda")
    other = torch.empty_like(block)
    times = time(lambda: other.copy_(block))
    _print_row("device-to-device copy, 1 GiB", "driver", times, 2 * block.nbytes / 1e9, "GB/s")
    return time


def _cupy_timer(cupy: Any, seed: int, repetitions: int) -> Timer:
    lead = cupy.zeros(LEAD_CACHES * cupy.cuda.Device().attributes["L2CacheSize"] // 4, cupy.float32)

    def queue(action: Callable[[], Any], leads: int) -> _QueuedRun:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(leads):
            lead.sum()
        start.record()
        action()
        end.record()
        has_started = start.done
        end.synchronize()
        return _QueuedRun(cupy.cuda.get_elapsed_time(start, end), has_started)

    return partial(_time, queue, repetitions)


TIMERS: dict[str, Callable[[Any, int, int], Timer]] = {"torch": _torch_timer, "cupy": _cupy_timer}
"""Factories of timers by module name; their arguments are the module, a seed and the repetitions."""


@dataclass(frozen=True)
class CaseSelection:
    """The cases of a kind: GPU or SIZES, of the size comparisons whose work's name contains `work`."""

    case_kind: str
    work: str = ""

    def size_comparisons(self, pattern: Pattern) -> tuple[SizeComparison, ...]:
        return tuple(each for each in pattern.benchmark.size_comparisons if self.work in each.work)

    def cases(self, pattern: Pattern) -> tuple[Case, ...]:
        if self.case_kind == GPU:
            return pattern.benchmark.gpu
        return tuple(case for each in self.size_comparisons(pattern) for case in each.cases.values())


def _measure_library(
    module: str, selection: CaseSelection, amounts: dict[str, tuple[float, str]], seed: int, repetitions: int
) -> None:
    library = importlib.import_module(module)
    time = TIMERS[module](library, seed, repetitions)
    for pattern in all_patterns().values():
        for case in selection.cases(pattern):
            if module not in case.libraries:
                continue
            amount, unit = amounts.get(case.work, (0.0, ""))
            for peer in case.libraries[module](library, seed):
                _print_row(case.work, peer.name, time(peer.action), amount * peer.work_fraction, unit)


def main() -> None:
    """Time every library; print a remark for one that is missing or fails, and continue."""
    arguments = json.loads(sys.argv[1])
    arguments["selection"] = CaseSelection(**arguments["selection"])
    for module in TIMERS:
        try:
            _measure_library(module, **arguments)
        except ImportError:
            _print_row("peers", module, [], remark="not installed here")
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            _print_row("peers", module, [], remark=f"failed: {reason}")


if __name__ == "__main__":
    main()
