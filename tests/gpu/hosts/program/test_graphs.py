"""Graphs of a program: captured from its streams, and built node by node."""

from __future__ import annotations

KERNELS = """
__global__ void add(int *x, int value) { x[threadIdx.x] += value; }
__global__ void times(int *x, int value) { x[threadIdx.x] *= value; }

static const char *said(cudaError_t error) { return cudaGetErrorName(error); }
static void count_up(void *data) { ++*(int *)data; }

"""


def test_captured_streams_run_when_their_graph_is_launched(program):
    ended = program(
        KERNELS
        + """
int main() {
    int *x, *y, host[4] = {1, 2, 3, 4}, out[4] = {}, calls = 0, value = 10;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&y, sizeof host));
    cudaStream_t stream, other;
    cudaEvent_t forked, joined;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, stream));
    add<<<1, 4, 0, stream>>>(x, value);
    value = 99;  // the graph has 10
    CHECK(cudaEventRecord(forked, stream));
    CHECK(cudaStreamWaitEvent(other, forked, 0));
    CHECK(cudaMemsetAsync(y, 0, sizeof host, other));
    add<<<1, 4, 0, other>>>(y, 5);
    times<<<1, 4, 0, stream>>>(x, 3);
    CHECK(cudaStreamIsCapturing(other, &status));
    printf("%d ", (int)status);
    CHECK(cudaEventRecord(joined, other));
    CHECK(cudaStreamWaitEvent(stream, joined, 0));
    CHECK(cudaMemcpyAsync(out, x, sizeof out, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, count_up, &calls));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaStreamIsCapturing(other, &status));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    printf("%d, %d %d, %zu\\n", (int)status, out[0], calls, nodes);
    CHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(cudaGraphDestroy(graph));
    host[0] = 100;
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("%d %d %d %d, %d\\n", out[0], out[1], out[2], out[3], calls);
    CHECK(cudaMemcpy(out, y, sizeof out, cudaMemcpyDeviceToHost));
    printf("%d %d\\n", out[0], out[3]);
    CHECK(cudaGraphExecDestroy(exec));
    printf("%s\\n", cudaGetErrorName(cudaGraphLaunch(exec, stream)));
}
""",
        report=True,
    )
    assert ended.stdout == "1 0, 0 0, 7\n330 36 39 42, 3\n5 5\ncudaErrorInvalidValue\n", ended.stderr
    assert [each["kernel"] for each in ended.report["launches"]] == ["add", "add", "times"] * 3


def test_graphs_are_built_node_by_node_and_updated(program):
    ended = program(
        KERNELS
        + """
int main() {
    int *x, *y, host[4] = {1, 2, 3, 4}, out[4] = {}, calls = 0, by = 7;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&y, sizeof host));
    cudaGraph_t graph, whole;
    cudaGraphExec_t exec;
    cudaGraphNode_t copied, set, added, back, called, child;
    CHECK(cudaGraphCreate(&graph, 0));
    void *arguments[] = {&y, &by};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add, kernel.gridDim = dim3(1), kernel.blockDim = dim3(4), kernel.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &kernel));
    cudaMemsetParams fill = {};
    fill.dst = y, fill.value = 0x01020304, fill.elementSize = 4, fill.width = 4, fill.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
    CHECK(cudaGraphAddDependencies(graph, &set, &added, 1));  // though it was added later
    CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, nullptr, 0, x, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaGraphAddMemcpyNode1D(&back, graph, &added, 1, out, y, sizeof out, cudaMemcpyDeviceToHost));
    cudaHostNodeParams host_node = {count_up, &calls};
    cudaGraphNode_t both[] = {back, copied};
    CHECK(cudaGraphAddHostNode(&called, graph, both, 2, &host_node));
    by = 1000;  // the node has 7
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    cudaGraphNodeType types[4];
    cudaGraphNode_t each[] = {added, copied, set, called};
    for (int i = 0; i < 4; i++) CHECK(cudaGraphNodeGetType(each[i], &types[i]));
    printf("%d%d%d%d ", types[0], types[1], types[2], types[3]);
    printf("%d %d %d\\n", out[0] - 0x01020304, out[3] - 0x01020304, calls);
    by = 20;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, added, &kernel));
    CHECK(cudaGraphLaunch(exec, 0));
    printf("%d %d\\n", out[0] - 0x01020304, calls);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    CHECK(cudaGraphCreate(&whole, 0));
    CHECK(cudaGraphAddChildGraphNode(&child, whole, nullptr, 0, graph));
    CHECK(cudaGraphLaunch(exec, 0));
    printf("%d %d, ", out[0] - 0x01020304, calls);
    CHECK(cudaGraphInstantiateWithFlags(&exec, whole));
    CHECK(cudaGraphLaunch(exec, 0));
    printf("%d\\n", calls);
    CHECK(cudaGraphAddDependencies(graph, &added, &set, 1));
    printf("%s\\n", cudaGetErrorName(cudaGraphInstantiate(&exec, graph, 0)));
}
"""
    )
    assert ended.stdout == "0123 7 7 1\n20 2\n7 3, 4\ncudaErrorInvalidValue\n", ended.stderr


def test_memory_of_graphs_keeps_its_address(program):
    ended = program(
        KERNELS
        + """
int main() {
    int *captured, *own, out[4] = {}, by = 5;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(&captured, 16, stream));
    CHECK(cudaMemsetAsync(captured, 0, 16, stream));
    cudaStream_t side;
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreate(&side));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    add<<<1, 4, 0, side>>>(captured, 1);
    CHECK(cudaEventRecord(join, side));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    CHECK(cudaStreamDestroy(side));
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphNode_t allocated, added, freed;
    cudaMemAllocNodeParams how = {};
    how.bytesize = 16;
    CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &how));
    void *arguments[] = {&captured, &by};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add, kernel.gridDim = dim3(1), kernel.blockDim = dim3(4), kernel.kernelParams = arguments;
    cudaGraphNode_t nodes[4];
    size_t count = 4;
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    CHECK(cudaGraphAddKernelNode(&added, graph, nodes, count, &kernel));
    CHECK(cudaGraphAddMemFreeNode(&freed, graph, &added, 1, how.dptr));
    CHECK(cudaMalloc(&own, 16));
    printf("%s ", cudaGetErrorName(cudaGraphAddMemFreeNode(&freed, graph, &added, 1, own)));
    CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaMemcpyAsync(out, captured, 16, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaFreeAsync(captured, stream));
        CHECK(cudaStreamSynchronize(stream));
    }
    unsigned long long bytes;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
    CHECK(cudaDeviceGraphMemTrim(0));
    cudaGraphExecUpdateResult result;
    CHECK(cudaGraphExecUpdate(exec, graph, nullptr, &result));
    printf("%d %llu %d\\n", out[3], bytes, result);
}
"""
    )
    assert ended.stdout == "cudaErrorInvalidValue 6 32 0\n", ended.stderr


def test_what_no_capture_takes_is_refused_and_ends_it(program):
    ended = program(
        KERNELS
        + """
static void say(cudaError_t error) { printf("%s ", cudaGetErrorName(error)), cudaGetLastError(); }
static void ok(cudaError_t error) { CHECK(error); }
int main() {
    int *x, *y, out[4];
    CHECK(cudaMalloc(&x, 16));
    cudaStream_t stream, other, free_one;
    cudaEvent_t event;
    cudaGraph_t graph;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&event));
    auto begin = [&](cudaStreamCaptureMode mode) { CHECK(cudaStreamBeginCapture(stream, mode)); };
    auto end = [&] { say(cudaStreamEndCapture(stream, &graph)), printf("%d\\n", graph != nullptr); };
    end();
    say(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
    begin(cudaStreamCaptureModeRelaxed), say(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed)), end();
    begin(cudaStreamCaptureModeRelaxed), say(cudaStreamSynchronize(stream)), end();
    begin(cudaStreamCaptureModeRelaxed), say(cudaDeviceSynchronize()), end();
    begin(cudaStreamCaptureModeGlobal), say(cudaMalloc(&y, 16)), end();
    begin(cudaStreamCaptureModeRelaxed), say(cudaMalloc(&y, 16)), end();
    begin(cudaStreamCaptureModeRelaxed), say(cudaMemcpy(out, x, 16, cudaMemcpyDeviceToHost)), end();
    begin(cudaStreamCaptureModeRelaxed), add<<<1, 4>>>(x, 1), say(cudaGetLastError()), end();
    begin(cudaStreamCaptureModeRelaxed), say(cudaMallocAsync(&y, 16, stream)), end();
    ok(cudaEventRecord(event, other));
    begin(cudaStreamCaptureModeRelaxed), say(cudaStreamWaitEvent(stream, event, 0)), end();
    begin(cudaStreamCaptureModeRelaxed), ok(cudaEventRecord(event, stream)), say(cudaEventQuery(event)), end();
    begin(cudaStreamCaptureModeRelaxed), ok(cudaEventRecord(event, stream));
    ok(cudaStreamWaitEvent(other, event, 0)), add<<<1, 4, 0, other>>>(x, 1);
    say(cudaStreamEndCapture(other, &graph)), end();
    begin(cudaStreamCaptureModeRelaxed), ok(cudaEventRecord(event, stream));
    ok(cudaStreamWaitEvent(other, event, 0)), add<<<1, 4, 0, other>>>(x, 1), end();
    CHECK(cudaStreamBeginCapture(free_one, cudaStreamCaptureModeRelaxed));
    add<<<1, 4>>>(x, 1);  // which no stream that does not block waits for
    CHECK(cudaStreamEndCapture(free_one, &graph));
}
"""
    )
    assert ended.stdout.replace("cudaError", "").replace("cudaS", "S").splitlines() == [
        "IllegalState 0",
        "StreamCaptureUnsupported IllegalState Success 1",
        "StreamCaptureUnsupported StreamCaptureInvalidated 0",
        "StreamCaptureUnsupported StreamCaptureInvalidated 0",
        "StreamCaptureUnsupported StreamCaptureInvalidated 0",
        "Success Success 1",
        "StreamCaptureImplicit StreamCaptureInvalidated 0",
        "StreamCaptureImplicit StreamCaptureInvalidated 0",
        "Success Success 1",
        "StreamCaptureIsolation StreamCaptureInvalidated 0",
        "CapturedEvent StreamCaptureInvalidated 0",
        "StreamCaptureUnmatched StreamCaptureInvalidated 0",
        "StreamCaptureUnjoined 0",
    ]
    assert ended.code == 0, ended.stderr


CONDITIONS = """
#include <cstdio>
__global__ void test(int *x, cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, *x); }
__global__ void count_down(int *x, int *calls, cudaGraphConditionalHandle handle) {
    *calls += 1;
    cudaGraphSetConditional(handle, --*x);
}
__global__ void set(int *x, int value) { *x = value; }

static cudaGraphNodeParams describe(void *kernel, void **arguments) {
    cudaGraphNodeParams params = {cudaGraphNodeTypeKernel};
    params.kernel.func = kernel, params.kernel.kernelParams = arguments;
    params.kernel.gridDim = params.kernel.blockDim = dim3(1);
    return params;
}
static cudaGraphNodeParams when(cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size) {
    cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = handle, params.conditional.type = type, params.conditional.size = size;
    return params;
}
"""


def test_a_conditional_node_executes_the_graph_that_its_condition_selects(program):
    ended = program(
        CONDITIONS
        + """
int main() {
    int *x, *y, values[] = {10, 20, 30}, out;
    CHECK(cudaMalloc(&x, 4));
    CHECK(cudaMalloc(&y, 4));
    for (int kind : {0, 0, 2}) {
        static unsigned size = 0;
        ++size;  // an `if` without and with `else`, and a switch of three
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        cudaGraphNode_t tested, node, inner;
        cudaGraphConditionalHandle handle;
        CHECK(cudaGraphCreate(&graph, 0));
        CHECK(cudaGraphConditionalHandleCreate(&handle, graph));
        void *arguments[] = {&x, &handle};
        cudaGraphNodeParams params = describe((void *)test, arguments);
        CHECK(cudaGraphAddNode(&tested, graph, NULL, NULL, 0, &params));
        cudaGraphNodeParams condition = when(handle, (cudaGraphConditionalNodeType)kind, size);
        CHECK(cudaGraphAddNode(&node, graph, &tested, NULL, 1, &condition));
        for (unsigned i = 0; i < size; i++) {
            void *values_of_i[] = {&y, &values[i]};
            params = describe((void *)set, values_of_i);
            CHECK(cudaGraphAddNode(&inner, condition.conditional.phGraph_out[i], nullptr, 0, &params));
        }
        cudaGraphNodeType type;
        CHECK(cudaGraphNodeGetType(node, &type));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        for (int value : {0, 1, 2, 9}) {
            out = 0;
            CHECK(cudaMemcpy(x, &value, 4, cudaMemcpyHostToDevice));
            CHECK(cudaMemset(y, 0, 4));
            CHECK(cudaGraphLaunch(exec, 0));
            CHECK(cudaMemcpy(&out, y, 4, cudaMemcpyDeviceToHost));
            printf("%d ", out);
        }
        printf("(%d)\\n", type);
    }
    cudaGraph_t graph;
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNodeParams invalid = when(12345, cudaGraphCondTypeIf, 1);
    printf("%s ", cudaGetErrorName(cudaGraphAddNode(&node, graph, nullptr, 0, &invalid)));
    invalid.conditional.size = 3;
    printf("%s\\n", cudaGetErrorName(cudaGraphAddNode(&node, graph, nullptr, 0, &invalid)));
}
""",
        "--check",
    )
    selected = "0 10 10 10 (13)\n20 10 10 10 (13)\n10 20 30 0 (13)\n"
    assert ended.stdout == selected + "cudaErrorInvalidValue cudaErrorInvalidValue\n", ended.stderr
    assert "no findings" in ended.stderr


def test_a_capture_gets_a_loop_whose_body_is_captured_to_its_graph(program):
    ended = program(
        CONDITIONS
        + """
int main() {
    int *x, *calls, *after, out[3], by = 4;
    CHECK(cudaMalloc(&x, 4));
    CHECK(cudaMalloc(&calls, 4));
    CHECK(cudaMalloc(&after, 4));
    cudaStream_t stream, inner;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&inner));
    cudaGraph_t graph, same;
    cudaGraphExec_t exec;
    cudaGraphNode_t loop;
    const cudaGraphNode_t *before;
    size_t count;
    cudaStreamCaptureStatus status;
    cudaGraphConditionalHandle handle;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    set<<<1, 1, 0, stream>>>(x, by);
    CHECK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &before, NULL, &count));
    printf("%d %zu ", (int)status, count);
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams condition = when(handle, cudaGraphCondTypeWhile, 1);
    CHECK(cudaGraphAddNode(&loop, graph, before, NULL, count, &condition));
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &loop, NULL, 1, cudaStreamSetCaptureDependencies));
    set<<<1, 1, 0, stream>>>(after, 7);
    CHECK(cudaStreamEndCapture(stream, &same));
    cudaGraph_t body = condition.conditional.phGraph_out[0];
    CHECK(cudaStreamBeginCaptureToGraph(inner, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
    count_down<<<1, 1, 0, inner>>>(x, calls, handle);
    CHECK(cudaStreamEndCapture(inner, nullptr));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaMemset(calls, 0, 4));
    for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(exec, stream));  // each begins with the default again
    CHECK(cudaMemcpy(&out[0], x, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&out[1], calls, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&out[2], after, 4, cudaMemcpyDeviceToHost));
    printf("%d, %d %d %d\\n", graph == same, out[0], out[1], out[2]);
}
"""
    )
    assert ended.stdout == "1 1 1, 0 8 7\n", ended.stderr
