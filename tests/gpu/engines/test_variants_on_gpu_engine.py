"""Every variant on the engine for GPUs, at the small size that its steps are shown at: what each asks of the engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gpu import engines
from gpu.declaration.pattern import Pattern
from gpu.engines.base import Engine
from gpu.patterns import all_patterns
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload

pytestmark = pytest.mark.gpu

EVERY = [
    pytest.param(pattern, variant.name, id=f"{pattern.name}-{variant.name}")
    for pattern in all_patterns().values()
    for variant in pattern.variants
    if not variant.library
]

IMAGE = np.random.default_rng(1).integers(0, 256, (13, 29), np.uint8)


@pytest.fixture(scope="module")
def gpu() -> Iterator[Engine]:
    engine = engines.create_engine("cuda")
    yield engine
    engine.close()


@pytest.mark.parametrize(("pattern", "variant"), EVERY)
def test_every_variant_is_right_and_timed(gpu: Engine, pattern: Pattern, variant: str) -> None:
    chosen = pattern.variant(variant)
    if missing := chosen.unsupported_reason(gpu.device):
        pytest.skip(missing)
    image = {"image": IMAGE, "maxval": np.array(255)} if pattern.is_image_pattern else {}
    report = run_pattern(gpu, Workload(pattern, chosen, image, dict(pattern.step_params)), lambda progress: None).report
    assert report.verified or chosen.deliberate_error
    assert report.time_ms.launches > 0
    assert report.time_ms.kernel > 0
    assert (report.engine, report.executor) == ("cuda", "gpu")
