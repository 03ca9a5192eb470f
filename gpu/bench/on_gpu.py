"""Benchmark on the GPU: our variants, then their peers in separate processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpu import engines
from gpu.bench.ladder import measure, prepared_ahead
from gpu.bench.measurement import Measurement
from gpu.bench.peers import cases_of
from gpu.bench.programs import Amounts, Programs
from gpu.patterns import all_patterns

_ROOT = Path(__file__).resolve().parents[2]

_AHEAD = 3
"""Cases whose inputs and reference results are in memory while another is measured: up to 12 GB each."""


def run(seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure our variants, then the peers, and yield their rows.

    Raises
    ------
    EngineUnavailableError
        There is no usable GPU.
    """
    return measure_cases("gpu", seed, repetitions)


def measure_cases(of: str, seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure variants, then peers, on all cases of a kind: "gpu", or "beside" for those over sizes."""
    amounts: dict[str, tuple[float, str]] = {}
    cases = [(pattern, case) for pattern in all_patterns().values() for case in cases_of(pattern, of)]
    engine = engines.create("cuda")
    # Peers' programs are compiled while our variants are measured.
    with tempfile.TemporaryDirectory() as folder, Programs([case for _, case in cases], folder) as programs:
        try:
            for prepared in prepared_ahead(cases, seed, _AHEAD):
                for row in measure(engine, prepared, repetitions):
                    if row.unit:
                        amounts[row.work] = (row.amount, row.unit)
                    yield row
        finally:
            engine.close()
        yield from _libraries(of, amounts, seed, repetitions)
        yield from programs.run(amounts, seed, repetitions)


def device_name() -> str:
    """Return the GPU's name."""
    engine = engines.create("cuda")
    try:
        return engine.device.name
    finally:
        engine.close()


def _libraries(of: str, amounts: Amounts, seed: int, repetitions: int) -> Iterator[Measurement]:
    arguments = json.dumps({"of": of, "amounts": amounts, "seed": seed, "repetitions": repetitions})
    command = [sys.executable, "-m", "gpu.bench.peers", arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=_ROOT)
    for line in process.stdout.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            yield Measurement(**{**record, "times_ms": tuple(record["times_ms"])})
    if process.returncode:
        yield Measurement(
            "peers", "all", ours=False, times_ms=(), amount=0, unit="", remark="the peers' process failed"
        )
