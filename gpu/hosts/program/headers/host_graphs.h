// CUDA graphs of host code: captured from streams or built node by node.
#pragma once

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess, cudaGraphExecUpdateError };
struct cudaGraphExecUpdateResultInfo {
    cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode, errorFromNode;
};
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};
struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
};
struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};

LOCKSTEP_CHECKED(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
                 (unsigned)mode <= cudaStreamCaptureModeRelaxed, "begin_capture", stream, mode)
LOCKSTEP_ROUTINE(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), "end_capture", stream, graph)
LOCKSTEP_ROUTINE(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus *status), "is_capturing", stream,
                 status)
enum { cudaStreamAddCaptureDependencies, cudaStreamSetCaptureDependencies };
LOCKSTEP_CHECKED(cudaStreamBeginCaptureToGraph,
                 (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *before, const cudaGraphEdgeData *,
                  size_t count, cudaStreamCaptureMode mode),
                 (unsigned)mode <= cudaStreamCaptureModeRelaxed, "begin_capture_to_graph", stream, graph, before, count,
                 mode)
LOCKSTEP_CHECKED(cudaStreamGetCaptureInfo,
                 (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id = nullptr,
                  cudaGraph_t *graph = nullptr, const cudaGraphNode_t **before = nullptr,
                  const cudaGraphEdgeData **edges = nullptr, size_t *count = nullptr),
                 status && !edges, "capture_info", stream, status, id, graph, before, count)
LOCKSTEP_CHECKED(cudaStreamUpdateCaptureDependencies,
                 (cudaStream_t stream, cudaGraphNode_t *before, const cudaGraphEdgeData *, size_t count,
                  unsigned flags = cudaStreamAddCaptureDependencies),
                 flags <= cudaStreamSetCaptureDependencies, "update_capture", stream, before, count, flags)

LOCKSTEP_ROUTINE(cudaGraphCreate, (cudaGraph_t * graph, unsigned), "graph_create", graph)
LOCKSTEP_ROUTINE(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), "graph_clone", clone, graph)
LOCKSTEP_ROUTINE(cudaGraphDestroy, (cudaGraph_t graph), "graph_destroy", graph)
LOCKSTEP_ROUTINE(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count), "graph_nodes", graph,
                 nodes, count)

enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel,
    cudaGraphNodeTypeMemcpy,
    cudaGraphNodeTypeMemset,
    cudaGraphNodeTypeHost,
    cudaGraphNodeTypeGraph,
    cudaGraphNodeTypeEmpty,
    cudaGraphNodeTypeMemAlloc = 10,
    cudaGraphNodeTypeMemFree,
    cudaGraphNodeTypeConditional = 13
};
LOCKSTEP_CHECKED(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType *type), type, "graph_node_type", node,
                 type)

// Parameters: the new node, its graph, and its dependencies.
#define LOCKSTEP_NODE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count
#define LOCKSTEP_ADDED "graph_add", node, graph, before, count

LOCKSTEP_ROUTINE(cudaGraphAddEmptyNode, (LOCKSTEP_NODE), LOCKSTEP_ADDED, "nothing")
LOCKSTEP_ROUTINE(cudaGraphAddChildGraphNode, (LOCKSTEP_NODE, cudaGraph_t child), "graph_add_graph", node, graph, before,
                 count, child)
static inline cudaError_t cudaGraphAddHostNode(LOCKSTEP_NODE, const cudaHostNodeParams *how) {
    if (!how || !how->fn) return ::lockstep_host::ask("invalid_value");
    return ::lockstep_host::ask(LOCKSTEP_ADDED, "host_function", how->fn, how->userData);
}
static inline cudaError_t cudaGraphAddMemsetNode(LOCKSTEP_NODE, const cudaMemsetParams *how) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    return ::lockstep_host::ask(LOCKSTEP_ADDED, "memset_elements", how->dst, how->pitch, how->value, how->elementSize,
                                how->width, how->height);
}
LOCKSTEP_ROUTINE(cudaGraphAddMemcpyNode1D,
                 (LOCKSTEP_NODE, void *target, const void *source, size_t bytes, cudaMemcpyKind kind), LOCKSTEP_ADDED,
                 "memcpy", target, source, bytes, kind)
static inline cudaError_t cudaGraphAddMemcpyNode(LOCKSTEP_NODE, const cudaMemcpy3DParms *how) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    return ::lockstep_host::ask(LOCKSTEP_ADDED, "host_function", &lockstep_copy, new cudaMemcpy3DParms(*how));
}
static inline cudaError_t cudaGraphAddKernelNode(LOCKSTEP_NODE, const cudaKernelNodeParams *how,
                                                 const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    return ::lockstep_host::launch_address_into(how->func, how->gridDim, how->blockDim, how->kernelParams,
                                                how->sharedMemBytes, file, line, LOCKSTEP_ADDED);
}
LOCKSTEP_ROUTINE(cudaGraphAddDependencies,
                 (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const void *,
                  size_t count),
                 "graph_depend", graph, from, to, count)
LOCKSTEP_ROUTINE(cudaGraphAddDependencies,
                 (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),
                 "graph_depend", graph, from, to, count)

LOCKSTEP_ROUTINE(cudaGraphInstantiate, (cudaGraphExec_t * fit, cudaGraph_t graph, unsigned long long = 0),
                 "graph_instantiate", fit, graph)
LOCKSTEP_ROUTINE(cudaGraphInstantiate, (cudaGraphExec_t * fit, cudaGraph_t graph, cudaGraphNode_t *, char *, size_t),
                 "graph_instantiate", fit, graph)
LOCKSTEP_ROUTINE(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * fit, cudaGraph_t graph, unsigned long long = 0),
                 "graph_instantiate", fit, graph)
LOCKSTEP_ROUTINE(cudaGraphUpload, (cudaGraphExec_t, cudaStream_t), "nothing")
LOCKSTEP_ROUTINE(cudaGraphLaunch, (cudaGraphExec_t fit, cudaStream_t stream), "on_stream", stream, "graph_launch", fit)
LOCKSTEP_ROUTINE(cudaGraphExecDestroy, (cudaGraphExec_t fit), "executable_destroy", fit)
static inline cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t fit, cudaGraphNode_t node,
                                                           const cudaKernelNodeParams *how,
                                                           const char *file = __builtin_FILE(),
                                                           int line = __builtin_LINE()) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    return ::lockstep_host::launch_address_into(how->func, how->gridDim, how->blockDim, how->kernelParams,
                                                how->sharedMemBytes, file, line, "executable_set", fit, node);
}
static inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t fit, cudaGraph_t graph,
                                              cudaGraphExecUpdateResultInfo *found) {
    if (!found) return ::lockstep_host::ask("invalid_value");
    cudaError_t error = ::lockstep_host::ask("executable_update", fit, graph);
    *found = {error ? cudaGraphExecUpdateError : cudaGraphExecUpdateSuccess, nullptr, nullptr};
    return error;
}
static inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t fit, cudaGraph_t graph, cudaGraphNode_t *node,
                                              cudaGraphExecUpdateResult *result) {
    cudaGraphExecUpdateResultInfo found;
    cudaError_t error = cudaGraphExecUpdate(fit, graph, &found);
    if (node) *node = found.errorNode;
    if (result) *result = found.result;
    return error;
}

// Memory of graphs: allocated when the node is created, and kept, so that its address is the same in each launch.
struct cudaMemAllocNodeParams {
    cudaMemPoolProps poolProps;
    const cudaMemAccessDesc *accessDescs;
    size_t accessDescCount, bytesize;
    void *dptr;
};
enum cudaGraphMemAttributeType {
    cudaGraphMemAttrUsedMemCurrent,
    cudaGraphMemAttrUsedMemHigh,
    cudaGraphMemAttrReservedMemCurrent,
    cudaGraphMemAttrReservedMemHigh
};
static inline cudaError_t cudaGraphAddMemAllocNode(LOCKSTEP_NODE, cudaMemAllocNodeParams *how) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    cudaError_t error = ::lockstep_host::ask("graph_allocate", &how->dptr, how->bytesize);
    return error ? error : ::lockstep_host::ask(LOCKSTEP_ADDED, "nothing");
}
static inline cudaError_t cudaGraphAddMemFreeNode(LOCKSTEP_NODE, void *pointer) {
    cudaError_t error = ::lockstep_host::ask("check_graph_memory", pointer);
    return error ? error : ::lockstep_host::ask(LOCKSTEP_ADDED, "nothing");
}
LOCKSTEP_ROUTINE(cudaDeviceGetGraphMemAttribute, (int device, cudaGraphMemAttributeType, void *bytes),
                 "graph_memory_bytes", device, bytes)
LOCKSTEP_ROUTINE(cudaDeviceSetGraphMemAttribute, (int device, cudaGraphMemAttributeType, void *), "set_device", device)
LOCKSTEP_ROUTINE(cudaDeviceGraphMemTrim, (int device), "set_device", device)

// Conditional nodes: the condition is a number in device memory, and the handle is its address.
typedef unsigned long long cudaGraphConditionalHandle;
enum { cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalNodeType type;
    unsigned size;
    cudaGraph_t *phGraph_out;
};
LOCKSTEP_CHECKED(cudaGraphConditionalHandleCreate,
                 (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned value = 0, unsigned flags = 0),
                 handle &&flags <= cudaGraphCondAssignDefault, "condition_create", handle, graph, value, flags)

// Parameters of any node. CUDA's are a union.
struct cudaGraphNodeParams {
    cudaGraphNodeType type;
    int reserved0[3];
    cudaKernelNodeParams kernel;
    struct {
        int flags, reserved[3];
        cudaMemcpy3DParms copyParams;
    } memcpy;
    cudaMemsetParams memset;
    cudaHostNodeParams host;
    struct {
        cudaGraph_t graph;
    } graph;
    cudaMemAllocNodeParams alloc;
    struct {
        void *dptr;
    } free;
    cudaConditionalNodeParams conditional;
};
static inline cudaError_t cudaGraphAddNode(LOCKSTEP_NODE, cudaGraphNodeParams *how, const char *file = __builtin_FILE(),
                                           int line = __builtin_LINE()) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    switch (how->type) {
        case cudaGraphNodeTypeKernel:
            return cudaGraphAddKernelNode(node, graph, before, count, &how->kernel, file, line);
        case cudaGraphNodeTypeMemcpy:
            return cudaGraphAddMemcpyNode(node, graph, before, count, &how->memcpy.copyParams);
        case cudaGraphNodeTypeMemset:
            return cudaGraphAddMemsetNode(node, graph, before, count, &how->memset);
        case cudaGraphNodeTypeHost:
            return cudaGraphAddHostNode(node, graph, before, count, &how->host);
        case cudaGraphNodeTypeGraph:
            return cudaGraphAddChildGraphNode(node, graph, before, count, how->graph.graph);
        case cudaGraphNodeTypeEmpty:
            return cudaGraphAddEmptyNode(node, graph, before, count);
        case cudaGraphNodeTypeMemAlloc:
            return cudaGraphAddMemAllocNode(node, graph, before, count, &how->alloc);
        case cudaGraphNodeTypeMemFree:
            return cudaGraphAddMemFreeNode(node, graph, before, count, how->free.dptr);
        case cudaGraphNodeTypeConditional: {
            cudaConditionalNodeParams &condition = how->conditional;
            const unsigned most[] = {2, 1, 1 << 16};
            if ((unsigned)condition.type > cudaGraphCondTypeSwitch || condition.size - 1 >= most[condition.type])
                return ::lockstep_host::ask("invalid_value");
            condition.phGraph_out = new cudaGraph_t[condition.size]; // the program's until its end
            return ::lockstep_host::ask("graph_add_condition", node, graph, before, count, &condition);
        }
        default:
            return ::lockstep_host::ask("invalid_value");
    }
}
static inline cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                           const cudaGraphEdgeData *, size_t count, cudaGraphNodeParams *how,
                                           const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return cudaGraphAddNode(node, graph, before, count, how, file, line);
}
