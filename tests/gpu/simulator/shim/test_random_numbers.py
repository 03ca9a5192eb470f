"""curand_kernel.h against the generators' published answers, and against references that share none of its code."""

from __future__ import annotations

from itertools import pairwise
from math import pi
from typing import Any

import numpy as np
import pytest
import scipy  # imports its packages at the first access: `stats` takes a second

from gpu.hosts.pycuda.random_numbers import direction_vectors
from tests.gpu.simulator.kernel_runner import run_kernel

Array = np.ndarray[Any, Any]

# MRG32k3a: moduli, and what the last three numbers of each recurrence are multiplied by, the oldest first.
MODULI = (4294967087, 4294944443)
FACTORS = ((-810728, 1403580, 0), (-1370589, 0, 527612))

CURANDS = {
    "XORWOW": (
        "cee61622 8833fe25 689d0542 73c6d049 bb9de310 39782927 b2c50c74 f8466be0 43ad2541",
        (-0.805193067, -0.413907647, 0.291456997, 0.530189812, 0.87521106),
        (0.69831930095214023, 0.63404900608599846, 0.48288758029798456),
        (0.62924755621787398, 0.63536274918736202, -1.625106632044369),
        (1.38335085, 1.89241409, 1.21396577),
        (1.2236951719166498, 1.2630399100960945),
        (1, 28, 5000, 8997),
    ),
    "Philox4_32_10": (
        "552b13e4 1ea3e8fe a1926947 2abdaf55 5032b86c cddafe95 4948db89 c50b3596 9b156e5c",
        (1.37734568, -0.723258972, -1.01946688, -1.20552361, 1.58475089),
        (0.8041228405199945, 0.28626796836033463, 0.76970229088328779),
        (0.77202678771528266, 0.51506083503948952, -1.6055517875581538),
        (1.80660462, 1.63880563, 1.83064508),
        (1.6192117753321729, 1.2472326698308385),
        (0, 14, 4888, 8986),
    ),
    "MRG32k3a": (
        "03dbac87 c7ad261e bf16a40a c86b7d25 0057f62f da0f6ad3 04ec1038 0081f9e0 da449a90",
        (-0.326201648, -1.09317625, 0.975098431, 0.51379472, -0.766179502),
        (0.85179774906154015, 0.019227040935878539, 0.0019832775961852209),
        (-0.66221774471579131, -0.27102544734232392, 1.8157190995789962),
        (1.889642, 1.37515557, 1.5065273),
        (1.6395575222012042, 1.472863113242745),
        (0, 17, 5117, 9135),
    ),
}
"""cuRAND's own numbers (10.4) of seed 1234, subsequence 7 and offset 1000003, kind by kind, as the test draws them."""


def test_philox_gives_the_known_answers_of_random123() -> None:
    source = """#include <curand_kernel.h>
    __global__ void k(unsigned int *out) {
        curandStatePhilox4_32_10_t state;
        curand_init(0, 0, 0, &state);
        ((uint4 *)out)[0] = curand4(&state);
        curand_init(~0ull, ~0ull, 0, &state);
        for (int i = 0; i < 4; ++i) skipahead(~0ull, &state);  // 2^66 - 4 numbers: the last counter but none
        ((uint4 *)out)[1] = curand4(&state);
        curand_init(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0, &state);
        for (int i = 0; i < 4; ++i) skipahead(0x85a308d3243f6a88ull, &state);
        ((uint4 *)out)[2] = curand4(&state);
    }"""
    (out,) = run_kernel(source, "k", np.zeros(12, np.uint32), block=1)
    answers = (
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    )
    assert [" ".join(f"{number:08x}" for number in four) for four in out.reshape(3, 4)] == [*answers]


def step_repeatedly(step: list[list[int]], times: int, modulus: int, numbers: list[int]) -> list[int]:
    """Apply a matrix so many times, in Python's numbers."""

    def product(left: list[list[int]], right: list[list[int]]) -> list[list[int]]:
        columns = [*zip(*right, strict=True)]
        return [[sum(a * b for a, b in zip(row, each, strict=True)) % modulus for each in columns] for row in left]

    whole = [[int(i == j) for j in range(3)] for i in range(3)]
    while times:
        whole = product(step, whole) if times & 1 else whole
        step, times = product(step, step), times >> 1
    return [sum(a * b for a, b in zip(row, numbers, strict=True)) % modulus for row in whole]


def mrg32k3a(seeds: tuple[list[int], list[int]], skipped: int, count: int) -> list[int]:
    """Return numbers of L'Ecuyer's recurrences, before they are made fractions."""
    states = []
    for modulus, (a, b, c), seed in zip(MODULI, FACTORS, seeds, strict=True):
        states.append(step_repeatedly([[0, 1, 0], [0, 0, 1], [a, b, c]], skipped, modulus, seed))
    found = []
    for _ in range(count):
        for modulus, factors, state in zip(MODULI, FACTORS, states, strict=True):
            state.append(sum(factor * number for factor, number in zip(factors, state, strict=True)) % modulus)
            del state[0]
        first, second = states[0][-1], states[1][-1]
        found.append(first - second if first > second else first - second + MODULI[0])
    return found


def test_mrg32k3a_follows_its_recurrences_and_jumps_as_far_as_it_says() -> None:
    source = """#include <curand_kernel.h>
    __device__ void draw(curandStateMRG32k3a *state, double *out) {
        for (int i = 0; i < 5; ++i) out[i] = curand_uniform_double(state);
    }
    __global__ void k(double *out, unsigned int *whole) {
        curandStateMRG32k3a state;
        curand_init(0, 0, 0, &state);
        draw(&state, out);
        skipahead(999, &state);
        draw(&state, out + 5);
        curand_init(0, 3, 7, &state);
        draw(&state, out + 10);
        curand_init(0, 0, 0, &state);
        skipahead_sequence(5, &state);
        draw(&state, out + 15);
        curand_init(0x123456789abcdefull, 0, 0, &state);
        draw(&state, out + 20);
        curand_init(0, 0, 0, &state);
        for (int i = 0; i < 5; ++i) whole[i] = curand(&state);
    }"""
    out, whole = run_kernel(source, "k", np.zeros(25), np.zeros(5, np.uint32), block=1)
    # L'Ecuyer's first number of a state of 12345s (RngStreams, 2002).
    assert out[0] == pytest.approx(0.127011122046577, abs=1e-9)
    plain = ([12345] * 3, [12345] * 3)
    low, high = 0x89ABCDEF ^ 0x55555555, 0x1234567 ^ 0xAAAAAAAA
    seeded = (
        [12345 * each % MODULI[0] for each in (low, high, low)],
        [12345 * each % MODULI[1] for each in (high, low, high)],
    )
    expected = (
        *mrg32k3a(plain, 0, 5),
        *mrg32k3a(plain, 1004, 5),
        *mrg32k3a(plain, 3 * 2**76 + 7, 5),
        *mrg32k3a(plain, 5 * 2**127, 5),
        *mrg32k3a(seeded, 0, 5),
    )
    np.testing.assert_allclose(out, np.array(expected) / MODULI[0], rtol=1e-9)
    assert np.abs(whole / 2**32 - out[:5]).max() < 1e-9


def test_sequences_of_xorwow_are_two_to_the_67_apart() -> None:
    """The step is a matrix of bits: squared 67 times, in NumPy, it jumps from a sequence to the next."""
    source = """#include <curand_kernel.h>
    __global__ void k(unsigned int *out) {
        curandState state;
        curand_init(99, threadIdx.x, 0, &state);
        for (int i = 0; i < 5; ++i) out[6 * threadIdx.x + i] = state.v[i];
        out[6 * threadIdx.x + 5] = state.d;
    }"""
    (out,) = run_kernel(source, "k", np.zeros((4, 6), np.uint32), block=4)
    states = np.unpackbits(out[:, :5].astype("<u4").view(np.uint8), axis=1, bitorder="little")
    words = np.packbits(np.eye(160, dtype=np.uint8), axis=1, bitorder="little").view("<u4").astype(np.uint32)
    x, last = words[:, 0], words[:, 4]
    t = x ^ (x >> np.uint32(2))
    new = last ^ (last << np.uint32(4)) ^ t ^ (t << np.uint32(1))
    moved = np.column_stack([words[:, 1:], new]).astype("<u4")
    step = np.unpackbits(moved.view(np.uint8), axis=1, bitorder="little").astype(np.float32)
    for _ in range(67):
        step = step @ step % 2
    for before, after in pairwise(states):
        np.testing.assert_array_equal(before @ step % 2, after)
    assert (out[:, 5] == out[0, 5]).all()


def test_sobol_sequences_are_scipys() -> None:
    """In Gray code's order, of 32 and 64 bits, from any place on; scrambled ones are shifted."""
    source = """#include <curand_kernel.h>
    __global__ void k(unsigned int *out, unsigned long long *wide, const unsigned int *of_32,
                      const unsigned long long *of_64, float *normal, unsigned int *shifted) {
        int d = threadIdx.x;
        curandStateSobol32 narrow;
        curandStateSobol64 long_one;
        curandStateScrambledSobol32 scrambled;
        curand_init(((curandDirectionVectors32_t *)of_32)[d], 5, &narrow);
        curand_init(((curandDirectionVectors64_t *)of_64)[d], 5, &long_one);
        curand_init(((curandDirectionVectors32_t *)of_32)[d], 0xabcd1234, 5, &scrambled);
        for (int i = 0; i < 16; ++i) {
            if (i == 8) skipahead(8, &narrow), skipahead(8ull, &long_one), skipahead(8, &scrambled);
            out[16 * d + i] = curand(&narrow);
            wide[16 * d + i] = curand(&long_one);
            shifted[16 * d + i] = curand(&scrambled);
        }
        for (int i = 0; i < 64; ++i) normal[64 * d + i] = curand_normal(&narrow);
    }"""
    chosen = [0, 1, 2, 50, 999, 19_999]
    of_32, of_64 = (direction_vectors(bits)[chosen] for bits in (32, 64))
    out, wide, _, _, normal, shifted = run_kernel(
        source, "k", np.zeros((6, 16), np.uint32), np.zeros((6, 16), np.uint64), of_32, of_64,
        np.zeros((6, 64), np.float32), np.zeros((6, 16), np.uint32), block=6,
    )  # fmt: skip
    points = scipy.stats.qmc.Sobol(20_000, scramble=False, bits=32).random(32)[:, chosen].T
    expected = (np.delete(points[:, 5:], np.s_[8:16], axis=1)[:, :16] * 2**32).astype(np.uint32)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(wide >> np.uint64(32), expected)
    np.testing.assert_array_equal(shifted, expected ^ np.uint32(0xABCD1234))
    assert scipy.stats.kstest(normal.reshape(-1), scipy.stats.norm.cdf).pvalue > 0.5, "as even as they are"


@pytest.mark.parametrize("state", ["XORWOW", "Philox4_32_10", "MRG32k3a"])
def test_distributions_are_what_they_are_called(state: str) -> None:
    """Uniform and normal numbers, float and double, and Poisson's mean and spread, on either side of 64."""
    source = f"""#include <curand_kernel.h>
    __global__ void k(float *uniform, double *doubles, float *normal, double *normals, unsigned int *few,
                      unsigned int *many) {{
        int i = threadIdx.x;
        curandState{state} state;
        curand_init(2026, i, 0, &state);
        uniform[i] = curand_uniform(&state);
        doubles[i] = curand_uniform_double(&state);
        normal[i] = curand_normal(&state);
        normals[i] = curand_normal_double(&state);
        few[i] = curand_poisson(&state, 4);
        many[i] = curand_poisson(&state, 400);
    }}"""
    kinds = (np.float32, np.float64, np.float32, np.float64, np.uint32, np.uint32)
    uniform, doubles, normal, normals, few, many = run_kernel(
        source, "k", *(np.zeros(1024, kind) for kind in kinds), block=1024
    )
    for values, distribution in ((uniform, "uniform"), (doubles, "uniform"), (normal, "norm"), (normals, "norm")):
        assert scipy.stats.kstest(values, distribution).pvalue > 0.001
    for values, mean in ((few, 4), (many, 400)):
        assert abs(values.mean() - mean) < 4 * np.sqrt(mean / 1024)
        assert 0.8 < values.var() / mean < 1.25
    assert 0 < uniform.min() < uniform.max() <= 1
    assert abs(np.sin(2 * pi * uniform).mean()) < 0.1


@pytest.mark.parametrize("state", CURANDS)
def test_numbers_are_curands_own(state: str) -> None:
    """By seed, subsequence and offset; the second of two normal numbers is kept, and given up for another kind."""
    source = f"""#include <curand_kernel.h>
    __global__ void k(unsigned int *whole, float *normal, double *uniforms, double *normals, float *log_normal,
                      double *log_normals, unsigned int *poisson) {{
        curandState{state} state;
        curand_init(1234, 7, 1000003, &state);
        for (int i = 0; i < 8; ++i) {{
            if (i == 5) skipahead(6, &state);
            whole[i] = curand(&state);
        }}
        skipahead_sequence(3, &state);
        whole[8] = curand(&state);
        curand_init(1234, 7, 1000003, &state);
        for (int i = 0; i < 5; ++i) curand_uniform(&state);
        for (int i = 0; i < 5; ++i) normal[i] = curand_normal(&state);
        for (int i = 0; i < 3; ++i) uniforms[i] = curand_uniform_double(&state);
        for (int i = 0; i < 3; ++i) normals[i] = curand_normal_double(&state);
        log_normal[0] = curand_log_normal(&state, 0.5f, 0.25f);
        float2 two = curand_log_normal2(&state, 0.5f, 0.25f);
        log_normal[1] = two.x, log_normal[2] = two.y;
        log_normals[0] = curand_log_normal_double(&state, 0.5, 0.25);
        log_normals[1] = curand_log_normal2_double(&state, 0.5, 0.25).y;
        poisson[0] = curand_poisson(&state, 0.5), poisson[1] = curand_poisson(&state, 20);
        poisson[2] = curand_poisson(&state, 5000), poisson[3] = curand_poisson(&state, 9000);
    }}"""
    kinds = (np.uint32, np.float32, np.float64, np.float64, np.float32, np.float64, np.uint32)
    counts = (9, 5, 3, 3, 3, 2, 4)
    made = run_kernel(source, "k", *map(np.zeros, counts, kinds), block=1)
    whole, *others, poisson = CURANDS[state]
    assert " ".join(f"{number:08x}" for number in made[0]) == whole
    for values, expected in zip(made[1:-1], others, strict=True):
        np.testing.assert_allclose(values, expected, rtol=1e-13 if values.dtype == np.float64 else 2e-6, atol=1e-15)
    assert made[-1].tolist() == [*poisson]


def test_philox_gives_several_numbers_at_once() -> None:
    source = """#include <curand_kernel.h>
    __global__ void k(unsigned int *whole, float *floats, double *doubles) {
        curandStatePhilox4_32_10_t state;
        curand_init(1234, 5, 3, &state);
        ((uint4 *)whole)[0] = curand4(&state);
        ((uint4 *)whole)[1] = curand_poisson4(&state, 3.5);
        curand_init(1234, 5, 3, &state);
        ((float4 *)floats)[0] = curand_uniform4(&state);
        ((float4 *)floats)[1] = curand_normal4(&state);
        ((float4 *)floats)[2] = curand_log_normal4(&state, 0.5f, 0.25f);
        curand_init(1234, 5, 3, &state);
        ((double2 *)doubles)[0] = curand_uniform2_double(&state);
        ((double2 *)doubles)[1] = curand_normal2_double(&state);
        whole[8] = curand(&state);
        curand_init(1234, 5, 3, &state);
        doubles[4] = curand_uniform4_double(&state).y;
        curand_init(1234, 5, 3, &state);
        doubles[5] = curand_normal4_double(&state).w;
        curand_init(1234, 5, 3, &state);
        doubles[6] = log(curand_log_normal4_double(&state, 0, 1).w);
    }"""
    whole, floats, doubles = run_kernel(
        source, "k", np.zeros(9, np.uint32), np.zeros(12, np.float32), np.zeros(7), block=1
    )
    assert " ".join(f"{number:08x}" for number in whole) == (
        "bd95acc8 5c5cf6f4 3fc0ce58 32773955 00000003 00000004 00000003 00000002 d1e85602"
    )
    np.testing.assert_allclose(
        floats,
        (
            *(0.740565121, 0.360793531, 0.249035731, 0.197131708),
            *(1.02961588, 0.73795104, 0.120630726, 0.565763474),
            *(1.40860426, 1.65902483, 2.43638587, 1.36001217),
        ),
        rtol=2e-6,
    )
    np.testing.assert_allclose(
        doubles[:4], (0.36079329826807177, 0.19713167357844968, 0.4054652570255291, 1.9016265069151121), rtol=1e-13
    )
    assert doubles[4] == doubles[1]
    assert doubles[5] == pytest.approx(doubles[6], rel=1e-13)
