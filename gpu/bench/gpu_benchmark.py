"""Benchmark on the GPU: our variants, then their peers in separate processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict

from gpu import engines
from gpu.base.paths import ROOT
from gpu.bench.ladder import measure, prepare_cases_ahead
from gpu.bench.measurement import Measurement
from gpu.bench.peers import GPU, CaseSelection
from gpu.bench.programs import Amounts, PeerPrograms
from gpu.patterns import all_patterns

_PREPARED_CASES = 3
"""Number of cases to prepare while another is measured; inputs and reference results take up to 12 GB per case."""


def run(seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure our variants, then the peers, and yield their rows.

    Raises
    ------
    EngineUnavailableError
        There is no usable GPU.
    """
    return measure_cases(CaseSelection(GPU), seed, repetitions)


def measure_cases(selection: CaseSelection, seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure variants, then peers, on the selected cases."""
    amounts: dict[str, tuple[float, str]] = {}
    cases = [(pattern, case) for pattern in all_patterns().values() for case in selection.cases(pattern)]
    engine = engines.create_engine("cuda")
    # Peers' programs are compiled while our variants are measured.
    with tempfile.TemporaryDirectory() as folder, PeerPrograms([case for _, case in cases], folder) as programs:
        try:
            for prepared in prepare_cases_ahead(cases, seed, _PREPARED_CASES):
                for row in measure(engine, prepared, repetitions):
                    if row.unit:
                        amounts[row.work] = (row.amount, row.unit)
                    yield row
        finally:
            engine.close()
        yield from _measure_libraries(selection, amounts, seed, repetitions)
        yield from programs.run(amounts, seed, repetitions)


def device_name() -> str:
    """Return the GPU's name."""
    engine = engines.create_engine("cuda")
    try:
        return engine.device.name
    finally:
        engine.close()


def _measure_libraries(
    selection: CaseSelection, amounts: Amounts, seed: int, repetitions: int
) -> Iterator[Measurement]:
    arguments = json.dumps(
        {"selection": asdict(selection), "amounts": amounts, "seed": seed, "repetitions": repetitions}
    )
    command = [sys.executable, "-m", "gpu.bench.peers", arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    for line in process.stdout.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            yield Measurement(**{**record, "times_ms": tuple(record["times_ms"])})
    if process.returncode:
        yield Measurement(
            "peers", "all", is_variant=False, times_ms=(), amount=0, unit="", remark="the peers' process failed"
        )
