"""The mechanisms of the misses: why the timing model is wrong, by program and kernel."""

from __future__ import annotations

from collections.abc import Mapping

_ATOMIC_RATES = (
    "This GPU's rates of atomic sums in L2 are not known. The H200's, by multiprocessors and clock, are probably too "
    "fast."
)
_DIVISIONS = (
    "Each division holds its warp back until its branch is decided, with all loads after it; probably the assembler "
    "loads before. Without that, 14.4 us are modeled for ratt4_kernel."
)
_INDEXED_ARGUMENTS = (
    "Clang's code copies the structure of arguments, whose arrays are indexed, to each thread's local memory: 32 MB. "
    "nvcc's code loads from the arguments, as modeled."
)
_ROWS = (
    "Each lane reads a row of its own, 32 lines per request: the model gives a cycle to each line, which is too much "
    "here."
)
_SLOW_DIVISIONS = (
    "Float64 divisions of zero, in most of this field, take the slow path, with 18 more operations each, which the "
    "model does not count."
)
_UNROLLED = (
    "LLVM unrolls all three loops in the model: 392 loads and stores per thread, where nvcc's code has about 3,000 "
    "loads."
)

_EVERYWHERE: Mapping[str, str] = {
    "aobench-cuda render_kernel": "Float operations are equal. Probably blocks whose rays hit an object, 64 more "
    "rays per pixel, last longer than the mean of blocks that is modeled.",
    "assert-cuda perfKernel": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "assert-cuda perfKernel2": "LLVM proves the assertions in the loop and deletes it; nvcc's code executes it.",
    "bitpermute-cuda bit_rev_permutation_z": "The loads of a loop with branches are modeled one after the other; "
    "the assembler predicates the branches and issues the loads together.",
    "columnarSolver-cuda setupKernel": "A chain of dependent products; nvcc's code has 2.2 times the operations "
    "of LLVM's code, which combines several steps of the random generator.",
    "ddbp-cuda rot_detector_kernel": "The measured code of float64 sin() and cos() has 95 operations per thread, "
    "modeled are 55.",
    "hexciton-cuda comm_aosoa_constants": _UNROLLED,
    "hexciton-cuda comm_aosoa_constants_direct": _UNROLLED,
    "hexciton-cuda comm_aosoa_naive_constants_direct": _UNROLLED,
    "hexciton-cuda comm_init": _ROWS,
    "hexciton-cuda comm_refactor": _ROWS,
    "hexciton-cuda comm_refactor_direct_store": _ROWS,
    "knn-cuda cuInsertionSort": "A distance decides whether an element is inserted, but the launch before, which "
    "computes the distances, is too long to run.",
    "mis-cuda findmins": "The model's blocks do not see the nodes that other blocks decide: they pass 11 times "
    "over their nodes; with all blocks 3 on average and 5 at most.",
    "myocyte-cuda kernel": "Probably the fetch of long code that runs once; 676 of 5,561 float64 operations are "
    "modeled.",
    "ntt-cuda intt_3_64k_modcrt": "Probably the fetch of code that runs once: nvcc's has 13,767 instructions, "
    "220 KB, in a straight line.",
    "pso-cuda kernelUpdatePBest": "Probably branches in powf() and sinf(): without them, as modeled, independent "
    "calls overlap.",
    "s3d-cuda gr_base": "The kernel loads again what it stored before, which L2 still holds; the model loads it "
    "from DRAM.",
    "sc-cuda StreamCompaction": "Probably the chain of 3,648 tasks, each of which waits for the sum of the task "
    "before. Blocks are modeled without waiting for each other.",
    "simpleSpmv-cuda mv_csr": "Lanes read rows of their own, 32 lines per request: probably a line takes two "
    "cycles of the first cache on this GPU, and in the model one.",
    "simpleSpmv-cuda mv_dense": "Lanes read rows of their own, 32 lines per request: probably a line takes two "
    "cycles of the first cache on this GPU, and in the model one.",
    "spm-cuda spm": "The model loads only 448 sectors of the two volumes of 17 MB and takes all voxels as "
    "inside: 99 float operations per voxel, measured 77. DRAM reads at least 22 MB measured.",
    "tqs-cuda TaskQueue_gpu": "LLVM replaces a loop of 1,000 equal additions by one sum; nvcc's code executes it.",
    "wmma-cuda gemm": "The model loads a fragment in 8 requests of 16-bit words, 16 per step; nvcc's code has 8 "
    "of 32-bit words.",
    "wyllie-cuda wyllie": "Pointer jumping: all blocks are modeled in step; on a GPU, later ones find lists that "
    "others have shortened.",
    "zeropoint-cuda zero_point": "The measured code has 1.41 times the float64 operations, 73 per thread; "
    "modeled are 51.",
}

_ON_AN_RTX_3080: Mapping[str, str] = {
    "ace-cuda allenCahn": _SLOW_DIVISIONS,
    "ace-cuda boundaryConditionsU": "Differs from boundaryConditionsPhi, 245 us, by the float64 negation of "
    "delta alone: 511 us more. Probably each warp issues it with idle lanes; the model counts no float64 "
    "operation.",
    "ace-cuda calculateForce": _SLOW_DIVISIONS,
    "ace-cuda thermalEquation": _SLOW_DIVISIONS,
    "adam-cuda adam": "powf() and divisions hold a warp back until their branches are decided: a step takes 896 "
    "cycles in the model, and 587 measured.",
    "adamw-cuda fused_4bit_kernel": "Not explained: another launch with the same number of bytes took 6.9 ms, "
    "which is modeled at 0.79. The tables of its binary search are in global memory.",
    "adv-cuda advCubatureHex3D": "nvcc's code, and probably clang's, keeps six arrays of 16 floats in local "
    "memory: 13.1 GB more DRAM traffic. The model's LLVM code unrolls the loops and keeps them in registers.",
    "asmooth-cuda normalizeFilter": "smoothingFilter is too long to run, so Norm is zero: the model reads it and "
    "skips the division. Measured are 805 MB, with the image read and written; modeled 268.",
    "asmooth-cuda outFilter": "smoothingFilter is too long to run, so Box is zero and each pixel reads one "
    "value: 2 float operations per pixel. Measured are 26, the sums of boxes of 25.",
    "atomicCAS-cuda atomicAddDerived": "A thread repeats its exchange until no other thread has changed the word. "
    "By its instructions, a measured thread does so thousands of times, against all threads of the GPU; sampled "
    "blocks repeat only against each other, and the model has 880 exchanges per thread.",
    "atomicCAS-cuda atomicMaxDerived": "A thread repeats its exchange until the word is larger. Probably blocks that "
    "start later find the word raised less often than in the model: it has 0.8 exchanges per thread, and threads "
    "of an H200 have 2.2 to 3.2.",
    "atomicCost-cuda wiAtomicOnGlobalMem": _ATOMIC_RATES,
    "atomicPerf-cuda BlockRangeAtomicOnGlobalMem": _ATOMIC_RATES,
    "atomicPerf-cuda WarpRangeAtomicOnGlobalMem": _ATOMIC_RATES,
    "attention-cuda kernel1": "Lanes read rows of their own, 32 lines per request: a line takes 2.7 cycles of "
    "the first cache, in the model one. The rows of 32 warps fill it; DRAM transfers 787 MB, modeled 539.",
    "cmembench-cuda benchmark_constant": "The assembler moves the loop into the branch of the only thread that "
    "stores its sum, and starts of blocks remain.",
    "concurrentKernels-cuda clock_block": "One thread: an iteration of the loop with i % 3 takes 41 cycles "
    "measured and 27 modeled, with 17 instructions, for a reason that is not known.",
    "contract-cuda contraction": "A load takes 3.5 cycles of a multiprocessor, modeled 2: probably its 12 words "
    "lie in 1.3 lines, each two cycles. DRAM transfers 31 GB, modeled 0.8, which does not limit it.",
    "dxtc1-cuda compress": "A warp takes 2,889 cycles of a multiprocessor, modeled 1,904, with 288 loads of a "
    "color: probably loads of 64 or 128 bits take more than the two cycles that they have in the model.",
    "entropy-cuda entropy": "The measured code has 27 more operations for each __log2f() than modeled: those of "
    "log2f().",
    "ert-cuda block_stride": "Arithmetic of half2 is modeled as float32 operations, with conversions.",
    "flame-cuda kernel_generate_points": _INDEXED_ARGUMENTS,
    "flame-cuda kernel_initialize": _INDEXED_ARGUMENTS,
    "flame-cuda kernel_iterate": _INDEXED_ARGUMENTS,
    "fpdc-cuda CompressionKernel": "Probably the six fences of a block in each iteration, which wait for earlier "
    "stores to global memory; the model gives each 10 cycles.",
    "fsm-cuda FSMKernel": "Each thread has 32 KB of local memory, read and written at random by 262,144 threads: "
    "all accesses reach DRAM, 292 GB. The model lets caches hold 42% of them, 171 GB.",
    "hausdorff-cuda computeDistance": "A load of one float2 for all lanes takes 4.3 cycles of a multiprocessor, "
    "in the model two: probably 64-bit loads issue at half the rate of 32-bit ones. Float operations are "
    "equal.",
    "hellinger-cuda hellinger": "Clang's code has 2 float32 operations per sum, modeled are 8: sqrtf() is "
    "rounded with further steps and a branch in the model, and is one approximate instruction in the measured "
    "code.",
    "henry-cuda insertions": "Clang's code computes pow(x, 6) by products: 49 float64 operations per atom. "
    "Modeled is a call of pow(), with 173.",
    "hexciton-cuda comm_manual_aosoa_constants_perm": "LLVM unrolls the loops in the model and keeps sums in "
    "registers. The measured code has loops (nvcc: 28 loads, 8 stores for 128 multiply-adds), probably with a "
    "store and a load of each sum per step.",
    "histogram-cuda histogram_gmem_atomics": _ATOMIC_RATES,
    "hybridsort-cuda bucketprefix": "Probably the assembler issues several loads before the stores of the "
    "running sum: a step takes 166 cycles measured, less than a DRAM latency of 470, and 249 modeled.",
    "hybridsort-cuda bucketsort": "Each element is stored alone at a random place: DRAM transfers 2.0 GB at 211 "
    "GB/s, and in the model 1.3 GB at 331 GB/s.",
    "interleave-cuda add_kernel_non_interleaved": "A step of the loop, 16 loads and 16 stores one after the "
    "other because the arrays may overlap, takes 1,294 cycles in the model and 751 measured.",
    "intrinsics-simd-cuda simd_intrinsics": "The measured code has 730 integer operations per thread; LLVM's "
    "code of the same SIMD intrinsics has 578 instructions in all.",
    "lci-cuda RHS_f": "Lanes load constants at different places, eight times per iteration: 5 cycles each in "
    "the model, probably 200 on the GPU, which reads one place after the other.",
    "match-cuda Match2": "A product takes 17.3 cycles of shared memory in the model and 9.5 measured. Probably "
    "loads of 128 bits, as in nvcc's code: 8 lanes at a time, so 8 rows in one bank and not 16.",
    "matrix-rotate-cuda rotate_matrix_parallel": "Warps store to 32 lines at once. A multiprocessor takes four "
    "cycles for each, as measured on an H200; if it took none, 9.0 ms would be modeled.",
    "minkowski-cuda minkowski": "An iteration with powf() takes 120 issue cycles and is modeled with 69 "
    "instructions; nvcc's code has 84 on the usual path, with four branches.",
    "nbody-cuda accumulate_energy": "The measured code loads eight values per iteration and waits for DRAM once, "
    "506 cycles. The model unrolls LLVM's loop of eight loads four times more, and 32 loads overlap.",
    "particlefilter-cuda kernel_find_index": "A data race: a thread sums all weights while other blocks "
    "normalize them. Which sums it reads decides whether searches end after a few hundred or 200,000 elements.",
    "particlefilter-cuda kernel_normalize_weights": "One thread sums 400,000 weights: the measured code waits "
    "once for eight of them, 567 cycles. The model unrolls LLVM's loop of eight loads four times more, and 32 "
    "loads overlap.",
    "perplexity-cuda sigmas_kernel": "An element's two steps take 2,170 cycles in the model, 850 measured. "
    "Probably the assembler loads several elements before it stores; modeled is each load after the store "
    "before it.",
    "quicksort-cuda gqsort_kernel": "DRAM transfers twice the modeled bytes, 157 and 76 MB, at the same rate in "
    "bytes. Probably L2 evicts sectors before threads have filled them, word by word.",
    "radixsort-cuda reorderDataKeysOnlyK": "Neighboring blocks complete each other's sectors in L2. The model "
    "stores 1.42 times the sectors to DRAM, and counts each as 1.6.",
    "randomAccess-cuda update": "One block updates random words: its multiprocessor takes 1.41 ns (2.0 cycles) "
    "for each atomic operation. The model has 0.24 ns, by the rate of single sectors in DRAM for the whole GPU.",
    "recursiveGaussian-cuda Transpose": "Rows of 4,320 bytes: each second row's 64 bytes of a block end in half "
    "a pair, which the next block completes in L2. The model reads and writes half of all sectors in excess, "
    "and scattered.",
    "s3d-cuda ratt2_kernel": _DIVISIONS,
    "s3d-cuda ratt3_kernel": _DIVISIONS,
    "s3d-cuda ratt4_kernel": _DIVISIONS,
    "s3d-cuda ratt5_kernel": _DIVISIONS,
    "s3d-cuda ratt6_kernel": _DIVISIONS,
    "s3d-cuda ratt7_kernel": _DIVISIONS,
    "s3d-cuda ratt8_kernel": _DIVISIONS,
    "s3d-cuda ratt9_kernel": _DIVISIONS,
    "segsort-cuda kern_copy": "DRAM transfers 138 MB, modeled 55. Half of the blocks copy nothing: the model "
    "extrapolates the distinct sectors from one block and its neighbor, though its L2 traffic, 137 MB, is "
    "right.",
    "sph-cuda updatePressures": "Float64 alone takes 9.1 ms, as measured. The model adds 6.2 ms: divisions, "
    "roots and pow() hold warps back, and each scheduler has a fixed quarter of the unit, which warps of all "
    "share.",
    "threadfence-cuda sum": "A round of a float sum at one word of shared memory takes about 160 cycles, and 72 "
    "in the model.",
}

EXPLANATIONS: Mapping[str, Mapping[str, str]] = {
    "rtx-3080": {**_EVERYWHERE, **_ON_AN_RTX_3080},
    "h100": _EVERYWHERE,
    "h200": _EVERYWHERE,
}
"""By the key of the GPU, then by the program's and the kernel's names."""
