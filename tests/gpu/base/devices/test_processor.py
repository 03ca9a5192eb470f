"""What is known of a processor, from how machines describe themselves."""

from __future__ import annotations

import pytest

from gpu.base.devices import processor

AMD = """vendor_id\t: AuthenticAMD
cpu MHz\t\t: 2500.0
physical id\t: 0
core id\t\t: {core}
flags\t\t: sse2 fma avx2 avx512f
"""


def machine(cores):
    return "\n".join(AMD.format(core=core) for core in cores)


def test_the_peak_counts_cores_and_not_their_threads():
    # Two multiply-adds of eight lanes a cycle: 32 operations.
    assert processor.compute_peak_gflops(machine([0, 1]), 2) == pytest.approx(2 * 2.5 * 32)
    assert processor.compute_peak_gflops(machine([0, 0, 1, 1]), 4) == pytest.approx(2 * 2.5 * 32)
    assert processor.compute_peak_gflops(machine(range(8)), 3) == pytest.approx(3 * 2.5 * 32)
    assert processor.compute_peak_gflops(machine([0]), 1, highest_mhz=4000.0) == pytest.approx(4 * 32)


def test_intel_has_vectors_twice_as_wide():
    intel = machine([0]).replace("AuthenticAMD", "GenuineIntel")
    assert processor.compute_peak_gflops(intel, 1) == pytest.approx(2.5 * 64)
    assert processor.compute_peak_gflops(intel.replace(" avx512f", ""), 1) == pytest.approx(2.5 * 32)


@pytest.mark.parametrize(
    "text", ["", "\n", "Processor : ARMv8\nFeatures : asimd\n", machine([0]).replace("cpu MHz", "x")]
)
def test_a_machine_that_does_not_say_has_no_peak(text):
    assert processor.compute_peak_gflops(text, 4) == 0.0


def test_this_machine_has_cores_and_a_name():
    assert processor.count_cores() >= 1
    assert processor.processor_name()
    assert processor.peak_gflops() >= 0.0
