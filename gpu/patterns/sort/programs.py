"""The host programs of the sorts: which kernels a rung launches, in which order."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.arrays import READABLE_ELEMENTS, typed, whole_warps
from gpu.declaration.pattern import Array, HostProgram, Inputs, Outputs, Params, Progress
from gpu.engines.base import Argument, Buffer, Engine, Module
from gpu.patterns import scan
from gpu.patterns.sort.keys import drawn, rank, unrank
from gpu.warp import WARP

FILE = "sort.cu"
ONESWEEP_FILE = "sort_onesweep.cu"
QUICK_FILE = "sort_quick.cu"
SAMPLE_FILE = "sort_sample.cu"

_C_TYPES = {"int32": "int", "uint32": "unsigned", "float32": "float"}

# As in the kernels: the bits of a key, the rounds of a radix tile, the keys that a thread merges.
_KEY_BITS = 32
_ROUNDS = 8
_OUTPUTS = 8

# So many keys are a picture.
_SAMPLED = 512

# One sweep's own: keys a thread (fewer where places take registers), where that leaves so many tiles for each
# multiprocessor; blocks that count digits.
_KEYS_A_THREAD = (24, 16, 8, 4, 2, 1)
_PAIRS_A_THREAD = (22, 16, 8, 4, 2, 1)
_TILES_EACH = 1.5
_COUNTING_BLOCKS_EACH = 8


@dataclass(frozen=True)
class Data:
    """Keys on the device, and the places where they were; one element where no places are asked for."""

    keys: Buffer
    places: Buffer


@dataclass(frozen=True)
class Job:
    """One run of a sort.

    Parameters
    ----------
    engine : Engine
    defines : mapping of str to int or str
        The macros that all kernels take.
    n : int
        How many keys there are, at least 1.
    bits : int
        So many low bits of the keys' order differ; of many keys any may.
    digit_bits : int
        So many of them a radix pass takes.
    """

    engine: Engine
    defines: dict[str, int | str]
    n: int
    bits: int
    digit_bits: int

    @property
    def block(self) -> int:
        """Threads in a block."""
        return int(self.defines["BLOCK_SIZE"])

    def build(self, file: str = FILE, **more: int) -> Module:
        """Build a kernel file for the keys at hand."""
        return self.engine.build(file, {**self.defines, **more})

    def launch(self, module: Module, kernel: str, blocks: int, *arguments: Argument) -> None:
        """Launch a kernel of a module on so many blocks."""
        self.engine.launch(module.kernel(kernel), (blocks, 1, 1), (self.block, 1, 1), *arguments)

    def progress(self, data: Data, done: float, message: str) -> Progress:
        """Return how far the launches are, in 0..1, with what the keys look like."""
        return Progress(0.1 + 0.8 * min(done, 1.0), message, partial(self.sample, data.keys))

    def sample(self, keys: Buffer) -> Array:
        """Return a few hundred of the keys, spread evenly."""
        count = min(self.n, _SAMPLED)
        sample = self.engine.allocate((count,), keys.dtype)
        numbers = np.int32(self.n), np.int32(count)
        self.launch(self.build(SAMPLE_FILE), "sort_sample", -(-count // self.block), keys, sample, *numbers)
        values = self.engine.download(sample)
        self.engine.free(sample)
        return drawn(values)

    def empty_like(self, data: Data) -> Data:
        """Allocate as much as `data` is."""
        keys, places = data.keys, data.places
        return Data(self.engine.allocate(keys.shape, keys.dtype), self.engine.allocate(places.shape, places.dtype))

    def free(self, data: Data) -> None:
        """Give keys and places back."""
        self.engine.free(data.keys)
        self.engine.free(data.places)


Sorting = Generator[Progress, None, Data]
Sort = Callable[[Job, Data], Sorting]


def one_thread(job: Job, data: Data) -> Sorting:
    """Let one thread select the least key of those that are left, again and again."""
    kernel = job.build().kernel("sort_one_thread")
    job.engine.launch(kernel, (1, 1, 1), (1, 1, 1), data.keys, data.places, np.int32(job.n))
    yield job.progress(data, 1.0, "sorted")
    return data


def odd_even(job: Job, data: Data) -> Sorting:
    """Sort two neighboring halves of sections at a time, in as many rounds as there are halves."""
    module = job.build()
    rounds = 1 if job.n <= 2 * job.block else -(-job.n // job.block)
    for number in range(rounds):
        shift = number % 2 * job.block
        blocks = -(-(job.n + shift) // (2 * job.block))
        job.launch(module, "sort_odd_even", blocks, data.keys, data.places, np.int32(job.n), np.int32(shift))
        yield job.progress(data, (number + 1) / rounds, f"round {number + 1} of {rounds}")
    return data


def bitonic(job: Job, data: Data) -> Sorting:
    """Sort sections; then the network's strides over all keys, the short ones of a section together."""
    n, section = job.n, 2 * job.block
    module = job.build()
    sections, both = -(-n // section), (data.keys, data.places, np.int32(n))
    job.launch(module, "sort_bitonic", sections, *both)
    half = section
    rounds = (sections - 1).bit_length()
    yield job.progress(data, 1 / (rounds + 1), f"sections of {section}")
    while half < n:
        stride = half
        while stride > job.block:
            mask = 2 * half - 1 if stride == half else stride
            pairs = n // (2 * stride) * stride + min(n % (2 * stride), stride)
            blocks = -(-pairs // job.block)
            job.launch(module, "sort_bitonic_step", blocks, *both, np.int32(stride), np.int32(mask))
            stride //= 2
        job.launch(module, "sort_bitonic_merge", sections, *both)
        half *= 2
        done = (half // section).bit_length()
        yield job.progress(data, done / (rounds + 1), f"sections of {half}")
    return data


def warp_radix(job: Job, data: Data) -> Sorting:
    """Sort 32 keys at a time by their bits, and merge."""
    module = job.build()
    blocks = -(-job.n // job.block)
    job.launch(module, "sort_warp_radix", blocks, data.keys, data.places, np.int32(job.n), np.int32(job.bits))
    return (yield from _merges(job, module, data, WARP))


def block_radix(job: Job, data: Data) -> Sorting:
    """Sort a block's keys by their bits, and merge."""
    module = job.build()
    blocks = -(-job.n // job.block)
    job.launch(module, "sort_block_radix", blocks, data.keys, data.places, np.int32(job.n), np.int32(job.bits))
    return (yield from _merges(job, module, data, job.block))


def merge(job: Job, data: Data) -> Sorting:
    """Sort a block's keys by merges in shared memory, and merge on."""
    module = job.build()
    job.launch(module, "sort_merge", -(-job.n // job.block), data.keys, data.places, np.int32(job.n))
    return (yield from _merges(job, module, data, job.block))


def _merges(job: Job, module: Module, data: Data, run: int) -> Sorting:
    """Merge sorted runs two by two until one is left."""
    n = job.n
    section, rounds = run, (-(-n // run) - 1).bit_length()
    yield job.progress(data, 1 / (rounds + 1), f"runs of {run}")
    while run < n:
        merged = job.empty_like(data)
        blocks = -(-n // (_OUTPUTS * job.block))
        job.launch(module, "sort_merge_path", blocks, *_both(data, merged), np.int32(n), np.int32(run))
        job.free(data)
        data = merged
        run *= 2
        done = (run // section).bit_length()
        yield job.progress(data, done / (rounds + 1), f"runs of {run}")
    return data


def radix(job: Job, data: Data) -> Sorting:
    """Sort by a digit at a time, the lowest first: count, scan the counts, scatter."""
    engine, n = job.engine, job.n
    tiles = -(-n // (_ROUNDS * job.block))
    module = job.build(DIGIT_BITS=job.digit_bits)
    scanning = scan.build(engine, "int32", "sum", job.block)
    for shift in range(0, job.bits, job.digit_bits):
        counts = engine.allocate((2**job.digit_bits * tiles,), np.int32)
        job.launch(module, "sort_radix_count", tiles, data.keys, counts, np.int32(n), np.int32(shift))
        starts = scan.scan_sections(engine, scanning, "scan_sections", counts, job.block, 4, exclusive=True)
        scattered = job.empty_like(data)
        numbers = np.int32(n), np.int32(shift)
        job.launch(module, "sort_radix_scatter", tiles, *_both(data, scattered), starts, *numbers)
        for buffer in (counts, starts):
            engine.free(buffer)
        job.free(data)
        data = scattered
        done = shift + job.digit_bits
        yield job.progress(data, done / job.bits, f"sorted by the lowest {done} bits")
    return data


def quick(job: Job, data: Data) -> Sorting:
    """Launch one block; the rest the device launches by itself."""
    # Of few keys some parts are left that launch others, for somebody who watches.
    small = min(job.block, max(job.n // 4, 2))
    module = job.build(QUICK_FILE, SMALL=small)
    spare = job.empty_like(data)
    numbers = np.int32(0), np.int32(job.n), np.int32(0), np.int32(0)
    job.launch(module, "sort_quick", 1, *_both(data, spare), *numbers)
    yield Progress(0.8, "parted and sorted")
    job.free(spare)
    return data


def onesweep(job: Job, data: Data) -> Sorting:
    """Count the digits of all passes; then each pass in one launch."""
    engine, n = job.engine, job.n
    keys_a_thread = _keys_a_thread(job)
    tile = keys_a_thread * job.block
    tiles = -(-n // tile)
    module = job.build(ONESWEEP_FILE, DIGIT_BITS=job.digit_bits, KEYS_A_THREAD=keys_a_thread)
    digits, passes = 2**job.digit_bits, -(-job.bits // job.digit_bits)
    counts = engine.allocate((_KEY_BITS // job.digit_bits, digits), np.uint32)
    states = engine.allocate((passes, 1 + tiles * digits), np.uint32)
    engine.fill(counts, 0)
    engine.fill(states, 0)
    counting = min(tiles, _COUNTING_BLOCKS_EACH * engine.device.multiprocessors)
    job.launch(module, "sort_digit_counts", counting, data.keys, counts, np.int32(n))
    other = job.empty_like(data)
    for number in range(passes):
        numbers = np.int32(n), np.int32(number)
        job.launch(module, "sort_onesweep", tiles, *_both(data, other), counts, states, *numbers)
        data, other = other, data
        yield job.progress(data, (number + 1) / passes, f"sorted by the lowest {(number + 1) * job.digit_bits} bits")
    for buffer in (counts, states):
        engine.free(buffer)
    job.free(other)
    return data


def thrust(job: Job, data: Data) -> Sorting:
    """Let Thrust sort the keys as the unsigned numbers that are in their order."""
    descending, pairs = bool(job.defines["DESCENDING"]), bool(job.defines["PAIRS"])

    def routine(library: Any, keys: Any, places: Any) -> None:
        ranks = rank(keys, descending=descending)
        if pairs:
            order = library.argsort(ranks)
            places[:] = order
            keys[:] = keys[order]
            return
        ranks.sort()
        if ranks is not keys:
            keys[:] = unrank(ranks, keys.dtype, descending=descending)

    job.engine.call(routine, data.keys, data.places)
    yield Progress(0.8, "sorted")
    return data


def _keys_a_thread(job: Job) -> int:
    """Return how many keys a thread takes: what shared memory holds, but so few that all multiprocessors work."""
    device, block = job.engine.device, job.block
    counts = 4 * 2**job.digit_bits * (block // WARP + 1) + 4 * 2 * 2**job.digit_bits
    for keys in _PAIRS_A_THREAD if job.defines["PAIRS"] else _KEYS_A_THREAD:
        fits = 4 * keys * block + counts <= device.shared_bytes_per_block
        if fits and job.n >= _TILES_EACH * device.multiprocessors * block * keys:
            return keys
    return 1


def _both(data: Data, to: Data) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    return data.keys, data.places, to.keys, to.places


RUNGS: dict[str, tuple[Sort, bool]] = {
    "one-thread": (one_thread, False),
    "odd-even": (odd_even, False),
    "bitonic": (bitonic, False),
    "warp-radix": (warp_radix, True),
    "block-radix": (block_radix, True),
    "radix": (radix, True),
    "quicksort": (quick, True),
    "merge": (merge, False),
    "onesweep": (onesweep, True),
    "thrust": (thrust, False),
}
"""By variants' names, the launches for one key or more, and whether blocks are whole warps."""


def program(variant: str) -> HostProgram:
    """Return a variant's host program: upload, sort, download."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        pairs = params["result"] == "places"
        keys = typed(inputs, params)
        n = keys.size
        data = Data(engine.upload(keys), engine.upload(np.arange(n if pairs else 1, dtype=np.int32)))
        if not n:
            yield Progress(0.1, "uploaded")
        else:
            data = yield from _sorting(variant, engine, data, keys, params)
        yield Progress(0.9, "sorted")
        result = engine.download(data.keys)
        outputs = {"keys": result, "result": engine.download(data.places) if pairs else result}
        engine.free(data.keys)
        engine.free(data.places)
        return outputs

    return run


def sorted_on_device(variant: str, engine: Engine, data: Data, keys: Array, params: Params) -> Data:
    """Sort at least one key by a rung; what is returned takes the place of `data`, whose keys are `keys`."""
    sorting = _sorting(variant, engine, data, keys, params)
    while True:
        try:
            next(sorting)
        except StopIteration as end:
            made: Data = end.value
            return made


def _sorting(variant: str, engine: Engine, data: Data, keys: Array, params: Params) -> Sorting:
    job = job_of(variant, engine, params, keys.size, _differing_bits(keys))
    yield job.progress(data, 0.0, "as they came")
    return (yield from RUNGS[variant][0](job, data))


def job_of(variant: str, engine: Engine, params: Params, n: int, bits: int = _KEY_BITS) -> Job:
    """Return what a variant's launches for so many keys have in common."""
    defines: dict[str, int | str] = {
        "KEY": _C_TYPES[params["dtype"]],
        "DESCENDING": int(params["order"] == "descending"),
        "PAIRS": int(params["result"] == "places"),
        "BLOCK_SIZE": whole_warps(params) if RUNGS[variant][1] else int(params["block"]),
    }
    return Job(engine, defines, n, bits, int(params["bits"]))


def _differing_bits(keys: Array) -> int:
    """Return how many low bits of the keys' order differ, at least 1: few enough to be watched."""
    if keys.size > READABLE_ELEMENTS:
        return _KEY_BITS
    ranks = rank(keys)
    return max(int(np.bitwise_or.reduce(ranks ^ ranks[0])).bit_length(), 1)
