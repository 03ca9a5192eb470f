"""Stream capture of CuPy scripts."""

from __future__ import annotations


def test_a_captured_graph_runs_at_each_launch_only(script):
    """Kernels, forwarded functions, copies and host functions, of the stream and of one that waits for it."""
    ended = script(
        """
add = cp.RawKernel('extern "C" __global__ void add(float *x, float v) { x[threadIdx.x] += v; }', "add")
double = cp.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x")
stream, other = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
x, y, z, calls = cp.zeros(4, cp.float32), cp.zeros(4, cp.float32), cp.zeros(4, cp.float32), []
with stream:
    stream.begin_capture()
    assert stream.is_capturing() and not other.is_capturing()
    add((1,), (4,), (x, cp.float32(1)))
    x *= 3
    total = x.sum()
    x[0] = 100
    double(x, y)
    stream.launch_host_func(calls.append, "host")
    other.wait_event(stream.record())
    add((1,), (4,), (z, cp.float32(5)), stream=other)
    graph = stream.end_capture()
    assert not x.any() and not y.any() and not z.any() and not calls and not stream.is_capturing()
    assert not other.is_capturing()
graph.upload(stream)
graph.launch(stream)
assert x.tolist() == [100, 3, 3, 3] and total == 12 and y.tolist() == [200, 6, 6, 6] and z[0] == 5
graph.launch(stream)
assert x.tolist() == [100, 12, 12, 12] and total == 339 and z[0] == 10 and calls == ["host"] * 2
add((1,), (4,), (x, cp.float32(1)))
assert x[1] == 13
for wrong in ("stream.end_capture()", "cp.cuda.Stream.null.begin_capture()"):
    try:
        exec(wrong)
    except RuntimeError as error:
        print(type(error).__name__, error)
""",
        report=True,
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "CUDARuntimeError cudaErrorIllegalState: the operation cannot be performed in the present state",
        "RuntimeError cannot capture on the default (legacy) stream",
    ]
