"""Benchmarks of sorting: cases and peers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.benchmark import Benchmark, Case, CudaProgram, Peer, SizeComparison, SizeCurve, powers_of_two
from gpu.declaration.pattern import Inputs, Params

_FAST = {20: (), 24: ("bitonic", "merge", "radix", "onesweep", "peak"), 28: ("radix", "onesweep", "peak")}
"""By the binary logarithm of the number of keys: the variants that finish in reasonable time; () for all."""


def _gpu_case(power: int, result: str, variants: tuple[str, ...], dtype: str = "uint32") -> Case:
    n, pairs, bits = 2**power, result == "places", dtype.removeprefix("uint")

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        if not pairs:  # PyTorch's indices have 64 bits
            kind, limit = getattr(torch, f"int{bits}"), 2 ** (int(bits) - 1)
            keys = torch.randint(-limit, limit - 1, (n,), dtype=kind, device="cuda")
            yield Peer(f"PyTorch {torch.__version__}, int{bits}, with places", partial(torch.sort, keys))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        keys = cupy.random.default_rng(seed).integers(0, 2 ** int(bits), n, getattr(cupy, dtype))
        call = cupy.argsort if pairs else cupy.sort
        yield Peer(f"CuPy {cupy.__version__} (Thrust) {call.__name__}", partial(call, keys))

    return Case(
        f"sort, 2^{power} {dtype} {'keys with values' if pairs else 'keys'}",
        {"n": n, "dtype": dtype, "result": result},
        variants=variants,
        restores_inputs=True,
        libraries={"torch": torch, "cupy": cupy},
        programs=(CudaProgram("CUB", "cub.cu", (_CUB[dtype, pairs], n), prints_version=True),),
    )


_CUB = {
    ("uint32", False): "sort",
    ("uint32", True): "sort-pairs",
    ("uint64", False): "sort-64",
    ("uint64", True): "sort-pairs-64",
}
"""The operation argument of cub.cu, by the keys' type and whether they have values."""

_TIMED: dict[int, tuple[str, ...]] = {
    12: (),
    16: ("bitonic", "warp-radix", "block-radix", "radix", "quicksort", "merge", "onesweep"),
    20: ("bitonic", "warp-radix", "block-radix", "radix", "merge", "onesweep"),
    24: ("bitonic", "merge", "radix", "onesweep"),
}


def _timing_model_case(power: int, block: int = 256, variants: tuple[str, ...] = ()) -> Case:
    params = {"n": 2**power, "dtype": "uint32", "result": "keys", "block": str(block)}
    work = f"sort, 2^{power} uint32 keys, blocks of {block}"
    return Case(work, params, variants=variants or _TIMED[power], restores_inputs=True)


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    keys = inputs["values"].astype(params["dtype"])
    yield Peer(f"NumPy sort{_numpy_sort_instructions()}", lambda: np.sort(keys))


def _numpy_sort_instructions() -> str:
    """Return the vector instructions of NumPy's sort, which make it several times as fast; "" for none."""
    extensions = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
    if "AVX512" in extensions or "X86_V4" in extensions:
        return " (AVX-512)"
    return " (AVX2)" if "AVX2" in extensions or "X86_V3" in extensions else ""


BENCHMARK = Benchmark(
    gpu=tuple(_gpu_case(power, result, _FAST[power]) for result in ("keys", "places") for power in _FAST),
    compiled=(
        Case("sort, 2^20 uint32 keys", {"n": 2**20, "dtype": "uint32"}, variants=_FAST[24], restores_inputs=True),
        Case("sort, 2^16 uint32 keys", {"n": 2**16, "dtype": "uint32"}, variants=("quicksort",), restores_inputs=True),
    ),
    curve=SizeCurve(powers_of_two(14, 16, 18, 20, 22, 24), restores_inputs=True),
    goals={
        "bitonic": "a 15th of np.sort",
        "radix": "a 6th of np.sort",
        "onesweep": "a 10th of np.sort",
        "quicksort": "2 s at most",
    },
    peers=_peers,
    timing_model_cases=(
        *map(_timing_model_case, _TIMED),
        *(_timing_model_case(20, block, _TIMED[24]) for block in (128, 512)),
    ),
    size_comparisons=tuple(
        SizeComparison(
            f"sort of {dtype} {what}",
            "keys",
            {2**power: _gpu_case(power, result, ("onesweep", "peak"), dtype) for power in range(12, 29, 2)},
        )
        for dtype in ("uint32", "uint64")
        for what, result in (("keys", "keys"), ("keys with values", "places"))
    ),
)
