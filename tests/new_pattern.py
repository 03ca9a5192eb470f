"""A pattern that nobody has heard of: a kernel file and a module, in a folder of their own.

Its parameters are called as no other pattern's are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gpu.patterns
from gpu.patterns import all_patterns

KERNEL = """\
// Doubling: each element twice.
//
// rung     idea                what still limits it
// doubled  a thread an element memory's bandwidth

extern "C" __global__ void doubled(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + in[i];
}
"""

MODULE = '''
"""Doubling of an array."""

from pathlib import Path

import numpy as np

from gpu.declaration.arrays import outline
from gpu.declaration.benchmark import Benchmark, Case, Peer
from gpu.declaration.pattern import Choice, Cost, Integer, Pattern, Progress, Textbook, Variant, Work
from gpu.declaration.presentation import ArrayPresentation
from gpu.declaration.roles import FROM_FILE, Role

FILE = str(Path(__file__).with_suffix(".cu"))


def run(engine, inputs, params):
    n, threads = inputs["values"].size, int(params["threads"])
    kernel = engine.build(FILE).kernel("doubled")
    data = engine.upload(inputs["values"].astype(np.float32))
    out = engine.allocate((n,), np.float32)
    yield Progress(0.1, "uploaded")
    engine.launch(kernel, (max(1, -(-n // threads)), 1, 1), (threads, 1, 1), data, out, np.int32(n))
    result = engine.download(out)
    engine.free(data, out)
    return {"doubles": result}


def make_input(params, seed):
    if params["made"] == "rising":
        return {"values": np.arange(params["amount"], dtype=np.float32)}
    return {"values": np.random.default_rng(seed).random(params["amount"], np.float32)}


def peers(inputs, params):
    yield Peer("NumPy add", lambda: inputs["values"] + inputs["values"])


PATTERN = Pattern(
    name="doubling",
    order=0,
    title="Doubling",
    summary="Each element twice.",
    kernel_file=FILE,
    presentation=ArrayPresentation(),
    parameters=(
        Choice(name="made", label="Made", options=("rising", "any", FROM_FILE), default="rising", role=Role.SOURCE),
        Integer(name="amount", label="Amount", unit="elements", default=4096, minimum=0, maximum=2**20,
                only_if=("made", ("rising", "any")), role=Role.SIZE),
        Choice(name="threads", label="Threads", options=("32", "64", "128"), default="64", role=Role.BLOCK),
    ),
    variants=(
        Variant("plain", "Plain", run=run, idea="A thread an element.", limit="Memory.", kernels=("doubled",),
                textbook=lambda params, n: Textbook(n, 1, n)),
    ),
    default_variant="plain",
    result="doubles",
    reference=lambda inputs, params: 2 * inputs["values"].astype(np.float64),
    tolerance=lambda inputs, params: 0.0,
    cost=lambda inputs, params: Cost(4 * inputs["values"].size, 4 * inputs["values"].size, inputs["values"].size),
    work=lambda inputs, params: Work(inputs["values"].size, "element"),
    present=lambda inputs, params, outputs: {
        "input": outline(inputs["values"]),
        "output": outline(outputs["doubles"]),
        "elements": np.array(inputs["values"].size),
    },
    make_input=make_input,
    step_params={"amount": 16, "threads": "32"},
    step_input=lambda inputs: {**inputs, "values": inputs["values"][:32]},
    benchmark=Benchmark(
        gpu=(Case("doubling, 2^10 float32", {"amount": 2**10}),),
        compiled=(Case("doubling, 2^12 float32", {"amount": 2**12}),),
        lockstep=(Case("doubling, 2^10 float32", {"amount": 2**10}),),
        peers=peers,
    ),
)
'''


@contextmanager
def declare_pattern(folder: Path) -> Iterator[None]:
    """Let the pattern be among those that are there."""
    (folder / "doubling.cu").write_text(KERNEL, encoding="utf-8")
    (folder / "doubling.py").write_text(MODULE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu.patterns, "__path__", [*gpu.patterns.__path__, str(folder)])
        patch.delitem(sys.modules, "gpu.patterns.doubling", raising=False)
        all_patterns.cache_clear()
        try:
            yield
        finally:
            all_patterns.cache_clear()
