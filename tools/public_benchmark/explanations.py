"""The mechanisms of the misses: why the timing model is wrong, by program and kernel."""

from __future__ import annotations

from collections.abc import Mapping

_INDEXED_ARGUMENTS = (
    "Clang's code copies the structure of arguments, whose arrays are indexed, to each thread's local memory: 32 MB. "
    "nvcc's code loads from the arguments, as modeled."
)
_DIVISIONS = (
    "Each division holds its warp back until its branch is decided, with all loads after it; probably the assembler "
    "loads before. Without that, 14.4 us are modeled for ratt4_kernel."
)

EXPLANATIONS: Mapping[str, str] = {
    "adam-cuda adam": "powf() and divisions hold a warp back until their branches are decided: a step takes 896 cycles "
    "in the model, and 587 measured.",
    "adamw-cuda fused_4bit_kernel": "Not explained: another launch with the same number of bytes took 6.9 ms, which is "
    "modeled at 0.79. The tables of its binary search are in global memory.",
    "amgmk-cuda relax": "DRAM transfers 1.8 times the modeled bytes: L2 evicts values that other rows need again.",
    "aop-cuda prepare_svd_kernel": "The assembler loads 32 words of shared memory before the first store to another "
    "array; modeled is each load after the store before it.",
    "assert-cuda perfKernel": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "assert-cuda perfKernel2": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "bitpermute-cuda bit_rev_permutation_z": "The loads of a loop with branches are modeled one after the other; the "
    "assembler predicates the branches and issues the loads together.",
    "bwt-cuda reconstruct_sequence": "The sort that fills its table is too long to run: modeled are places in order, "
    "measured random ones, with 5.2 times the DRAM bytes.",
    "cmembench-cuda benchmark_constant": "The assembler moves the loop into the branch of the only thread that stores "
    "its sum, and starts of blocks remain.",
    "columnarSolver-cuda setupKernel": "A chain of dependent products; nvcc's code has 2.2 times the operations of "
    "LLVM's code, which combines several steps of the random generator.",
    "entropy-cuda entropy": "The measured code has 27 more operations for each __log2f() than modeled: those of "
    "log2f().",
    "entropy-cuda entropy_opt": "The measured code has 28 more operations for each __log2f() than modeled: those of "
    "log2f().",
    "ert-cuda block_stride": "Arithmetic of half2 is modeled as float32 operations, with conversions.",
    "flame-cuda kernel_generate_points": _INDEXED_ARGUMENTS,
    "flame-cuda kernel_initialize": _INDEXED_ARGUMENTS,
    "flame-cuda kernel_iterate": _INDEXED_ARGUMENTS,
    "fpdc-cuda CompressionKernel": "Probably the six fences of a block in each iteration, which wait for earlier "
    "stores to global memory; the model gives each 10 cycles.",
    "intrinsics-simd-cuda simd_intrinsics": "The measured code has 730 integer operations per thread; LLVM's code of "
    "the same SIMD intrinsics has 578 instructions in all.",
    "is-cuda create_seq_gpu_kernel": "Clang's code computes such powers as pow(0.5, 23.0) in each step; in nvcc's code "
    "they are numbers, as modeled.",
    "knn-cuda cuInsertionSort": "A distance decides whether an element is inserted, but the launch before, which "
    "computes the distances, is too long to run.",
    "linearprobing-cuda k_hashtable_insert": "DRAM reads and writes single sectors at random at 156 GB/s, and in the "
    "model at 308 GB/s.",
    "matrix-rotate-cuda rotate_matrix_parallel": "Warps store to 32 lines at once. A multiprocessor takes four cycles "
    "for each, as measured on an H200; if it took none, 9.0 ms would be modeled.",
    "minkowski-cuda minkowski": "An iteration with powf() takes 120 issue cycles and is modeled with 69 instructions; "
    "nvcc's code has 84 on the usual path, with four branches.",
    "myocyte-cuda kernel": "Probably the fetch of long code that runs once; 676 of 5,561 float64 operations are "
    "modeled.",
    "particle-diffusion-cuda Simulation": "Counters are read and written sector by sector, at 334 GB/s in all; the "
    "sectors of all iterations together are pairs, which the model transfers at 684 GB/s.",
    "pso-cuda kernelUpdatePBest": "Probably branches in powf() and sinf(): without them, as modeled, independent "
    "calls overlap.",
    "s3d-cuda gr_base": "The kernel loads again what it stored before, which L2 still holds; the model loads it from "
    "DRAM.",
    "s3d-cuda ratt4_kernel": _DIVISIONS,
    "s3d-cuda ratt5_kernel": _DIVISIONS,
    "s3d-cuda ratt6_kernel": _DIVISIONS,
    "simpleSpmv-cuda mv_csr": "Lanes read rows of their own, 32 lines per request: probably a line takes two cycles "
    "of the first cache on this GPU, and in the model one.",
    "simpleSpmv-cuda mv_dense": "Lanes read rows of their own, 32 lines per request: probably a line takes two "
    "cycles of the first cache on this GPU, and in the model one.",
    "threadfence-cuda sum": "A round of a float sum at one word of shared memory takes about 160 cycles, and 72 in "
    "the model.",
    "tqs-cuda TaskQueue_gpu": "LLVM replaces a loop of 1,000 equal additions by one sum; nvcc's code executes it.",
    "wyllie-cuda wyllie": "Pointer jumping: all blocks are modeled in step; on a GPU, later ones find lists that "
    "others have shortened.",
}
