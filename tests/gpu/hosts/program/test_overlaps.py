"""Operations that may run at the same time are findings if they race; those that something orders are not."""

from __future__ import annotations

import re

import pytest

_HEAD = """
#include <cuda/atomic>
__global__ void set(int *v) { v[threadIdx.x] = threadIdx.x; }
__global__ void add(const int *v, int *w) { w[threadIdx.x] += v[threadIdx.x]; }
__global__ void count(const int *v, int *total) { atomicAdd(total, v[threadIdx.x] & 1); }
__global__ void publish(int *v, volatile int *flag) { v[0] = 42; __threadfence(); *flag = 1; }
__global__ void await(const int *v, volatile int *flag, int *w) { while (!*flag) {} __threadfence(); w[0] = v[0]; }
__global__ void publish_to_host(int *v, volatile int *flag) { v[0] = 42; __threadfence_system(); *flag = 1; }
__global__ void publish_block(int *v, volatile int *flag) {
    v[threadIdx.x] = 42;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 63) *flag = 1;
}
__global__ void publish_after_fence(int *v, int *flag) {
    v[0] = 42;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
    cuda::atomic_ref<int>(*flag).fetch_add(1, cuda::memory_order_relaxed);
}
__global__ void store(int *v, int *flag, cuda::memory_order order) {
    v[0] = 42;
    cuda::atomic_ref<int, cuda::thread_scope_system>(*flag).store(1, order);
}
__constant__ int factor;
__global__ void scale(int *v) { v[threadIdx.x] *= factor; }
__global__ void begin_case() {}
int *a, *b, *c, *pinned, *managed, host[64];
volatile int seen;
cudaStream_t s, t, unused, blocking, other;
cudaEvent_t e, f;
cudaGraph_t graph;
cudaGraphExec_t ready;
cudaGraphNode_t first, second;
void wait_for_flag() { while (!*(volatile int *)pinned) {} }
int n = 64;
cudaKernelNodeParams node(void *kernel, void **values) {
    cudaKernelNodeParams p = {};
    p.func = kernel; p.gridDim = 1; p.blockDim = 64; p.kernelParams = values;
    return p;
}
void launch_graph() {
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, s));
}
void *set_a[] = {&a}, *add_ab[] = {&a, &b};
"""

CASES = {
    "two streams": "set<<<1, 64, 0, s>>>(a); {} add<<<1, 64, 0, t>>>(a, b);",
    "a reader before a writer": "add<<<1, 64, 0, s>>>(a, b); {} set<<<1, 64, 0, t>>>(a);",
    "a stream and the default stream": "set<<<1, 64, 0, s>>>(a); {} add<<<1, 64>>>(a, b);",
    "a fill": "cudaMemsetAsync(a, 0, 256, s); {} add<<<1, 64, 0, t>>>(a, b);",
    "a fill after a launch": "add<<<1, 64, 0, s>>>(a, b); {} cudaMemsetAsync(a, 0, 256, t);",
    "a copy to the device": "cudaMemcpyAsync(a, pinned, 256, cudaMemcpyDefault, s); {} add<<<1, 64, 0, t>>>(a, b);",
    "a copy to the host": "set<<<1, 64, 0, s>>>(a); {} cudaMemcpyAsync(pinned, a, 256, cudaMemcpyDefault, t);",
    "a copy that waits for another stream": "set<<<1, 64, 0, s>>>(a); {} cudaMemcpy(host, a, 256, cudaMemcpyDefault);",
    "two copies": (
        "cudaMemcpyAsync(pinned, a, 256, cudaMemcpyDefault, s); {}"
        "cudaMemcpyAsync(c, pinned + 60, 16, cudaMemcpyDefault, t);"
    ),
    "a constant": "scale<<<1, 64, 0, s>>>(a); {} cudaMemcpyToSymbolAsync(factor, &n, 4, 0, cudaMemcpyDefault, t);",
}
ORDERS = {
    "event": (
        "cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0);"
        "cudaEventRecord(f, t); cudaStreamWaitEvent(blocking, f, 0);"
    ),
    "synchronized stream": "cudaStreamSynchronize(s);",
    "synchronized event": "cudaEventRecord(e, s); cudaEventSynchronize(e);",
    "polled stream": "while (cudaStreamQuery(s) == cudaErrorNotReady) {}",
    "synchronized device": "cudaDeviceSynchronize();",
}
# Orders that leave the two operations unordered.
NO_ORDERS = {
    "nothing": "",
    "event recorded before": "cudaStreamWaitEvent(t, f, 0);",
    "other stream synchronized": "cudaStreamSynchronize(t);",
    "event that no stream waits for": "cudaEventRecord(e, s); cudaStreamWaitEvent(unused, e, 0);",
}
OTHERS = {
    "one stream": ("set<<<1, 64, 0, s>>>(a); add<<<1, 64, 0, s>>>(a, b);", False),
    "the default stream waits for a blocking stream": ("set<<<1, 64, 0, blocking>>>(a); add<<<1, 64>>>(a, b);", False),
    "a blocking stream waits for the default stream": ("set<<<1, 64>>>(a); add<<<1, 64, 0, blocking>>>(a, b);", False),
    "two blocking streams": ("set<<<1, 64, 0, blocking>>>(a); add<<<1, 64, 0, other>>>(a, b);", True),
    "two halves": ("set<<<1, 32, 0, s>>>(a); set<<<1, 32, 0, t>>>(a + 32);", False),
    "one element of both halves": ("set<<<1, 33, 0, s>>>(a); set<<<1, 32, 0, t>>>(a + 32);", True),
    "atomic operations": ("count<<<1, 64, 0, s>>>(a, b); count<<<1, 64, 0, t>>>(a, b);", False),
    "readers": ("add<<<1, 64, 0, s>>>(a, b); add<<<1, 64, 0, t>>>(a, c);", False),
    "a launch that waits for a flag": ("publish<<<1, 1, 0, s>>>(a, c); await<<<1, 1, 0, t>>>(a, c, b);", False),
    "nodes in order": (
        (
            "auto p = node((void *)set, set_a), q = node((void *)add, add_ab); CHECK(cudaGraphCreate(&graph, 0));"
            "CHECK(cudaGraphAddKernelNode(&first, graph, 0, 0, &p));"
            "CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &q)); launch_graph();"
        ),
        False,
    ),
    "nodes without order": (
        (
            "auto p = node((void *)set, set_a), q = node((void *)add, add_ab); CHECK(cudaGraphCreate(&graph, 0));"
            "CHECK(cudaGraphAddKernelNode(&first, graph, 0, 0, &p));"
            "CHECK(cudaGraphAddKernelNode(&second, graph, 0, 0, &q)); launch_graph();"
        ),
        True,
    ),
    "captured streams in order": (
        (
            "CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)); set<<<1, 64, 0, s>>>(a);"
            "cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0); add<<<1, 64, 0, t>>>(a, b); cudaEventRecord(f, t);"
            "cudaStreamWaitEvent(s, f, 0); CHECK(cudaStreamEndCapture(s, &graph)); launch_graph();"
        ),
        False,
    ),
    "captured streams without order": (
        (
            "CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));"
            "cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0);"
            "set<<<1, 64, 0, s>>>(a); add<<<1, 64, 0, t>>>(a, b); cudaEventRecord(f, t);"
            "cudaStreamWaitEvent(s, f, 0); CHECK(cudaStreamEndCapture(s, &graph)); launch_graph();"
        ),
        True,
    ),
    "a launch after a graph": (
        (
            "auto p = node((void *)set, set_a); CHECK(cudaGraphCreate(&graph, 0));"
            "CHECK(cudaGraphAddKernelNode(&first, graph, 0, 0, &p)); launch_graph(); add<<<1, 64, 0, s>>>(a, b);"
        ),
        False,
    ),
    "a launch beside a graph": (
        (
            "auto p = node((void *)set, set_a); CHECK(cudaGraphCreate(&graph, 0));"
            "CHECK(cudaGraphAddKernelNode(&first, graph, 0, 0, &p)); launch_graph(); add<<<1, 64, 0, t>>>(a, b);"
        ),
        True,
    ),
}

HOST_CASES = {
    "a read of managed memory": ("set<<<1, 64>>>(managed); seen = managed[3];", True),
    "a read after a query of the last error": ("set<<<1, 64>>>(managed); cudaGetLastError(); seen = managed[3];", True),
    "a read after a wait for the device": (
        "set<<<1, 64>>>(managed); cudaDeviceSynchronize(); seen = managed[3];",
        False,
    ),
    "a read after a wait for the stream": (
        "set<<<1, 64, 0, s>>>(managed); cudaStreamSynchronize(s); seen = managed[3];",
        False,
    ),
    "a read after a wait for another stream": (
        "set<<<1, 64, 0, s>>>(managed); cudaStreamSynchronize(t); seen = managed[3];",
        True,
    ),
    "a read after a wait for an event": (
        "set<<<1, 64, 0, s>>>(managed); cudaEventRecord(e, s); cudaEventSynchronize(e); seen = managed[3];",
        False,
    ),
    "a read after a copy": (
        "set<<<1, 64>>>(managed); cudaMemcpy(host, a, 4, cudaMemcpyDefault); seen = managed[3];",
        False,
    ),
    "a read of another part": ("set<<<1, 32>>>(managed); seen = managed[40];", False),
    "a read of another part first": ("set<<<1, 32>>>(managed); seen = managed[2000]; seen = managed[5];", True),
    "a read of a counter": ("count<<<1, 64>>>(a, managed); seen = managed[0];", True),
    "a read of what a launch reads": ("add<<<1, 64>>>(managed, b); seen = managed[3];", False),
    "a write of what a launch reads": ("add<<<1, 64>>>(managed, b); managed[3] = 1;", True),
    "a write of pinned memory": ("add<<<1, 64>>>(pinned, b); pinned[3] = 1;", True),
    "a read by a function of the library": ("set<<<1, 64>>>(managed); memcpy(host, managed, 256);", True),
    "a read of a copy": ("cudaMemcpyAsync(pinned, a, 256, cudaMemcpyDefault, s); seen = pinned[3];", True),
    "a read of a copy after a wait": (
        "cudaMemcpyAsync(pinned, a, 256, cudaMemcpyDefault, s); cudaStreamSynchronize(s); seen = pinned[3];",
        False,
    ),
    "a write of the source of a copy": ("cudaMemcpyAsync(a, pinned, 256, cudaMemcpyDefault, s); pinned[3] = 1;", True),
    "a read behind a flag": ("publish_to_host<<<1, 1>>>(managed, pinned); wait_for_flag(); seen = managed[0];", False),
    "a read behind a flag of device scope": (
        "publish<<<1, 1>>>(managed, pinned); wait_for_flag(); seen = managed[0];",
        True,
    ),
    "a read behind a flag of a block": (
        "publish_block<<<1, 64>>>(managed, pinned); wait_for_flag(); seen = managed[0];",
        False,
    ),
    "a read behind a release": (
        "store<<<1, 1>>>(managed, pinned, cuda::memory_order_release); wait_for_flag(); seen = managed[0];",
        False,
    ),
    "a read behind a relaxed store": (
        "store<<<1, 1>>>(managed, pinned, cuda::memory_order_relaxed); wait_for_flag(); seen = managed[0];",
        True,
    ),
    "a read behind a release fence": (
        "publish_after_fence<<<1, 1>>>(managed, pinned); wait_for_flag(); seen = managed[0];",
        False,
    ),
    "a read of earlier data behind a flag": (
        "set<<<1, 64>>>(managed); publish_to_host<<<1, 1>>>(a, pinned); wait_for_flag(); seen = managed[3];",
        False,
    ),
    "a read of another stream's data behind a flag": (
        (
            "set<<<1, 64, 0, s>>>(managed); publish_to_host<<<1, 1, 0, t>>>(a, pinned); wait_for_flag();"
            "seen = managed[3];"
        ),
        True,
    ),
    "a read after a write of the flag": (
        "publish_to_host<<<1, 1>>>(managed, pinned); *(volatile int *)pinned = 0; seen = managed[0];",
        True,
    ),
    "a launch behind a flag, in another stream,": (
        "publish_to_host<<<1, 1, 0, s>>>(managed, pinned); wait_for_flag(); add<<<1, 1, 0, t>>>(managed, b);",
        False,
    ),
}
OTHERS.update({f"{case} by the host": body for case, body in HOST_CASES.items()})

PAIRS = [
    *((case, order) for case in CASES for order in ("event", "nothing")),
    *(("two streams", order) for order in (*ORDERS, *NO_ORDERS)),
]
ALL = {
    **{
        f"{case}, {order}": (CASES[case].replace("{}", {**ORDERS, **NO_ORDERS}[order]), order in NO_ORDERS)
        for case, order in dict.fromkeys(PAIRS)
    },
    **OTHERS,
    "a fill at the end": ("add<<<1, 64, 0, s>>>(a, b); cudaMemsetAsync(a, 0, 256, t);", True),
}


@pytest.fixture(scope="module")
def findings(run_program) -> dict[str, list[dict[str, object]]]:
    """The findings of each case, by its name."""
    functions = "".join(f"void run_{number}() {{ {body} }}\n" for number, (body, _) in enumerate(ALL.values()))
    # No launch follows the last case.
    calls = "".join(
        f"cudaDeviceSynchronize(); cudaMemset(a, 0, 256); cudaMemset(b, 0, 256); cudaMemset(c, 0, 256);"
        f"begin_case<<<1, 1>>>(); cudaDeviceSynchronize(); run_{number}();\n"
        for number in range(len(ALL))
    )
    ended = run_program(
        f"""{_HEAD}
{functions}
int main() {{
    for (int **each : {{&a, &b, &c}}) CHECK(cudaMalloc(each, 512));
    CHECK(cudaMallocHost(&pinned, 512));
    CHECK(cudaMallocManaged(&managed, 16384));
    for (auto each : {{&s, &t, &unused}}) CHECK(cudaStreamCreateWithFlags(each, cudaStreamNonBlocking));
    for (auto each : {{&blocking, &other}}) CHECK(cudaStreamCreate(each));
    for (auto each : {{&e, &f}}) CHECK(cudaEventCreate(each));
    CHECK(cudaEventRecord(f, s));
    // The host is watched before the first launch parses its kernel.
    CHECK(cudaMemcpyAsync(a, pinned, 256, cudaMemcpyDefault, s));
    {calls}
    CHECK(cudaDeviceSynchronize());
}}""",
        "--check",
        report=True,
    )
    found: list[list[dict[str, object]]] = []
    for launch in ended.report["launches"]:
        if launch["kernel"] == "begin_case":
            found.append([])
        if found:
            found[-1] += launch["findings"]
    assert len(found) == len(ALL), ended.stderr
    return dict(zip(ALL, found, strict=True))


@pytest.mark.parametrize("case", ALL)
def test_operations_that_nothing_orders_race(findings, case: str) -> None:
    kinds = [finding["kind"] for finding in findings[case]]
    assert (set(kinds) == {"race"}) is ALL[case][1], findings[case]
    assert set(kinds) <= {"race"}


def test_a_race_with_the_host_names_its_line_and_the_remedy(findings) -> None:
    (finding,) = findings["a read of managed memory by the host"]
    found = re.search(
        r"Write access at program.cu:\d+ by thread \(3,0,0\) in block \(0,0,0\) of set, launched at (\S+:\d+), "
        r"and read by the host at (\S+:\d+) on element 3 of v \(global memory\)",
        finding["message"],
    )
    assert found is not None
    assert found[1] == found[2]  # the line has both
    assert "synchronize before the access" in finding["message"]


def test_a_race_behind_a_flag_names_the_missing_fence(findings) -> None:
    (finding,) = findings["a read behind a flag of device scope by the host"]
    assert re.search(
        r"has read the flag that is written at program.cu:\d+, .*__threadfence_system\(\)", finding["message"]
    )


def test_a_race_of_streams_names_both_launches_and_the_remedy(findings) -> None:
    (finding,) = findings["two streams, nothing"]
    assert re.search(
        r"Write access at program.cu:\d+ by thread \(0,0,0\) in block \(0,0,0\) of set, launched at program.cu:\d+, "
        r"and Read access at program.cu:\d+ by thread \(0,0,0\) in block \(0,0,0\) of add, launched at program.cu:\d+, "
        r"on element 0 of v \(global memory\), in two streams that may run at the same time\..*cudaStreamWaitEvent",
        str(finding["message"]),
    )
    (finding,) = findings["nodes without order"]
    assert "No dependency orders the two nodes" in str(finding["message"])
