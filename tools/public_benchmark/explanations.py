"""The mechanisms of the misses: why the timing model is wrong, by program and kernel."""

from __future__ import annotations

from collections.abc import Mapping

EXPLANATIONS: Mapping[str, str] = {
    "amgmk-cuda relax": "DRAM transfers 1.8 times the modeled bytes: L2 evicts values that other rows need again.",
    "assert-cuda perfKernel": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "assert-cuda perfKernel2": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "bitpermute-cuda bit_rev_permutation_z": "The loads of a loop with branches are modeled one after the other; the "
    "assembler predicates the branches and issues the loads together.",
    "cmembench-cuda benchmark_constant": "The compiler of the measurement, clang, moves the loop into the branch of "
    "the only thread that stores its sum.",
    "columnarSolver-cuda setupKernel": "A chain of dependent products; nvcc's code has 2.2 times the operations of "
    "LLVM's code, which combines several steps of the random generator.",
    "ert-cuda block_stride": "Arithmetic of half2 is modeled as float32 operations, with conversions.",
    "myocyte-cuda kernel": "Probably the fetch of long code that runs once; 676 of 5,561 float64 "
    "operations are modeled.",
    "pso-cuda kernelUpdatePBest": "Probably branches in powf() and sinf(): without them, as modeled, independent calls "
    "overlap.",
    "tqs-cuda TaskQueue_gpu": "LLVM replaces a loop of 1,000 equal additions by one sum; nvcc's code executes it.",
}
