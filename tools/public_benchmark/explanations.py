"""The mechanisms of the misses: why the timing model is wrong, by program and kernel."""

from __future__ import annotations

from collections.abc import Mapping

EXPLANATIONS: Mapping[str, str] = {
    "amgmk-cuda relax": "DRAM transfers 1.8 times the modeled bytes: L2 evicts values that other rows need again.",
    "aop-cuda prepare_svd_kernel": "The assembler loads 32 words of shared memory before the first store to another "
    "array; modeled is each load after the store before it.",
    "assert-cuda perfKernel": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "assert-cuda perfKernel2": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "bitpermute-cuda bit_rev_permutation_z": "The loads of a loop with branches are modeled one after the other; the "
    "assembler predicates the branches and issues the loads together.",
    "bwt-cuda reconstruct_sequence": "The sort that fills its table is too long to run: modeled are places in order, "
    "measured random ones, with 5.2 times the DRAM bytes.",
    "cmembench-cuda benchmark_constant": "The compiler of the measurement, clang, moves the loop into the branch of "
    "the only thread that stores its sum.",
    "columnarSolver-cuda setupKernel": "A chain of dependent products; nvcc's code has 2.2 times the operations of "
    "LLVM's code, which combines several steps of the random generator.",
    "ert-cuda block_stride": "Arithmetic of half2 is modeled as float32 operations, with conversions.",
    "intrinsics-simd-cuda simd_intrinsics": "The measured code has 730 integer operations per thread; LLVM's code of "
    "the same SIMD intrinsics has 578 instructions in all.",
    "libor-cuda Pathcalc_Portfolio_KernelGPU2": "1.6 GB of DRAM traffic are of arrays in local memory, whose "
    "transfers beyond L1 the model leaves in L2.",
    "myocyte-cuda kernel": "Probably the fetch of long code that runs once; 676 of 5,561 float64 operations are "
    "modeled.",
    "pso-cuda kernelUpdatePBest": "Probably branches in powf() and sinf(): without them, as modeled, independent "
    "calls overlap.",
    "threadfence-cuda sum": "A round of a float sum at one word of shared memory takes about 160 cycles, and 72 in "
    "the model.",
    "tqs-cuda TaskQueue_gpu": "LLVM replaces a loop of 1,000 equal additions by one sum; nvcc's code executes it.",
}
