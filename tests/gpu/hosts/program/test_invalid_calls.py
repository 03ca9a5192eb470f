"""Calls that CUDA answers with an error: null results, sizes beyond memory, and streams that were destroyed.

An H100 with CUDA 13.0 returned the errors of all calls with defined behavior, except those that name a function that is
no kernel: their error is from CUDA's documentation. Uses of destroyed streams and events are undefined there; here they
are errors.
"""

from __future__ import annotations

import pytest

STATE = """
struct State {
    char here[64] = {}, *memory, *managed, *first_managed; size_t pitch, many = (size_t)-1; float ms;
    cudaStream_t stream; cudaEvent_t first, second; cudaDeviceProp properties; int number; cudaArray_t array;
    cudaGraph_t graph; cudaPointerAttributes attributes; cudaFuncAttributes function; cudaGraphNode_t node;
    cudaStream_t other; cudaEvent_t dead; cudaExtent extent; cudaMemLocation place = {cudaMemLocationTypeDevice, 0};
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>(), odd = {7, 3, 0, 0, cudaChannelFormatKindFloat};
    cudaResourceDesc no_array = {}, no_format = {}; cudaTextureDesc sampling = {}; cudaTextureObject_t texture;
    State() {
        no_format.resType = cudaResourceTypeLinear;
        CHECK(cudaEventCreate(&dead)); CHECK(cudaEventDestroy(dead)); CHECK(cudaStreamCreate(&other));
        CHECK(cudaMallocArray(&array, &format, 4, 4)); CHECK(cudaGraphCreate(&graph, 0));
        CHECK(cudaMalloc(&memory, 64)); CHECK(cudaMallocManaged(&managed, 64)); first_managed = managed;
        CHECK(cudaEventCreate(&first)); CHECK(cudaEventCreate(&second));
        CHECK(cudaEventRecord(first)); CHECK(cudaEventRecord(second));
        CHECK(cudaStreamCreate(&stream)); CHECK(cudaStreamSynchronize(stream)); CHECK(cudaStreamDestroy(stream));
    }
    void finish(cudaError_t error) {
        printf("%s %s\\n", cudaGetErrorName(error), cudaGetErrorName(cudaGetLastError()));
        CHECK(cudaMemcpy(memory, here, 64, cudaMemcpyHostToDevice));
        CHECK(cudaMallocManaged(&managed, 64));
        nothing<<<1, 1>>>();
        CHECK(cudaDeviceSynchronize());
        cudaHostUnregister(here); cudaGetLastError();
        CHECK(cudaFree(first_managed)); CHECK(cudaFree(managed));
    }
};
"""
CALL = "struct Call%d : State { Call%d() { finish(%s); } };\n"
INVALID, MEMORY, HANDLE = "cudaErrorInvalidValue", "cudaErrorMemoryAllocation", "cudaErrorInvalidResourceHandle"
DEVICE, DIRECTION = "cudaErrorInvalidDevice", "cudaErrorInvalidMemcpyDirection"
CHANNELS, FUNCTION = "cudaErrorInvalidChannelDescriptor", "cudaErrorInvalidDeviceFunction"
CALLS = {
    "cudaMemcpy(memory, here, many, cudaMemcpyHostToDevice)": INVALID,
    "cudaMemcpy(here, memory, (size_t)-64, cudaMemcpyDeviceToHost)": INVALID,
    "cudaMemcpy(here, here, many, cudaMemcpyHostToHost)": INVALID,
    "cudaMemcpyAsync(memory, here, many, cudaMemcpyHostToDevice, 0)": INVALID,
    "cudaMemcpy2D(memory, 8, here, 8, 8, many, cudaMemcpyHostToDevice)": INVALID,
    "cudaMemcpy2D(memory, 8, here, 8, many, 1, cudaMemcpyHostToDevice)": INVALID,
    "cudaMemset(memory, 0, many)": INVALID,
    "cudaMemset2D(memory, 8, 0, 8, many)": INVALID,
    "cudaMemset2D(memory, 8, 0, many, 1)": INVALID,
    "cudaHostRegister(here, many, 0)": INVALID,
    "cudaHostRegister(nullptr, 8, 0)": INVALID,
    "cudaMalloc(&memory, many)": MEMORY,
    "cudaMallocPitch(&memory, &pitch, many, 1)": MEMORY,
    "cudaMallocPitch(&memory, &pitch, 1, many)": MEMORY,
    "cudaMallocManaged(&managed, many)": MEMORY,
    "cudaMallocManaged(&managed, (size_t)1 << 50)": MEMORY,
    "cudaMallocHost(&managed, many)": MEMORY,
    "cudaMalloc((void **)nullptr, 64)": INVALID,
    "cudaMallocManaged((void **)nullptr, 64)": INVALID,
    "cudaMallocPitch((void **)nullptr, &pitch, 64, 1)": INVALID,
    "cudaMallocPitch(&memory, nullptr, 64, 1)": INVALID,
    "cudaMallocArray(&array, nullptr, 4, 4)": INVALID,
    "cudaMemcpy3D(nullptr)": INVALID,
    "cudaMemGetInfo(nullptr, nullptr)": INVALID,
    "cudaGetDeviceCount(nullptr)": INVALID,
    "cudaGetDevice(nullptr)": INVALID,
    "cudaGetDeviceProperties(nullptr, 0)": INVALID,
    "cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0)": INVALID,
    "cudaPointerGetAttributes(nullptr, memory)": INVALID,
    "cudaFuncGetAttributes(nullptr, nothing)": INVALID,
    "cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1)": INVALID,
    "cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, -1)": INVALID,
    "cudaEventElapsedTime(nullptr, first, second)": INVALID,
    "cudaEventCreate(nullptr)": INVALID,
    "cudaStreamCreate(nullptr)": INVALID,
    "cudaGraphCreate(nullptr, 0)": INVALID,
    "cudaStreamDestroy(stream)": HANDLE,
    "cudaStreamSynchronize(stream)": HANDLE,
    "cudaStreamQuery(stream)": HANDLE,
    "cudaStreamWaitEvent(stream, first)": HANDLE,
    "cudaEventRecord(first, stream)": HANDLE,
    "cudaMemcpyAsync(memory, here, 8, cudaMemcpyHostToDevice, stream)": HANDLE,
    "cudaMemsetAsync(memory, 0, 8, stream)": HANDLE,
    "(nothing<<<1, 1, 0, stream>>>(), cudaPeekAtLastError())": HANDLE,
    "cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)": HANDLE,
    "cudaMemset2D(memory, 4, 0, 8, 2)": INVALID,
    "cudaHostAlloc((void **)&managed, 8, 999)": INVALID,
    "cudaMallocManaged(&managed, 8, 0)": INVALID,
    "cudaMallocManaged(&managed, 8, 77)": INVALID,
    "(cudaHostRegister(here, 64, 0), cudaHostRegister(here, 8, 0))": "cudaErrorHostMemoryAlreadyRegistered",
    "cudaHostRegister(here, 64, 999)": INVALID,
    "cudaHostUnregister(nullptr)": INVALID,
    "cudaEventRecord(nullptr)": HANDLE,
    "cudaEventRecord(dead)": HANDLE,
    "cudaEventDestroy(nullptr)": HANDLE,
    "cudaEventDestroy(dead)": HANDLE,
    "cudaEventSynchronize(nullptr)": HANDLE,
    "cudaEventQuery(dead)": HANDLE,
    "cudaEventElapsedTime(&ms, first, dead)": HANDLE,
    "cudaStreamWaitEvent(0, nullptr)": HANDLE,
    "cudaStreamWaitEvent(0, first, 99)": INVALID,
    "cudaStreamCreateWithFlags(&other, 99)": INVALID,
    "cudaEventCreateWithFlags(&dead, 999)": INVALID,
    "cudaLaunchHostFunc(0, nullptr, nullptr)": INVALID,
    "cudaStreamAddCallback(0, nullptr, nullptr, 0)": INVALID,
    "cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30)": INVALID,
    "cudaFuncSetAttribute(nothing, (cudaFuncAttribute)99, 1)": INVALID,
    "cudaFuncSetCacheConfig(nothing, (cudaFuncCache)99)": INVALID,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, nothing, -1, 0)": INVALID,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, nothing, 0, 0)": INVALID,
    "cudaOccupancyMaxPotentialBlockSize((int *)nullptr, &number, nothing)": INVALID,
    "cudaOccupancyMaxPotentialBlockSize(&number, (int *)nullptr, nothing)": INVALID,
    "cudaMemcpyToSymbol(variable, here, 4, 0, cudaMemcpyDeviceToHost)": DIRECTION,
    "cudaMemcpyFromSymbol(here, variable, 4, 0, cudaMemcpyHostToDevice)": DIRECTION,
    "cudaMallocArray(&array, &odd, 4, 4)": CHANNELS,
    "cudaGetChannelDesc(nullptr, array)": INVALID,
    "cudaCreateTextureObject(&texture, &no_format, &sampling, nullptr)": CHANNELS,
    "cudaCreateTextureObject(&texture, &no_array, &sampling, nullptr)": HANDLE,
    "cudaCreateSurfaceObject(nullptr, &no_array)": INVALID,
    "cudaGraphAddHostNode(&node, graph, nullptr, 0, nullptr)": INVALID,
    "cudaGraphAddMemsetNode(&node, graph, nullptr, 0, nullptr)": INVALID,
    "cudaGraphAddKernelNode(&node, graph, nullptr, 0, nullptr)": INVALID,
    "cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr)": INVALID,
    "cudaStreamEndCapture(other, nullptr)": "cudaErrorIllegalState",
    "cudaStreamBeginCapture(other, (cudaStreamCaptureMode)9)": INVALID,
    "cudaDeviceGetLimit(&pitch, (cudaLimit)99)": INVALID,
    "cudaDeviceSetLimit((cudaLimit)99, 1)": INVALID,
    "cudaDeviceCanAccessPeer(&number, 0, 55)": DEVICE,
    "cudaDeviceEnablePeerAccess(0, 0)": "cudaErrorPeerAccessUnsupported",
    "cudaDeviceEnablePeerAccess(55, 0)": DEVICE,
    "cudaMemcpyPeer(memory, 7, memory, 0, 8)": DEVICE,
    "cudaLaunchKernel((const void *)nullptr, 1, 1, nullptr, 0, 0)": FUNCTION,
    "cudaFuncGetAttributes(&function, (const void *)nullptr)": FUNCTION,
    "cudaLaunchKernel((const void *)host_only, 1, 1, nullptr, 0, 0)": FUNCTION,
    "cudaLaunchKernel((const void *)&number, 1, 1, nullptr, 0, 0)": FUNCTION,
    "cudaLaunchKernel((const void *)getenv, 1, 1, nullptr, 0, 0)": FUNCTION,
    "cudaLaunchKernel((const void *)8, 1, 1, nullptr, 0, 0)": FUNCTION,
    "cudaLaunchCooperativeKernel((const void *)host_only, 1, 1, nullptr, 0, 0)": FUNCTION,
    "cudaFuncGetAttributes(&function, host_only)": FUNCTION,
    "cudaFuncSetAttribute(host_only, cudaFuncAttributePreferredSharedMemoryCarveout, 1)": FUNCTION,
    "cudaFuncSetCacheConfig(host_only, cudaFuncCachePreferL1)": FUNCTION,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, host_only, 32, 0)": FUNCTION,
    "cudaSetDeviceFlags(0xffff)": INVALID,
    "cudaDeviceSetCacheConfig((cudaFuncCache)99)": INVALID,
    "cudaMemPrefetchAsync(here, 8, place, 0)": INVALID,
    "cudaMemPrefetchAsync(first_managed, 8, place, 0, stream)": HANDLE,
    "cudaMemAdvise(here, 8, cudaMemAdviseSetReadMostly, place)": INVALID,
    "cudaMemAdvise(first_managed, 8, (cudaMemoryAdvise)77, place)": INVALID,
}
HOST_ONLY = "void host_only() { abort(); }\n"
ACCEPTED = (
    "cudaMemset(nullptr, 0, 0)",
    "cudaMemGetInfo(&pitch, nullptr)",
    "cudaFree(nullptr)",
    "cudaFreeArray(nullptr)",
    "cudaDestroyTextureObject(0)",
    "cudaDestroySurfaceObject(0)",
    "cudaDeviceGetStreamPriorityRange(nullptr, nullptr)",
    "cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024)",
    "cudaMemAdvise(first_managed, 8, cudaMemAdviseSetReadMostly, place)",
    "cudaMemPrefetchAsync(first_managed, 64, place, 0, other)",
    "cudaEventCreateWithFlags(&dead, cudaEventDisableTiming | cudaEventBlockingSync)",
)
"""Calls with null or zero that succeed."""


def test_a_call_that_cuda_refuses_returns_its_error(program):
    """One program makes all calls: each returns its own error, and leaves a device that works for the next."""
    expected = CALLS | dict.fromkeys(ACCEPTED, "cudaSuccess")
    calls = "".join(CALL % (number, number, call) for number, call in enumerate(expected))
    main = "".join(f"    Call{number}();\n" for number in range(len(expected)))
    ended = program(
        f"__global__ void nothing() {{}}\n{HOST_ONLY}__device__ int variable;\n{STATE}{calls}int main() {{\n{main}}}\n"
    )
    assert ended.code == 0, ended.stderr
    assert dict(zip(expected, ended.stdout.splitlines(), strict=True)) == {
        call: f"{error} {error}" for call, error in expected.items()
    }


def test_an_allocation_that_fails_leaves_room_for_others(program):
    ended = program(
        """
        int main() {
            void *p;
            for (int i = 0; i < 100; i++)
                if (cudaMallocManaged(&p, (size_t)1 << 45) != cudaErrorMemoryAllocation) return 1;
            for (int i = 0; i < 70; i++)
                if (cudaMallocManaged(&p, 1 << 12) != cudaSuccess) return 2;
        }
        """
    )
    assert ended.code == 0, ended.stderr


@pytest.mark.parametrize("option", [(), ("--fast",)])
def test_thousands_of_managed_allocations_are_distinct_and_usable_together(program, option):
    ended = program(
        """
        struct Node { int value; Node *next; };
        __global__ void sum(Node *node, int *out) { for (*out = 0; node; node = node->next) *out += node->value; }
        __global__ void gather(Node **nodes, int *out) {
            Node *own = nodes[threadIdx.x * 31];
            atomicAdd(out, own->value + (own->next ? own->next->value : 0));
        }
        int main() {
            Node *nodes[2000], *first = nullptr, **shared; int *out;
            CHECK(cudaMallocManaged(&out, 4)); CHECK(cudaMallocManaged(&shared, sizeof nodes));
            for (int i = 0; i < 2000; i++) {
                CHECK(cudaMallocManaged(&nodes[i], sizeof(Node)));
                *nodes[i] = {i, first}, first = nodes[i];
                shared[i] = first;
            }
            sum<<<1, 1>>>(first, out);
            CHECK(cudaDeviceSynchronize());
            printf("%d ", *out), *out = 0;
            gather<<<1, 64>>>(shared, out);
            CHECK(cudaDeviceSynchronize());
            printf("%d\\n", *out);
            for (Node *node : nodes) CHECK(cudaFree(node));
        }
        """,
        *option,
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout == f"{sum(range(2000))} {sum(2 * 31 * lane - (lane > 0) for lane in range(64))}\n"


def test_a_managed_allocation_larger_than_a_slot_is_one_memory(program):
    ended = program(
        """
        __global__ void fill(char *data, size_t bytes) {
            for (size_t i = threadIdx.x; i < 8; i += 32) data[i * (bytes / 8)] = 1 + i;
            if (threadIdx.x == 31) data[bytes - 1] = 9;
        }
        __global__ void outside(char *data, size_t index) { data[index] = 1; }
        int main() {
            size_t bytes = ((size_t)3 << 30) / 2, total = 0;
            char *data, *next;
            CHECK(cudaMallocManaged(&data, bytes)); CHECK(cudaMallocManaged(&next, 64));
            fill<<<1, 32>>>(data, bytes);
            CHECK(cudaDeviceSynchronize());
            for (size_t i = 0; i < 8; i++) total += data[i * (bytes / 8)];
            printf("%d %d ", (int)total, data[bytes - 1]);
            cudaPointerAttributes attributes;
            CHECK(cudaPointerGetAttributes(&attributes, data + bytes - 1));
            printf("%d ", attributes.type == cudaMemoryTypeManaged);
            outside<<<1, 1>>>(data, bytes);
            printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
        }
        """
    )
    assert ended.stdout == "36 9 1 cudaErrorIllegalAddress\n", ended.stderr
