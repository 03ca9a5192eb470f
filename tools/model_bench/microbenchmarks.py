"""Measure a GPU: latencies, rates, bandwidths, and the cost of atomics, barriers and launches."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.engines.base import Buffer
from gpu.files import file_access
from tools.model_bench.gpu_description import format_gpu_description

_KERNEL_FILE = "device.cu"
_STEPS = 64
_ROUNDS = 32
_REPETITIONS = 7
_SMALL, _LARGE = 1 << 24, 1 << 30

INSTRUCTION_KINDS = {
    0: "ffma", 1: "fadd", 2: "fmul", 3: "iadd", 4: "imad", 5: "lop", 6: "shf", 7: "dfma", 8: "rsqrt", 9: "ex2",
    10: "shfl", 11: "ballot", 12: "popc", 13: "redux", 14: "match", 15: "idiv", 16: "fdiv", 17: "fsqrt", 18: "convert",
    19: "imnmx", 20: "expf",
}  # fmt: skip
"""Names of the values of KIND in `device.cu`."""

Figures = dict[str, float]


class _Bench:
    """The engine, and the buffers to which every kernel writes."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.multiprocessors = engine.device.multiprocessors
        self.cycles = engine.allocate((2 * 64 * self.multiprocessors * 4,), np.int64)
        self.ends = engine.allocate((1 << 22,), np.uint32)

    def kernel(self, name: str, **defines: int) -> Any:
        return self.engine.build(_KERNEL_FILE, defines).kernel(name)

    def time_us(self, kernel: Any, grid: int, block: int, *arguments: Any, shared: int = 0, repeat: int = 0) -> float:
        """Return the median microseconds of a launch."""
        times = []
        for _ in range((repeat or _REPETITIONS) + 1):
            self.engine.take_times()
            self.engine.launch(kernel, (grid, 1, 1), (block, 1, 1), *arguments, shared_bytes=shared)
            times.append(1e3 * self.engine.take_times().kernel)
        return float(statistics.median(times[1:]))

    def block_cycles(self, blocks: int, warps: int) -> npt.NDArray[np.int64]:
        """Return the cycles of each block of the last launch, from its first warp's start to its last warp's end."""
        counted = self.engine.download(self.cycles)[: 2 * blocks * warps].reshape(blocks, warps, 2)
        spans: npt.NDArray[np.int64] = counted[:, :, 1].max(axis=1) - counted[:, :, 0].min(axis=1)
        return spans

    def measure_cycles(self, kernel: Any, grid: int, block: int, *arguments: Any, shared: int = 0) -> float:
        """Return the median cycles of a launch's blocks, after one launch to warm up."""
        for _ in range(2):
            self.engine.launch(kernel, (grid, 1, 1), (block, 1, 1), *arguments, shared_bytes=shared)
        return float(np.median(self.block_cycles(grid, max(1, block // 32))))


def measure(path: Path) -> None:
    """Measure and print everything, and write a description; a .json file gets the figures instead."""
    from gpu import engines

    engine: Any = engines.create_engine("cuda")
    engine.sources[_KERNEL_FILE] = Path(__file__).with_name(_KERNEL_FILE).read_text("utf-8")
    figures: Figures = {}
    try:
        bench = _Bench(engine)
        _compile_ahead(engine)
        for part in (
            _read_attributes,
            _measure_clock,
            _measure_arithmetic,
            _measure_shared_memory,
            _measure_caches,
            _measure_atomics,
            _measure_barriers,
            _measure_bandwidth,
            _measure_launches,
        ):
            for name, figure in part(bench):
                figures[name] = figure
                print(f"{name:<44} {figure:14.3f}", flush=True)
        data = json.dumps({"gpu": engine.device.name, "figures": figures}, indent=1)
        with file_access.replace_file(path) as file:
            file.write(
                (data if path.suffix == ".json" else format_gpu_description(engine.device.name, figures)).encode()
            )
    finally:
        engine.close()


def _compile_ahead(engine: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    modules = [{"KIND": kind, "WIDE": wide} for kind in INSTRUCTION_KINDS for wide in (1, 4)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda defines: engine.compile_ahead(_KERNEL_FILE, defines), [{}, *modules]))


def _read_attributes(bench: _Bench) -> Iterator[tuple[str, float]]:
    import pycuda.driver as cuda

    device, attribute = cuda.Context.get_device(), cuda.device_attribute
    for name in (
        "MULTIPROCESSOR_COUNT", "CLOCK_RATE", "L2_CACHE_SIZE", "MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH",
        "MAX_THREADS_PER_MULTIPROCESSOR", "MAX_REGISTERS_PER_BLOCK", "MAX_REGISTERS_PER_MULTIPROCESSOR",
        "MAX_SHARED_MEMORY_PER_BLOCK", "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", "MAX_BLOCKS_PER_MULTIPROCESSOR",
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "RESERVED_SHARED_MEMORY_PER_BLOCK",
    ):  # fmt: skip
        if hasattr(attribute, name):
            yield f"attribute {name.lower()}", float(device.get_attribute(getattr(attribute, name)))
    yield "attribute capability", device.compute_capability()[0] * 10.0 + device.compute_capability()[1]


def _measure_clock(bench: _Bench) -> Iterator[tuple[str, float]]:
    kernel = bench.kernel("clock_rate")
    for _ in range(3):
        bench.engine.launch(
            kernel, (bench.multiprocessors, 1, 1), (1024, 1, 1), bench.cycles, bench.ends, np.int32(10**6)
        )
    cycles, nanoseconds = bench.engine.download(bench.cycles)[:2]
    yield "clock GHz", float(cycles / nanoseconds)


def _measure_arithmetic(bench: _Bench) -> Iterator[tuple[str, float]]:
    arguments = (bench.cycles, bench.ends, np.float32(1.0), np.float32(1.0), np.int32(_ROUNDS))
    for kind, name in INSTRUCTION_KINDS.items():
        single = bench.measure_cycles(bench.kernel("chain", KIND=kind, WIDE=1), 1, 32, *arguments)
        yield f"latency {name} cycles", single / (_STEPS * _ROUNDS)
        full = bench.measure_cycles(bench.kernel("chain", KIND=kind, WIDE=4), bench.multiprocessors, 1024, *arguments)
        yield f"rate {name} lanes per cycle", 4 * 1024 * _STEPS * _ROUNDS / full


def _measure_shared_memory(bench: _Bench) -> Iterator[tuple[str, float]]:
    steps = 4096
    cycles = bench.measure_cycles(bench.kernel("follow_shared"), 1, 1, bench.ends, bench.cycles, np.int32(steps))
    yield "latency shared cycles", cycles / steps
    loads = bench.kernel("shared_loads")
    for stride in (1, 2, 4, 8, 16, 32):
        arguments: tuple[Any, ...] = (bench.ends, bench.cycles, np.int32(stride), np.int32(_ROUNDS))
        full = bench.measure_cycles(loads, bench.multiprocessors, 1024, *arguments)
        yield f"shared {stride} lanes a bank, cycles a request", full / (32 * 16 * _ROUNDS)
        single = bench.measure_cycles(loads, 1, 32, *arguments)
        yield f"shared {stride} lanes a bank, one warp, cycles a request", single / (16 * _ROUNDS)
    arguments = (bench.ends, bench.cycles, np.int32(_ROUNDS))
    full = bench.measure_cycles(bench.kernel("shared_vectors"), bench.multiprocessors, 1024, *arguments)
    yield "shared 16 bytes a lane, cycles a request", full / (32 * 16 * _ROUNDS)
    steps = 1024
    cycles = bench.measure_cycles(bench.kernel("follow_atomic_shared"), 1, 1, bench.ends, bench.cycles, np.int32(steps))
    yield "latency shared atomic cycles", cycles / steps


def _make_pointer_ring(word_count: int, stride: int, seed: int = 7) -> npt.NDArray[np.uint32]:
    """Return a linked list through every `stride`-th word in random order, which ends where it begins."""
    order = np.random.default_rng(seed).permutation(word_count // stride).astype(np.int64) * stride
    order = np.concatenate(([0], order[order != 0]))
    ring = np.zeros(word_count, np.uint32)
    ring[order] = np.roll(order, -1)
    return ring


def _measure_caches(bench: _Bench) -> Iterator[tuple[str, float]]:
    def latency(name: str, words: int, stride: int, warm: int, steps: int) -> float:
        ring = bench.engine.upload(_make_pointer_ring(words, stride))
        arguments = (ring, bench.ends, bench.cycles, np.int32(warm), np.int32(steps))
        cycles = bench.measure_cycles(bench.kernel(name), 1, 1, *arguments) / steps
        bench.engine.free(ring)
        return cycles

    yield "latency first cache cycles", latency("follow_cached", 4096, 32, 256, 4096)
    for megabytes in (1, 8, 24):
        words = megabytes << 18
        steps = words // 32
        figure = latency("follow_past_first_cache", words, 32, steps, min(steps, 1 << 15))
        yield f"latency last cache {megabytes} MB cycles", figure
    for megabytes in (16, 64, 256):
        yield (
            f"latency memory {megabytes} MB cycles",
            latency("follow_past_first_cache", megabytes << 18, 1024, 0, 3000),
        )
    figure = latency("follow_past_first_cache", 1 << 28, 1 << 12, 0, 3000)
    yield "latency memory 1024 MB cycles", figure
    kernel = bench.kernel("read_first_cache")
    words = bench.engine.upload(np.zeros(1 << 16, np.uint32))
    for stride in (1, 8):
        arguments = (words, bench.ends, bench.cycles, np.int32(stride), np.int32(_ROUNDS))
        full = bench.measure_cycles(kernel, bench.multiprocessors, 1024, *arguments)
        yield f"first cache stride {stride} words, cycles a request", full / (32 * 16 * _ROUNDS)
    bench.engine.free(words)


_ATOMIC_TARGETS = {0: "one word", 1: "neighbors", 2: "a word a warp", 3: "anywhere"}


def _measure_atomics(bench: _Bench) -> Iterator[tuple[str, float]]:
    blocks, block, rounds = 2 * bench.multiprocessors, 1024, 8
    operations = blocks * block * rounds
    counts: Buffer = bench.engine.allocate((_SMALL,), np.uint32)
    bench.engine.fill(counts, 0)
    kernel = bench.kernel("atomics_global")
    for kind, atomic_target in _ATOMIC_TARGETS.items():
        for words in (_SMALL, 256) if kind == 3 else (_SMALL,):
            for returning in (0, 1):
                arguments: tuple[Any, ...] = (
                    counts, np.int32(kind), np.uint32(words), np.int32(rounds), np.int32(returning)
                )  # fmt: skip
                time = bench.time_us(kernel, blocks, block, *arguments)
                operation = "returning" if returning else "adding"
                yield f"global atomics {operation} {atomic_target} of {words}, ns each", 1e3 * time / operations
    time = bench.time_us(
        bench.kernel("atomics_global_float"), blocks, block, counts, np.int32(0), np.uint32(1), np.int32(rounds)
    )
    yield "global float atomics one word, ns each", 1e3 * time / operations
    arguments = (counts, np.int32(3), np.uint32(_SMALL), np.int32(rounds))
    time = bench.time_us(bench.kernel("atomics_global_float"), blocks, block, *arguments)
    yield "global float atomics anywhere, ns each", 1e3 * time / operations
    cycles = bench.measure_cycles(bench.kernel("follow_atomic"), 1, 1, counts, bench.cycles, np.int32(1000))
    yield "latency global atomic cycles", cycles / 1000
    bench.engine.free(counts)
    kernel = bench.kernel("atomics_shared")
    for kind, atomic_target in _ATOMIC_TARGETS.items():
        for words in (256, 4096):
            arguments = (bench.ends, bench.cycles, np.int32(kind), np.int32(words), np.int32(_ROUNDS))
            full = bench.measure_cycles(kernel, bench.multiprocessors, 1024, *arguments, shared=4 * words)
            yield f"shared atomics {atomic_target} of {words}, cycles a request", full / (32 * _ROUNDS)


def _measure_barriers(bench: _Bench) -> Iterator[tuple[str, float]]:
    for warps in (1, 2, 4, 8, 16, 32):
        rounds = 256
        cycles = bench.measure_cycles(bench.kernel("barriers"), 1, 32 * warps, bench.cycles, np.int32(rounds))
        yield f"barrier of {warps} warps cycles", cycles / rounds


def _measure_bandwidth(bench: _Bench) -> Iterator[tuple[str, float]]:
    from_, to = (bench.engine.allocate((_LARGE // 4,), np.uint32) for _ in range(2))
    for buffer in (from_, to):
        bench.engine.fill(buffer, 0)
    full = 2 * bench.multiprocessors

    def rate(kernel: str, grid: int, block: int, size: int, *arguments: Any) -> float:
        return size / bench.time_us(bench.kernel(kernel), grid, block, *arguments) / 1e3

    vectors = np.uint64(_LARGE // 16)
    yield "memory read GB/s", rate("read_vectors", full, 1024, _LARGE, from_, bench.ends, vectors, np.int32(1))
    yield "memory written GB/s", rate("write_vectors", full, 1024, _LARGE, to, vectors)
    yield "memory copied GB/s", rate("copy_vectors", full, 1024, 2 * _LARGE, from_, to, vectors)
    words = np.uint64(_LARGE // 4)
    yield "memory read by words GB/s", rate("read_words", full, 1024, _LARGE, from_, bench.ends, words, np.int32(1))
    for warps in (1, 4, 8, 16, 32):
        size = _LARGE // 4
        arguments: tuple[Any, ...] = (from_, bench.ends, np.uint64(size // 4), np.int32(1))
        figure = rate("read_words", bench.multiprocessors, 32 * warps, size, *arguments)
        yield f"memory read by words, {warps} warps a multiprocessor, GB/s", figure
    for megabytes in (8, 16, 24, 32, 40):
        size, rounds = megabytes << 20, 40
        arguments = (from_, bench.ends, np.uint64(size // 16), np.int32(rounds))
        yield f"last cache read {megabytes} MB GB/s", rate("read_vectors", full, 1024, size * rounds, *arguments)
    size, rounds = 1 << 20, 20
    arguments = (from_, bench.ends, np.uint64(size // 16), np.int32(rounds))
    yield "last cache read by one multiprocessor GB/s", rate("read_vectors", 1, 1024, size * rounds, *arguments)
    arguments = (from_, bench.ends, np.uint64((1 << 24) // 16), np.int32(1))
    yield "memory read by one multiprocessor GB/s", rate("read_vectors", 1, 1024, 1 << 24, *arguments)
    threads, rounds = full * 1024, 64
    half = 1 << (int(dict(_read_attributes(bench))["attribute l2_cache_size"]) // 2).bit_length() - 1
    for size, where in ((half, "the last cache"), *((size, f"{size >> 20} MB") for size in (1 << 28, _LARGE))):
        arguments = (from_, bench.ends, np.uint32(size // 32), np.int32(rounds))
        figure = 32 * threads * rounds / bench.time_us(bench.kernel("read_sectors"), full, 1024, *arguments) / 1e3
        yield f"random sectors of {where} GB/s", figure
    bench.engine.free(from_, to)


def _measure_launches(bench: _Bench) -> Iterator[tuple[str, float]]:
    kernel = bench.kernel("nothing")
    for grid, block in _grids(bench.multiprocessors):
        yield f"launch of {grid} blocks of {block} us", bench.time_us(kernel, grid, block, repeat=21)
    small = bench.engine.allocate((1 << 18,), np.uint32)
    times = []
    for _ in range(22):
        bench.engine.take_times()
        bench.engine.fill(small, 0)
        times.append(1e3 * bench.engine.take_times().kernel)
    yield "fill of 1 MB us", statistics.median(times)


def _grids(multiprocessors: int) -> Sequence[tuple[int, int]]:
    return (
        (1, 32), (1, 1024), (multiprocessors, 1024), (1 << 14, 64), (1 << 18, 32), (1 << 18, 64), (1 << 18, 256),
        (1 << 18, 1024), (1 << 20, 256),
    )  # fmt: skip
