"""Without NVIDIA's compiler: what LLVM makes of the IR computes the same, and is as fast, as near as can be told."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpu.base.devices.probe import find_nvcc
from gpu.base.errors import CompileError
from gpu.patterns import find_pattern
from gpu.run.modeling.timing_model import model_pattern
from gpu.simulator.ir.forms import Missing
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing import compiler
from gpu.timing.estimate.compiler import CapabilityError, estimate_registers, generate_ptx
from gpu.timing.gpus import find_gpu
from gpu.timing.kernels import compile_modeled_file
from gpu.timing.ptx.assembler import assemble_kernel
from gpu.timing.ptx.library_functions import find_library_name
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape
from tests.gpu.timing.modeled_kernels import model_kernel

TEXT = """
__constant__ float SCALE[2] = {2.0f, 3.0f};
__device__ int twice(int x) { return x > 10 ? 2 * x : x; }
extern "C" __global__ void mixed(const float4 *from, float *to, int n) {
    __shared__ float own[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float4 v = i < n ? from[i] : make_float4(0, 0, 0, 0);
    own[t] = v.x * SCALE[0] + v.y + v.z + v.w * SCALE[1];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += own[(t + k) % 64];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    unsigned odd = __ballot_sync(0xffffffff, t & 1);
    switch (t & 3) {
    case 0: sum += 1; break;
    case 1: sum += 2;
    default: sum += 4;
    }
    int found = twice(t);
    while (found > 100) --found;
    to[i] = sum + __popc(odd) + found;
    if (t == 0) atomicAdd(&to[n], 1.0f);
}
"""


REMAINDERS = """extern "C" __global__ void tree(int *data, int n) {
    int t = threadIdx.x, sum = 0;
    for (int stride = 1; stride < BOUND; stride *= 2) {
        if (t % (2 * stride) == 0) sum += data[t + stride];
        __syncthreads();
    }
    data[t] = sum;
}"""


@pytest.fixture
def without_nvcc(monkeypatch) -> None:
    monkeypatch.setattr(compiler, "find_nvcc", lambda: "")


def test_what_llvm_makes_computes_what_the_simulator_does(tmp_path, capfd) -> None:
    module = SimulatedModule(TEXT, tmp_path / "k.cu", {})
    simulated = module.kernel("mixed")
    values = np.random.default_rng(1).random(4 * 128).astype(np.float32)
    wanted, found = np.zeros(129, np.float32), np.zeros(129, np.float32)
    simulated.launch((2, 1, 1), (64, 1, 1), [values.view(np.uint8), wanted.view(np.uint8), np.int32(128)])

    program = parse_ptx(generate_ptx(simulated.function, simulated.variables, "9.0"))
    kernel = program.find_kernel("mixed")
    memory = SampledMemory(
        {0: values.view(np.uint8), 1: found.view(np.uint8), 2: np.array([2, 3], np.float32).view(np.uint8)}
    )
    parameters = np.zeros(24, np.uint8)
    parameters[:16] = np.array([memory.address(0), memory.address(1)], np.int64).view(np.uint8)
    parameters[16:20] = np.array([128], np.int32).view(np.uint8)
    machine = PtxMachine(kernel, {each.name: memory.address(2) for each in program.variables if each.space == "const"})
    machine.run(GridShape((2, 1, 1), (64, 1, 1)), parameters, range(2), memory)
    assert np.allclose(found, wanted, rtol=1e-5)
    assert 8 < estimate_registers(kernel) < 64
    assert capfd.readouterr().err == ""  # LLVM complains by itself


@pytest.mark.parametrize(("name", "variant"), [("reduction", "shuffle"), ("matmul", "tiled"), ("softmax", "online")])
def test_an_estimate_is_near_what_the_compiler_leads_to(name, variant, without_nvcc, monkeypatch) -> None:
    pattern = find_pattern(name)
    params = pattern.check({"n": 256})
    inputs = pattern.prepare_inputs({}, params, 1)
    estimated = model_pattern(pattern.variant(variant), inputs, params, "h200")
    assert estimated.data()["source"] == "ir"
    if not find_nvcc():
        return
    monkeypatch.setattr(compiler, "find_nvcc", find_nvcc)
    compiled = model_pattern(pattern.variant(variant), inputs, params, "h200")
    assert compiled.data()["source"] == "sass"
    assert estimated.time_us == pytest.approx(compiled.time_us, rel=0.3)
    assert estimated.data()["instructions"] == pytest.approx(compiled.data()["instructions"], rel=0.4)


@pytest.mark.parametrize(
    ("sizes", "sectors"),
    [
        # 64 tiles, each with 8 steps of 64 x 64 elements of A and of B; and the result.
        ({"n": 512}, 64 * 8 * 2 * 64 * 64 // 16 + 512 * 512 // 16),
        # 2 tiles, each with 64 steps: A, and lines of 64 of B's columns, of which 64 and 32 exist.
        ({"n": 64, "m": 64, "k": 4096}, 64 * (2 * 64 * 64 + 64 * (64 + 32)) // 16 + 64 * 64 // 16),
    ],
)
def test_bulk_tensor_copies_are_estimated_as_the_compiled_ones(sizes, sectors, without_nvcc, monkeypatch) -> None:
    pattern = find_pattern("matmul")
    params = pattern.check({**sizes, "dtype": "float16"})
    inputs = pattern.prepare_inputs({}, params, 1)
    estimated = model_pattern(pattern.variant("warpgroups"), inputs, params, "h200")
    # Some sectors cross from one half of L2 to the other; code is read too.
    assert estimated.data()["l2_sectors"] == pytest.approx(sectors, rel=0.1)
    if not find_nvcc():
        return
    monkeypatch.setattr(compiler, "find_nvcc", find_nvcc)
    compiled = model_pattern(pattern.variant("warpgroups"), inputs, params, "h200")
    assert compiled.data()["source"] == "sass"
    assert estimated.time_us == pytest.approx(compiled.time_us, rel=0.3)
    assert estimated.data()["l2_sectors"] == pytest.approx(compiled.data()["l2_sectors"], rel=0.06)
    # A warp's part of a product of tiles is a single instruction.
    assert estimated.data()["instructions"] < 5 * compiled.data()["instructions"]


def test_what_cannot_be_estimated_is_said(tmp_path, without_nvcc) -> None:
    path = tmp_path / "k.cu"
    text = """__device__ int product(int n) { return n < 2 ? 1 : n * product(n - 1); }
        __global__ void k(float *x) { x[0] = product(x[0]); }"""
    with pytest.raises(CompileError, match="k cannot be estimated without nvcc"):
        model_kernel(path, text, "k", 1, 32, ["zeros:4"], "h200")


def test_calls_through_pointers_cost_what_the_called_functions_do(tmp_path, without_nvcc) -> None:
    functions = """__device__ float more(float x) { for (int i = 0; i < 50; ++i) x = sqrtf(x + i); return x; }
        __device__ float same(float x) { return x; }
        __device__ void store(float *x) { *x = more(*x); }
        __device__ void (*stores[2])(float *) = {store, store};"""
    bodies = {
        "direct": "x[i] = n > 4 ? same(x[i]) : more(x[i]);",
        "pointer": "float (*f)(float) = n > 4 ? same : more; x[i] = f(x[i]);",
        "table": "stores[n & 1](x + i);",
    }
    times = {}
    for name, body in bodies.items():
        text = f"{functions}\n__global__ void k(float *x, int n) {{ int i = threadIdx.x; {body} }}"
        times[name] = model_kernel(tmp_path / "k.cu", text, "k", 1, 32, ["random:32", "3"], "h200").launches[0].time_us
    assert times["pointer"] == pytest.approx(times["direct"], rel=0.1)
    assert times["table"] == pytest.approx(times["direct"], rel=0.1)


def test_what_only_a_predicate_reads_takes_a_register_only_from_its_write() -> None:
    """Loaded and stored under one predicate in each round, it is not kept from one round to the next."""
    loads = "".join(
        f"@%p1 ld.global.u32 %r{n}, [%rd1+{4 * n}];\n@%p1 st.shared.u32 [%r1], %r{n};\n" for n in range(2, 32)
    )
    text = f""".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0)\n{{
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
    $L1:
        setp.lt.u32 %p1, %r1, 8;
        {loads}
        add.s32 %r1, %r1, 1;
        setp.lt.u32 %p2, %r1, 100;
        @%p2 bra $L1;
        ret;
    }}\n"""
    assert estimate_registers(parse_ptx(text).find_kernel("k")) < 16
    assert estimate_registers(parse_ptx(text.replace("@%p1 st", "st")).find_kernel("k")) > 32


NARROW = """
extern "C" __global__ void copy(const float *from, float *to, int width) {
    int i = (blockIdx.y * blockDim.y + threadIdx.y) * width + blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i] * 2.0f;
}
"""


@pytest.mark.parametrize("block", [(1, 64), (2, 64), (4, 32), (8, 8), (32, 4)])
def test_blocks_narrower_than_a_sector_share_it(tmp_path, without_nvcc, block) -> None:
    width, height = 4096, 2048
    path = tmp_path / "narrow.cu"
    grid = (width // block[0], height // block[1])
    arguments = [f"zeros:{width * height}", f"zeros:{width * height}", width]
    found = model_kernel(path, NARROW, "copy", grid, block, arguments, "rtx-3080").data()
    assert found["dram_bytes"] == pytest.approx(2 * 4 * width * height, rel=0.1)


def test_operations_of_a_launch_are_those_of_all_its_threads(tmp_path, without_nvcc) -> None:
    threads = 1000 * 256
    arguments = [f"zeros:{threads}", f"zeros:{threads}", 256]
    run = model_kernel(tmp_path / "narrow.cu", NARROW, "copy", (1, 1000), (256, 1), arguments, "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert (estimate.float32_operations, estimate.float64_operations) == (threads, 0)


def test_stores_that_stay_in_the_last_cache_are_those_of_the_gpu(tmp_path, without_nvcc) -> None:
    """An RTX 3080 writes more of what fits its L2 to DRAM than an H200, as profilers count."""
    bytes_ = 1 << 24
    text = 'extern "C" __global__ void fill(float *to) { to[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }'

    def written(gpu: str) -> float:
        run = model_kernel(tmp_path / "fill.cu", text, "fill", bytes_ // 1024, 256, [f"zeros:{bytes_ // 4}"], gpu)
        return run.data()["dram_bytes"]

    assert written("h200") < 0.01 * bytes_
    assert written("rtx-3080") == pytest.approx(bytes_ - 0.17 * (5 << 20), rel=0.01)


def test_conversions_to_float64_are_as_slow_as_its_sums_where_lanes_are_few(tmp_path, without_nvcc) -> None:
    """CUDA C++ Programming Guide, throughput per multiprocessor and cycle: 2 on capability 8.6, 16 on 9.0."""
    text = """
extern "C" __global__ void convert(int *to, double a) {
    long long sum = 0;
    for (int i = 0; i < 256; ++i) sum += (long long)(double)(sum + i);
    to[blockIdx.x * blockDim.x + threadIdx.x] = (int)sum;
}
"""
    threads, conversions = 1 << 18, 2 * 256
    for gpu, rate in (("rtx-3080", 2), ("h200", 16)):
        run = model_kernel(tmp_path / "c.cu", text, "convert", threads // 256, 256, [f"zeros:{threads}", 0.0], gpu)
        least = threads * conversions / rate / run.gpu.multiprocessors / run.gpu.clock_ghz / 1e3
        assert least < run.time_us < 1.6 * least


UNROLLED = """extern "C" __global__ void sum(const float *from, float *to, int n) {{
    float sum = 0;
{pragma}
    for (int i = 0; i < n; ++i) sum = sum * sum + from[i];
    to[threadIdx.x] = sum;
}}"""


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [("#pragma unroll 1", 1), ("#pragma nounroll", 1), ("#pragma unroll 5", 5), ('_Pragma("unroll (6)")', 6)],
)
def test_an_unroll_pragma_gives_the_number_of_copies_of_a_loop(tmp_path, pragma, expected) -> None:
    module = SimulatedModule(UNROLLED.format(pragma=pragma), tmp_path / "k.cu", {})
    kernel = module.kernel("sum")
    program = parse_ptx(generate_ptx(kernel.function, kernel.variables, "9.0"))
    copies = [sum(each.opcode == "fma" for each in block.instructions) for block in program.find_kernel("sum").blocks]
    assert max(copies) == expected


def test_members_of_an_aligned_structure_are_loaded_together(tmp_path) -> None:
    text = """extern "C" __global__ void sum(float *to, int n) {
        __shared__ float4 tile[64];
        tile[threadIdx.x] = make_float4(1, 2, 3, n);
        __syncthreads();
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += tile[i].x * tile[i].y + tile[i].z * tile[i].w;
        to[threadIdx.x] = sum;
    }"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("sum")
    ptx = generate_ptx(kernel.function, kernel.variables, "9.0")
    assert "ld.shared.v4" in ptx
    assert "ld.shared.b32" not in ptx


LIBRARY = """extern "C" __global__ void k(const TYPE *from, TYPE *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    TYPE x = from[i];
    if (acos(x) > (TYPE)1.5) x = FUNCTION(x);
    to[i] = x;
}"""


@pytest.mark.parametrize(
    ("type", "function", "operations", "acos_operations"),
    [("float", "tanh", 15, 25), ("float", "erff", 16, 25), ("double", "exp", 29, 35), ("double", "expm1", 34, 35)],
)
def test_library_functions_are_estimated_and_branches_know_their_results(
    tmp_path, without_nvcc, type, function, operations, acos_operations
) -> None:
    """acos(0) is above 1.5 and acos(0.5) is not; the counts are those of nvcc's code."""
    text = LIBRARY.replace("TYPE", type).replace("FUNCTION", function)
    size = 4 if type == "float" else 8
    for value, expected in ((0.0, acos_operations + operations), (0.5, acos_operations)):
        array = np.full(64, value, f"f{size}")
        module = SimulatedModule(text, tmp_path / "k.cu", {})
        file = compile_modeled_file(text, find_gpu("rtx-3080"), (), module)
        estimate = file.estimate_launch(
            "k", GridShape((2, 1, 1), (32, 1, 1)), [array.view(np.uint8), np.zeros(64 * size, np.uint8)]
        )
        counts = estimate.float32_operations, estimate.float64_operations
        assert counts == ((64 * expected, 0) if type == "float" else (0, 64 * expected))


def test_every_function_of_nvidia_library_can_be_estimated() -> None:
    """No row may refuse an estimate: its form for GPUs, or its counts, must be known."""
    for name, row in INTRINSICS.items():
        is_missing = isinstance(row.nvptx, Missing)
        assert not is_missing or find_library_name(name), name
    assert not find_library_name("__expf")
    assert find_library_name("erff") == find_library_name("erf") == "erf"


@pytest.mark.parametrize(("qualifier", "loads"), [("", 2), ("__restrict__", 1)])
def test_stores_through_restricted_pointers_do_not_repeat_loads(tmp_path, qualifier, loads) -> None:
    text = f"""extern "C" __global__ void twice(const float *{qualifier} from, float *{qualifier} to, int n) {{
        to[threadIdx.x] = from[0] * n;
        to[threadIdx.x + n] = from[0] + n;
    }}"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("twice")
    assert generate_ptx(kernel.function, kernel.variables, "9.0").count("ld.global") == loads


def test_an_array_in_a_structure_by_value_is_indexed_among_the_arguments(tmp_path) -> None:
    """As nvcc's PTX, which loads from the parameter's space; also if a function gets the structure by value again."""
    text = """struct Table { int count; float values[100]; };
    __device__ float pick(Table table, int place) { return table.values[place % table.count]; }
    extern "C" __global__ void gather(float *to, Table table) {
        to[threadIdx.x] = pick(table, threadIdx.x) + table.values[threadIdx.x];
    }"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("gather")
    ptx = generate_ptx(kernel.function, kernel.variables, "8.6")
    assert ".local" not in ptx
    assert "ld.param.b32" in ptx


@pytest.mark.parametrize(
    ("type", "step", "body", "loads"),
    [
        ("int", "stride", "sum += from[i];", 5),
        ("long long", "stride", "sum += from[i];", 5),
        ("int", "stride", "if (from[i] > 0.0f) sum += from[i + 1];", 10),
        ("int", "stride", " ".join(f"sum += from[i + {k}];" for k in range(16)), 48),
        ("int", "stride", " ".join(f"sum += from[i + {k}];" for k in range(24)), 24),
        ("int", "gridDim.x * blockDim.x", "sum += from[i];", 1),
        ("unsigned", "stride", "sum += from[i];", 1),
        ("int", "stride", "atomicAdd(to, from[i]);", 1),
        ("int", "stride", "sum += from[i]; __syncthreads();", 1),
    ],
)
def test_loops_with_variable_steps_are_unrolled_as_by_nvcc(tmp_path, type, step, body, loads) -> None:
    """nvcc 13's PTX has these numbers of loads: four or two iterations together, and the rest one by one."""
    text = f"""extern "C" __global__ void add(float *to, const float *from, int n) {{
        {type} stride = gridDim.x * blockDim.x;
        float sum = 0.0f;
        for ({type} i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += {step}) {{ {body} }}
        to[threadIdx.x] = sum;
    }}"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("add")
    assert generate_ptx(kernel.function, kernel.variables, "9.0").count("ld.global") == loads


@pytest.mark.parametrize(
    ("head", "body", "loads"),
    [
        ("for (int i = t; i < n; i++)", "sum += from[i];", 5),
        ("for (int i = t; i < n; i += 256)", "sum += from[i] * to[i];", 10),
        ("for (int i = n - 1; i >= 0; i--)", "if (from[i] > 0.0f) sum += to[i];", 10),
        ("for (unsigned i = 0; i < n; i++)", "to[i] += 2 * from[i];", 10),
        ("for (size_t i = t; i < n; i++)", "sum += expf(from[i]);", 5),
        ("for (int i = 0; i < n; i++)", "atomicAdd(&to[i & 7], from[i]);", 5),
        ("for (int i = 0; i < n; i++)", "if (from[i] == 5.0f) break; sum += from[i];", 1),
        ("for (int i = 0; i < n; i++)", "sum += from[i]; __syncthreads();", 1),
        ("int i = t; while (i < n)", "sum += from[i]; i += 256;", 5),
        ("for (int i = t; i < n; i += 256)", "sum = weigh(sum, from[i]);", 5),
    ],
)
def test_loops_with_constant_steps_are_unrolled_as_by_nvcc(tmp_path, head, body, loads) -> None:
    """nvcc 13's PTX has these numbers of loads, which differ from those of LLVM alone."""
    text = f"""__device__ float weigh(float sum, float x) {{ if (x > sum) return x * sum; return sum + x; }}
    extern "C" __global__ void add(float *__restrict__ to, const float *__restrict__ from, int n) {{
        float sum = 0.0f;
        int t = threadIdx.x;
        {head} {{ {body} }}
        to[t] = sum;
    }}"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("add")
    ptx = generate_ptx(kernel.function, kernel.variables, "9.0")
    assert ptx.count("ld.global") == loads
    assert ptx.count("nounroll") == (loads > 1), "the assembler unrolls all but the rest once more"


@pytest.mark.parametrize(("count", "loads"), [(4096, 8), (1000, 10), (100, 10)])
def test_loops_with_many_constant_iterations_are_unrolled_by_a_divisor(tmp_path, count, loads) -> None:
    """Like nvcc 13, which unrolls them by 32, 8 and 4."""
    text = f"""extern "C" __global__ void add(float *__restrict__ to, const float *__restrict__ from) {{
        float sum = 0.0f;
        for (int i = 0; i < {count}; i++) sum += from[4096 * i + threadIdx.x];
        to[threadIdx.x] = sum;
    }}"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("add")
    assert generate_ptx(kernel.function, kernel.variables, "9.0").count("ld.global") == loads


def test_code_of_clang_is_neither_unrolled_nor_computed_as_that_of_nvcc(tmp_path) -> None:
    text = REMAINDERS.replace("BOUND", "n").replace(
        "int t", "for (int i = 0; i < n; i += 3) data[-1] += data[i]; int t"
    )
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("tree")
    of_nvcc, of_clang = (
        generate_ptx(kernel.function, kernel.variables, "9.0", imitates_nvcc=imitates) for imitates in (True, False)
    )
    assert of_nvcc.count("ld.global") != of_clang.count("ld.global")
    assert (of_nvcc.count("rem.s32"), of_clang.count("rem.s32")) == (1, 0)


@pytest.mark.parametrize("values", [", ".join(str(i * i % 251) for i in range(256)), "0"])
def test_a_local_array_is_initialized_with_wide_stores_once(values, tmp_path) -> None:
    """As nvcc's PTX, which stores 8 bytes at a time, and all bytes once."""
    text = f"""extern "C" __global__ void pick(unsigned char *to, const unsigned char *from) {{
        unsigned char table[256] = {{{values}}};
        table[from[threadIdx.x]] += 1;
        to[threadIdx.x] = table[to[threadIdx.x]];
    }}"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("pick")
    ptx = generate_ptx(kernel.function, kernel.variables, "8.6")
    assert re.findall(r"st\.local\S*b8|bra", ptx) == ["st.local.b8"], "the store of the sum, and no loop"


def test_clang_reads_an_array_of_constants_where_nvcc_copies_it(tmp_path) -> None:
    text = f"""extern "C" __global__ void pick(unsigned char *to, const unsigned char *from) {{
        const unsigned char table[256] = {{{", ".join(str(i * i % 251) for i in range(256))}}};
        to[threadIdx.x] = table[from[threadIdx.x]];
    }}"""
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("pick")
    of_nvcc, of_clang = (
        generate_ptx(kernel.function, kernel.variables, "8.6", imitates_nvcc=imitates) for imitates in (True, False)
    )
    assert "st.local" in of_nvcc
    assert "local" not in of_clang
    assert re.search(r"\.const \.align 16 \.b8 \S+\[256\] = {0, 1, 4, 9, 16,", of_clang)


def test_a_function_of_a_constant_is_a_constant(tmp_path) -> None:
    """As nvcc's PTX, in which pi is a number."""
    text = (
        """extern "C" __global__ void turn(double *to, int n) { to[threadIdx.x] = acos(-1.0) * n + pow(0.5, 23.0); }"""
    )
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("turn")
    ptx = generate_ptx(kernel.function, kernel.variables, "8.6")
    assert "libfunc" not in ptx
    assert f"0d{np.float64(np.pi).view(np.uint64):016X}" in ptx


@pytest.mark.parametrize(("words", "loaded", "stored"), [(1, 8, 8), (32, 1, 1)])
def test_l2_loses_the_sectors_of_long_rows_between_their_words(words, loaded, stored, tmp_path, without_nvcc) -> None:
    """A sector has 8 words. All threads of an RTX 3080 together have more lines than L2, and its L1 caches have less.

    Rows of one word per thread, side by side, are loaded and stored once.
    """
    text = """extern "C" __global__ void add(const int *from, int *to, int length, int step, int pitch) {
        int i = (blockIdx.x * blockDim.x + threadIdx.x) * pitch;
    #pragma unroll 1
        for (int j = 0; j < length; ++j) to[i + j * step] = from[i + j * step] + j;
    }"""
    blocks, length = 408, 128
    threads = 256 * blocks
    step, pitch = (1, length) if words == 1 else (threads, 1)
    array = f"empty:{threads * length}"
    run = model_kernel(tmp_path / "a.cu", text, "add", blocks, 256, [array, array, length, step, pitch], "rtx-3080")
    assert run.data()["dram_bytes"] == pytest.approx(4 * threads * length * (loaded + stored), rel=0.1)


def test_lanes_that_join_a_part_of_a_loop_later_are_counted(tmp_path, without_nvcc) -> None:
    """A loop compares loaded values that increase, as distances of sorted neighbors: most come after the first ones."""
    text = """extern "C" __global__ void sum(const float *from, float *to, int n) {
        double sum = 0;
    #pragma unroll 1
        for (int i = 0; i < n; ++i) {
            float value = from[i];
            if (value >= 12) {
                sum += 1 / (sum + value);
                to[threadIdx.x] = (float)sum;
            }
        }
    }"""
    run = model_kernel(tmp_path / "k.cu", text, "sum", 1, 32, ["arange:256", "zeros:32", 256], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.float64_operations == pytest.approx(32 * (256 - 12) * (1 + 1 + 10), rel=0.1)


def test_operations_count_only_for_lanes_whose_predicate_holds(tmp_path, without_nvcc) -> None:
    """A short branch is predicated, and profilers count the lanes that execute it: here 5 of 32, in four blocks."""
    text = """extern "C" __global__ void add(float *to, float x) {
        float sum = to[threadIdx.x];
        if (threadIdx.x < 5) sum = sum * x + to[threadIdx.x + 32];
        to[threadIdx.x] = sum;
    }"""
    run = model_kernel(tmp_path / "k.cu", text, "add", 4, 32, ["zeros:64", 2.0], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.float32_operations == 4 * 5 * 2


def test_no_resource_alone_takes_longer_than_the_launch(tmp_path, without_nvcc) -> None:
    """Of this long loop a part is simulated, which is limited by lines of the L1 cache."""
    text = """extern "C" __global__ void multiply(const float *a, const float *b, float *c, int n) {
        int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
        float sum = 0.0f;
        for (int i = 0; i < n; ++i) sum += a[row * n + i] * b[i * n + column];
        c[row * n + column] = sum;
    }"""
    n = 2048
    matrices = [f"zeros:{n * n}"] * 3
    run = model_kernel(tmp_path / "k.cu", text, "multiply", (n // 16, n // 16), (16, 16), [*matrices, n], "h200")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert run.bound_by == "first cache and shared memory"
    assert estimate.time_us >= max(estimate.breakdown.values())


def test_a_float64_division_has_a_float32_test(tmp_path, without_nvcc) -> None:
    text = 'extern "C" __global__ void k(double *to, double x) { to[threadIdx.x] = x / to[threadIdx.x]; }'
    run = model_kernel(tmp_path / "k.cu", text, "k", 1, 32, ["zeros:64", 2.0], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert (estimate.float32_operations, estimate.float64_operations) == (2 * 32, 15 * 32)


@pytest.mark.parametrize(
    ("index", "lines"), [("i + blockIdx.x", 1), ("i + 2 * threadIdx.x", 5), ("i + 16 * threadIdx.x", 32)]
)
def test_a_multiprocessor_takes_a_cycle_for_each_line_of_constants(tmp_path, without_nvcc, index, lines) -> None:
    text = f"""__constant__ int table[512];
    extern "C" __global__ void sum(int *to, int n) {{
        int sum = 0;
        for (int i = 0; i < n; ++i) sum += table[({index}) & 511];
        to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }}"""
    threads, loads = 68 * 64 * 32, 512
    run = model_kernel(tmp_path / "k.cu", text, "sum", threads // 256, 256, [f"zeros:{threads}", loads], "rtx-3080")
    cycles = run.data()["time_us"] * 1e3 * find_gpu("rtx-3080").clock_ghz
    served = cycles / (64 * loads)  # cycles of a multiprocessor for each load of a warp
    assert served == pytest.approx(lines, rel=0.1) if lines > 1 else 2 <= served < 3.5


@pytest.mark.parametrize(("reads", "least", "most"), [("i == 0", 0, 50), ("i >= 0", 1024, 3000)])
def test_a_sum_of_constants_moves_into_the_branch_that_reads_it(tmp_path, without_nvcc, reads, least, most) -> None:
    """ptxas unrolls loops with a constant number of iterations; only one thread then executes 1,023 sums."""
    text = f"""__constant__ int table[1024];
    extern "C" __global__ void sum(int *to) {{
        int sum = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
        for (int k = 0; k < 4; ++k)
            for (int j = 0; j < 1024; j += 4) sum += table[j + k];
        if ({reads}) to[i] = sum;
    }}"""
    run = model_kernel(tmp_path / "k.cu", text, "sum", 68 * 6, 256, [f"zeros:{68 * 6 * 256}"], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert least <= estimate.instructions / (68 * 6 * 8) <= most


@pytest.mark.parametrize(("words", "start", "groups"), [(512, "", 0), (2048, "", 32), (2048, "__syncthreads();", 4)])
def test_constants_beyond_the_constant_cache_are_loaded_line_by_line(
    tmp_path, without_nvcc, words, start, groups
) -> None:
    """Each warp loads lines of 16 words, one in 78 cycles; a block's eight warps share them if they run together."""
    text = f"""__constant__ float table[{words}];
    extern "C" __global__ void sum(float *to, int n) {{
        float sum = 0;
        {start}
        for (int i = 0; i < n; ++i) sum += table[i & {words - 1}];
        to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }}"""
    warps, loads = 32, 8192
    threads = 68 * warps * 32
    run = model_kernel(tmp_path / "k.cu", text, "sum", threads // 256, 256, [f"zeros:{threads}", loads], "rtx-3080")
    cycles = run.data()["time_us"] * 1e3 * find_gpu("rtx-3080").clock_ghz
    expected = 78 * loads / 16 * groups
    assert cycles == pytest.approx(expected, rel=0.1) if groups > 4 else expected < cycles < 4 * loads * warps


def test_most_threads_find_an_extreme_value_of_earlier_blocks(tmp_path, without_nvcc) -> None:
    """Only the blocks that start at once find the initial value, and replace it; how often depends on the values."""
    text = """extern "C" __global__ void largest(const float *from, unsigned *to) {
        float value = from[blockIdx.x * blockDim.x + threadIdx.x];
        unsigned seen = *to;
        while (value > __uint_as_float(seen)) {
            unsigned old = seen;
            if ((seen = atomicCAS(to, old, __float_as_uint(value))) == old) break;
        }
    }"""

    def model_atomics(blocks: int) -> float:
        arguments = [f"random:{256 * blocks}", "zeros:1"]
        run = model_kernel(tmp_path / "k.cu", text, "largest", blocks, 256, arguments, "rtx-3080")
        estimate = run.launches[0].estimate
        assert estimate is not None
        return estimate.breakdown["atomics"]

    concurrent = 68 * 6
    assert model_atomics(16 * concurrent) < 2 * model_atomics(concurrent)


def test_warps_that_find_a_maximum_do_not_try_its_values_one_by_one(tmp_path, without_nvcc) -> None:
    """Each thread has a larger value than the one before. On an H200 such a thread exchanges 2.2 to 3.2 times."""
    text = """extern "C" __global__ void largest(unsigned long long *to) {
        unsigned long long value = blockIdx.x * blockDim.x + threadIdx.x + 1, seen = *to;
        while (value > seen) {
            unsigned long long old = seen;
            if ((seen = atomicCAS(to, old, value)) == old) break;
        }
    }"""
    threads = 68 * 6 * 256
    run = model_kernel(tmp_path / "k.cu", text, "largest", threads // 256, 256, ["zeros:2"], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    exchanges = estimate.breakdown["atomics"] * 1e3 / find_gpu("rtx-3080").atomic_same_ns / threads
    assert 1 < exchanges < 4


def test_an_old_gpu_has_no_reduction_of_a_warp(tmp_path) -> None:
    text = "__global__ void f(int *a) { a[threadIdx.x] = __reduce_add_sync(0xffffffffu, a[threadIdx.x]); }"
    kernel = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("f")
    assert "redux.sync.add" in generate_ptx(kernel.function, kernel.variables, "8.0")
    with pytest.raises(CapabilityError, match=r"f needs compute capability 8\.0"):
        generate_ptx(kernel.function, kernel.variables, "7.5")


INDEPENDENT_CALLS = """
extern "C" __global__ void calls(float *values, float c, int rounds) {
    float v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) v[i] = values[threadIdx.x + 32 * i];
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) { float x = v[i]; v[i] = CALL; }
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) values[threadIdx.x + 32 * i] = v[i];
}
"""


@pytest.mark.parametrize(
    ("call", "cycles"),
    [
        ("c / x + 0.9f", 57),
        ("powf(x, c) * 0.1f + 0.3f", 267),
        ("atan2f(x, c) + 0.5f", 105),
        ("expf(x) * 0.1f + 0.3f", 11),
    ],
)
def test_calls_with_a_branch_follow_one_another(call, cycles, tmp_path, without_nvcc) -> None:
    """Cycles of each further independent call of a warp, as measured on an H200; calls of expf overlap."""
    took = []
    for count in (2, 4):
        text = INDEPENDENT_CALLS.replace("COUNT", str(count)).replace("CALL", call)
        took += [
            model_kernel(
                tmp_path / "k.cu", text, "calls", 1, 32, ["random:128", np.float32(1.5), rounds], "h200"
            ).time_us
            for rounds in (100, 200)
        ]
    per_round = [(took[number + 1] - took[number]) * 1980 / 100 for number in (0, 2)]
    assert (per_round[1] - per_round[0]) / 2 == pytest.approx(cycles, rel=0.2, abs=6)


def test_a_sum_in_memory_stays_in_a_register_during_a_loop_of_calls(tmp_path, without_nvcc) -> None:
    """LLVM, as the compilers of CUDA, moves the load and the store out of the loop: a call changes no memory."""
    text = """extern "C" __global__ void add(const float *from, float *to, int n) {
        __shared__ float s[32];
        s[threadIdx.x] = from[threadIdx.x];
        for (int i = 0; i < n; ++i) to[threadIdx.x] += expf(s[i & 31]);
    }"""
    arguments = ["random:32", "random:32", 50]
    run = model_kernel(tmp_path / "k.cu", text, "add", 1, 32, arguments, "h200")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.requests == 3


def test_a_multiprocessor_with_more_blocks_gets_a_larger_share_of_memory(tmp_path, without_nvcc) -> None:
    """Two of 133 blocks share a multiprocessor of an H200: each transfers as many bytes as the 131 that are alone."""
    text = """extern "C" __global__ void add(const float4 *from, float *to, int n) {
        float sum = 0;
        for (int i = 0; i < n; ++i) {
            float4 v = from[(i * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x];
            sum += v.x + v.y + v.z + v.w;
        }
        to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }"""
    arguments = [f"zeros:{4 * 1024 * 133 * 20}", f"zeros:{1024 * 133}", 20]
    even, uneven = (
        model_kernel(tmp_path / "k.cu", text, "add", blocks, 1024, arguments, "h200").time_us for blocks in (132, 133)
    )
    assert uneven < 1.2 * even


def test_a_request_takes_the_cycles_of_the_load_store_units(tmp_path, without_nvcc) -> None:
    """White papers: a multiprocessor of GA102 has units for half of a warp, of GH100 for a warp."""
    text = """extern "C" __global__ void add(const float *from, float *to, int n) {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += from[i];
        to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }"""
    arguments = ["zeros:256", f"zeros:{1024 * 132}", 256]
    for gpu, cycles, clock in (("rtx-3080", 2, 1710), ("h200", 1, 1980)):
        run = model_kernel(tmp_path / "k.cu", text, "add", 68 if gpu == "rtx-3080" else 132, 1024, arguments, gpu)
        bound_us = run.breakdown["first cache and shared memory"]
        assert bound_us * clock / (32 * 256) == pytest.approx(cycles, rel=0.02)


@pytest.mark.parametrize(("gpu", "cycles"), [("rtx-3080", 2), ("h200", 1)])
def test_a_float_sum_in_shared_memory_loads_and_exchanges_in_each_round(gpu, cycles, tmp_path, without_nvcc) -> None:
    """An RTX 3080 has load/store units for half of a warp. Each lane of a warp succeeds in a round of its own."""
    text = """extern "C" __global__ void sum(float *to, float value) {
        __shared__ float word;
        if (threadIdx.x == 0) word = 0;
        __syncthreads();
        atomicAdd(&word, value);
        __syncthreads();
        if (threadIdx.x == 0) to[blockIdx.x] = word;
    }"""
    blocks, warps = 8 * 68 * 132, 8
    run = model_kernel(tmp_path / "k.cu", text, "sum", blocks, 32 * warps, [f"empty:{blocks}", 2.0], gpu)
    estimate = run.launches[0].estimate
    assert estimate is not None
    accesses = blocks * warps * 32 * 2 * cycles / run.gpu.multiprocessors / run.gpu.clock_ghz / 1e3
    assert estimate.breakdown["first cache and shared memory"] == pytest.approx(accesses, rel=0.05)
    assert estimate.float32_operations == pytest.approx(94 * 32 * warps * blocks, rel=0.01)  # as on an RTX 3080


def test_rows_of_a_stencil_are_shared_by_distant_blocks(tmp_path, without_nvcc) -> None:
    """A block along x reads three rows, of which two are the middle rows of blocks 16 apart: n * n words in all."""
    text = """extern "C" __global__ void stencil(const float *from, float *to, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        to[i] = from[i] + from[i + n] + from[i + 2 * n];
    }"""
    n = 4096
    arguments = [f"zeros:{n * (n + 2)}", f"zeros:{n * n}", n]
    run = model_kernel(tmp_path / "k.cu", text, "stencil", n * n // 256, 256, arguments, "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.dram_bytes == pytest.approx(8 * n * n, rel=0.02)


def test_what_atomic_operations_change_is_written_back(tmp_path, without_nvcc) -> None:
    text = """extern "C" __global__ void add(int *to) {
        atomicAdd(&to[blockIdx.x * blockDim.x + threadIdx.x], 1);
    }"""
    n = 1 << 24
    run = model_kernel(tmp_path / "k.cu", text, "add", n // 256, 256, [f"zeros:{n}"], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.dram_bytes == pytest.approx(8 * n, rel=0.02)


def test_dram_writes_a_sector_alone_as_slowly_as_it_reads_a_pair(tmp_path, without_nvcc) -> None:
    """Each thread changes the first word of a pair of sectors, which DRAM reads at the rate of scattered sectors."""
    n, gpu = 1 << 18, find_gpu("rtx-3080")
    times = {}
    for change in ("atomicAdd(to + place, 1.0f)", "to[place] += 1"):
        text = f"""extern "C" __global__ void add(float *to) {{
            int place = 16 * (blockIdx.x * blockDim.x + threadIdx.x);
            {change};
        }}"""
        run = model_kernel(tmp_path / "k.cu", text, "add", n // 256, 256, [f"zeros:{16 * n}"], "rtx-3080")
        estimate = run.launches[0].estimate
        assert estimate is not None
        assert estimate.dram_bytes == pytest.approx((64 + 32) * n, rel=0.05)
        times[change] = estimate.breakdown["memory"]
    for time_us in times.values():
        assert time_us == pytest.approx(2 * 32 * n / gpu.random_gb_s / 1e3, rel=0.1)


def test_a_load_of_matrices_is_one_instruction(tmp_path, without_nvcc) -> None:
    """Four matrices of 8 rows of 16 bytes are four wavefronts, and the store of the words before is one."""
    text = """extern "C" __global__ void load(unsigned int *to) {
        __shared__ __align__(16) unsigned int s[128];
        for (int i = 0; i < 4; ++i) s[32 * i + threadIdx.x] = threadIdx.x;
        unsigned int a, b, c, d, place = (unsigned int)__cvta_generic_to_shared(s + 4 * threadIdx.x);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(place));
        to[threadIdx.x] = a + b + c + d;
    }"""
    run = model_kernel(tmp_path / "k.cu", text, "load", 1, 32, ["zeros:32"], "h200")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.shared_passes == 4 + 4
    assert estimate.instructions < 25


def test_what_is_only_printed_is_computed(tmp_path, without_nvcc) -> None:
    text = """extern "C" __global__ void check(const float *from, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0;
        for (int k = 0; k < 64; ++k) sum += from[k * n + i];
        if (sum > 1) printf("%d %f %d", i, sum, sum > 2);
    }"""
    n = 1 << 16
    run = model_kernel(tmp_path / "k.cu", text, "check", n // 256, 256, [f"zeros:{64 * n}", n], "rtx-3080")
    estimate = run.launches[0].estimate
    assert estimate is not None
    assert estimate.dram_bytes == pytest.approx(4 * 64 * n, rel=0.02)
    assert estimate.float32_operations == pytest.approx(64 * n, rel=0.02)


def test_a_switch_with_many_cases_becomes_branches(tmp_path) -> None:
    """Each case loads and changes its own element."""
    cases = "".join(
        f"case {each}: a[{each * each}] {'+-^'[each % 3]}= a[{each}] + {each}; break;" for each in range(12)
    )
    text = f"__global__ void choose(int *a) {{ switch (a[0]) {{ {cases} }} }}"
    simulated = SimulatedModule(text, tmp_path / "k.cu", {}).kernel("choose")
    kernel = parse_ptx(generate_ptx(simulated.function, simulated.variables, "9.0", "k.cu")).find_kernel("choose")
    wanted, found = (np.arange(128, dtype=np.int32) + 7 for _ in range(2))
    simulated.launch((1, 1, 1), (1, 1, 1), [wanted.view(np.uint8)])
    memory = SampledMemory({0: found.view(np.uint8)})
    address = np.array([memory.address(0)], np.int64).view(np.uint8)
    PtxMachine(kernel, {}).run(GridShape((1, 1, 1), (1, 1, 1)), address, range(1), memory)
    assert found.tolist() == wanted.tolist()
    assert found[49] != 49 + 7


@pytest.mark.parametrize(("columns", "reads"), [(1024, 1), (1 << 16, 2)])
def test_a_second_loop_loads_what_the_caches_lost_of_the_first(columns, reads, tmp_path, without_nvcc) -> None:
    """As a softmax that reads each row twice: a row of 256 KB of each of 408 blocks exceeds the caches."""
    text = """extern "C" __global__ void scale(const float *in, float *sums, int columns) {
        const float *row = in + (size_t)blockIdx.x * columns;
        float top = 0.0f, sum = 0.0f;
        for (int i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, row[i]);
        __syncthreads();
        for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - top);
        sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }"""
    arguments = [f"zeros:{1024 * columns}", f"zeros:{1024 * 256}", str(columns)]
    found = model_kernel(tmp_path / "k.cu", text, "scale", 1024, 256, arguments, "rtx-3080").data()
    loaded = found["dram_bytes"] - 4 * 1024 * 256
    assert loaded == pytest.approx(reads * 4 * 1024 * columns, rel=0.15)


@pytest.mark.parametrize(("bound", "remainders"), [("n", 1), ("64", 0)])
def test_a_remainder_by_a_doubled_variable_is_one_unless_its_loop_is_unrolled(bound, remainders, tmp_path) -> None:
    """As nvcc compiles it. LLVM alone finds that the variable is a power of two, and has a bitwise and in any case."""
    module = SimulatedModule(REMAINDERS.replace("BOUND", bound), tmp_path / "k.cu", {})
    kernel = module.kernel("tree")
    ptx = generate_ptx(kernel.function, kernel.variables, "9.0")
    assert len(re.findall(r"\brem\.s32", ptx)) == remainders
    assert len(re.findall(r"\band\.b32", ptx)) == (0 if remainders else 6)


SHUFFLE = """extern "C" __global__ void shuffle(int *out, int seed) {
    __shared__ int own[16 * 256];
    int j, t = threadIdx.x;
    for (j = 16; j >= 0; j--) {
        seed = 16807 * (seed - seed / 127773 * 127773) - 2836 * (seed / 127773);
        if (seed < 0) seed += 2147483647;
        if (j < 16) own[16 * t + j] = seed;
    }
    out[t] = own[16 * t + seed % 16];
}"""


def test_a_loop_that_counts_a_variable_of_before_down_is_unrolled_and_its_stores_merged(tmp_path) -> None:
    """As nvcc's code: four stores of 16 bytes, not sixteen of 4."""
    kernel = SimulatedModule(SHUFFLE, tmp_path / "k.cu", {}).kernel("shuffle")
    program = parse_ptx(generate_ptx(kernel.function, kernel.variables, "9.0"))
    assembled = assemble_kernel(program.find_kernel("shuffle"))
    stores = [each.modifiers for each in assembled.instructions if each.opcode == "st" and "shared" in each.modifiers]
    assert stores == [("shared", "v4", "b32")] * 4
