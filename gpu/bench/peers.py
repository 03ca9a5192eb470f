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


def _make_timer(
    read_cache: Callable[[], Any],
    make_event: Callable[[], Any],
    is_past: Callable[[Any], bool],
    elapsed_ms: Callable[[Any, Any], float],
    repetitions: int,
) -> Timer:
    """Return a timer by a library's events, which excludes the time in which the GPU waits for the CPU.

    If the GPU starts an action before the CPU has queued all of it, the repetition counts only if it does so even after
    `MAX_LEADS` reads: an action that waits for the GPU itself always starts early.
    """

    def time(action: Callable[[], Any]) -> list[float]:
        leads = 1
        times: list[float] = []
        while len(times) < WARM_UP + repetitions:
            start, end = make_event(), make_event()
            for _ in range(leads):
                read_cache()
            start.record()
            action()
            end.record()
            has_started = is_past(start)
            end.synchronize()
            if has_started and leads < MAX_LEADS:
                leads *= 2
                continue
            times.append(elapsed_ms(start, end))
        return times[WARM_UP:]

    return time


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
    make_event = partial(torch.cuda.Event, enable_timing=True)
    time = _make_timer(
        lead.sum, make_event, lambda event: event.query(), lambda start, end: start.elapsed_time(end), repetitions
    )
    block = torch.rand(2**28, device="cuda")
    other = torch.empty_like(block)
    times = time(lambda: other.copy_(block))
    _print_row("device-to-device copy, 1 GiB", "driver", times, 2 * block.nbytes / 1e9, "GB/s")
    return time


def _cupy_timer(cupy: Any, seed: int, repetitions: int) -> Timer:
    lead = cupy.zeros(LEAD_CACHES * cupy.cuda.Device().attributes["L2CacheSize"] // 4, cupy.float32)
    return _make_timer(lead.sum, cupy.cuda.Event, lambda event: event.done, cupy.cuda.get_elapsed_time, repetitions)


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
