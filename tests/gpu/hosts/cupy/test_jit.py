"""Kernels that scripts write in Python with `cupyx.jit`: types, indices, synchronization, findings and errors."""

from __future__ import annotations

IMPORT = "from cupyx import jit\n"


def test_operators_have_the_results_and_types_of_python(script):
    ended = script(
        IMPORT
        + """
@jit.rawkernel()
def combine(a, b, out):
    i = jit.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        out[i, 0] = x // y
        out[i, 1] = x % y
        out[i, 2] = x ** 2 if x > y else -x
        out[i, 3] = x / y
        out[i, 4] = (x & 3) | (y << 1) ^ ~x
        out[i, 5] = 1 if not x == y and 0 < y <= 5 else 0
        out[i, 6] = min(x, y, 2) + max(x, y) + abs(y)
        out[i, 7] = cp.sqrt(cp.float64(x * x)) + np.float32(0.5)

a = np.arange(-7, 8, dtype=np.int32)
b = np.where(a % 2, 3, -2).astype(np.int32)
out = cp.zeros((a.size, 8, 2))[:, :, 1]
combine[3, 7](cp.asarray(a), cp.asarray(b), out)
logical = (a != b) & (0 < b) & (b <= 5)
expected = [a // b, a % b, np.where(a > b, a ** 2, -a), a / b, (a & 3) | (b << 1) ^ ~a, logical,
            np.minimum(np.minimum(a, b), 2) + np.maximum(a, b) + abs(b), np.sqrt(a * a) + 0.5]
np.testing.assert_array_equal(out.get(), np.stack(expected, 1))
"""
    )
    assert ended.code == 0, ended.stderr
    assert "1 launch on the simulator" in ended.stderr


def test_blocks_share_memory_and_call_device_functions(script):
    ended = script(
        IMPORT
        + """
width = 32

@jit.rawkernel(device=True)
def add_lanes(value):
    step = width // 2
    while step:
        value += jit.shfl_down_sync(0xffffffff, value, step)
        step //= 2
    return value

@jit.rawkernel()
def total(x, sums, count):
    partial = jit.shared_memory(np.float32, 4)
    value = np.float32(0)
    for i in range(jit.grid(1), len(x), jit.gridsize(1)):
        for j in range(x.shape[1] - 1, -1, -1):
            value += x[i][j]
    value = add_lanes(value)
    if jit.laneid() == 0:
        partial[jit.threadIdx.x // width] = value
    jit.syncthreads()
    if jit.threadIdx.x == 0:
        for k in jit.range(4, unroll=True):
            jit.atomic_add(sums, (), partial[k])
        jit.atomic_add(count, 0, 1)

x = cp.random.default_rng(1).random((1001, 3), dtype=cp.float32)
sums, count = cp.zeros((), cp.float32), cp.zeros(2, cp.int32)
total((5,), (128,), (x, sums, count))
assert abs(float(sums) - x.get().astype(float).sum()) < 0.1
assert count.get().tolist() == [5, 0]
assert "#pragma unroll" in total.cached_code and "__shfl_down_sync" in total.cached_code
""",
        "--check",
    )
    assert ended.code == 0, ended.stderr


def test_a_missing_barrier_is_reported(script):
    ended = script(
        IMPORT
        + """
@jit.rawkernel()
def reverse(x):
    tile = jit.shared_memory(np.int32, 64)
    tile[jit.threadIdx.x] = x[jit.threadIdx.x]
    x[jit.threadIdx.x] = tile[63 - jit.threadIdx.x]

reverse[1, 64](cp.arange(64, dtype=cp.int32))
""",
        "--check",
        report=True,
    )
    assert ended.code == 1
    (launch,) = ended.report["launches"]
    assert (launch["kernel"], launch["place"]) == ("reverse", "script.py:12")
    assert {finding["kind"] for finding in launch["findings"]} == {"race"}


RULE, KERNEL = "with casting rule same_kind", "__global__ function"


def test_errors_name_the_reason_and_the_line(script):
    ended = script(
        IMPORT
        + """
x, y = cp.zeros(4, cp.float32), cp.zeros((2, 2), cp.int32)

@jit.rawkernel()
def unbound(a, b): a[0] = nothing
@jit.rawkernel()
def narrowed(a, b): b[0, 0] = a[0]
@jit.rawkernel()
def fraction(a, b): a[a[0]] = 1
@jit.rawkernel()
def axes(a, b): a[0, 1] = 1
@jit.rawkernel()
def loop(a, b):
    for each in a: pass
@jit.rawkernel()
def statement(a, b):
    try: pass
    finally: pass
@jit.rawkernel()
def host(a, b): print(a[0])
@jit.rawkernel()
def kernel(a, b): unbound(a, b)
@jit.rawkernel()
def few(a): pass
@jit.rawkernel()
def result(a, b): return a[0]
@jit.rawkernel()
def atomic(a, b): jit.atomic_xor(a, 0, 1)
@jit.rawkernel()
def default(a, b=1): pass

for each in (unbound, narrowed, fraction, axes, loop, statement, host, kernel, few, result, atomic, default):
    try:
        each[1, 1](x, y)
    except Exception as error:
        text = str(error).splitlines()
        marked = [line for line in text if line.startswith(">")]
        print(each.__name__, type(error).__name__, text[0], marked[0][1:].strip() if marked else "-", sep="|")
for call in (lambda: few[1, 1]("text"), lambda: jit.syncthreads(), lambda: jit.cub):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""
    )
    assert ended.stdout.splitlines() == [
        "unbound|NameError|Unbound name: nothing|def unbound(a, b): a[0] = nothing",
        f"narrowed|TypeError|Cannot cast from float32 to int32 {RULE}.|def narrowed(a, b): b[0, 0] = a[0]",
        "fraction|TypeError|Array indices must be integers, not float.|def fraction(a, b): a[a[0]] = 1",
        "axes|IndexError|The number of indices is beyond array dim: 1|def axes(a, b): a[0, 1] = 1",
        "loop|NotImplementedError|for-loop is supported only for range iterator.|for each in a: pass",
        "statement|NotImplementedError|cupyx.jit does not support `try`.|try: pass",
        "host|TypeError|Invalid function call 'print'.|def host(a, b): print(a[0])",
        f"kernel|TypeError|Calling {KERNEL} unbound from {KERNEL} is not allowed.|def kernel(a, b): unbound(a, b)",
        "few|TypeError|few() takes 1 positional arguments but 2 were given.|-",
        "result|ValueError|A kernel returns nothing, but this function returns float32.|def result(a, b): return a[0]",
        "atomic|TypeError|`atomicXor` does not support float32 input.|def atomic(a, b): jit.atomic_xor(a, 0, 1)",
        "default|NotImplementedError|cupyx.jit translates functions without *args, **kwargs and default values only.|-",
        "TypeError <class 'str'> is not supported for RawKernel",
        "RuntimeError cupyx.jit.syncthreads can be called in a function with @jit.rawkernel only",
        "AttributeError Lockstep's CuPy does not have cupyx.jit.cub.",
    ], ended.stderr


def test_cooperative_groups(script):
    ended = script(
        """
from cupyx import jit
from cupyx.jit import cg

@jit.rawkernel()
def fill(x, ranks, size):
    grid = cg.this_grid()
    block = jit.cg.this_thread_block()
    staged = jit.shared_memory(cp.int32, 32)
    cg.memcpy_async(block, staged, 0, ranks, 0, 128)
    cg.wait(block)
    i = grid.thread_rank()
    if i < size:
        x[i] = staged[31 - block.thread_rank()] + 100 * block.group_index().x
    grid.sync()
    if i == 0:
        x[size] = x[size - 1] + grid.num_blocks()
    cg.sync(block)

x, ranks = cp.zeros(61, cp.int32), cp.arange(32, dtype=cp.int32)
fill[2, 32](x, ranks, 60)
i = np.arange(60)
assert x.tolist() == [*(31 - i % 32 + 100 * (i // 32)), 31 - 59 % 32 + 100 + 2]
"""
    )
    assert ended.code == 0, ended.stderr
