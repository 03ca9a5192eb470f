// Runtime API for host code that is compiled for this CPU: each routine calls the simulator, which runs in the same
// process, with a routine name and 64-bit words.
#pragma once
#define __CUDA_RUNTIME_H__

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits.h>
#include <limits>
#include <math.h>
#include <new>
#include <stdlib.h>
#include <utility>

#include "driver_types.h"
#include "host_functions.h"
#include "host_lambdas.h"
#include "lockstep_host.h"

#define LOCKSTEP_ROUTINE(name, parameters, ...)                                                                        \
    static inline cudaError_t name parameters { return ::lockstep_host::ask(__VA_ARGS__); }
#define LOCKSTEP_CHECKED(name, parameters, is_valid, ...)                                                              \
    static inline cudaError_t name parameters { return ::lockstep_host::ask_if(is_valid, __VA_ARGS__); }

// Memory
#ifdef LOCKSTEP_THRUST  // Thrust's algorithms access device memory from the host
extern "C" inline __attribute__((used)) void lockstep_has_thrust() {}
LOCKSTEP_ROUTINE(cudaMalloc, (void **pointer, size_t bytes), "malloc_mapped", pointer, bytes, cudaMemAttachGlobal)
#else
LOCKSTEP_ROUTINE(cudaMalloc, (void **pointer, size_t bytes), "malloc", pointer, bytes)
#endif
LOCKSTEP_ROUTINE(cudaFree, (void *pointer), "free", pointer)
LOCKSTEP_ROUTINE(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream), "on_stream", stream, "malloc",
                 pointer, bytes)
LOCKSTEP_ROUTINE(cudaFreeAsync, (void *pointer, cudaStream_t stream), "on_stream", stream, "free", pointer)
LOCKSTEP_ROUTINE(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height), "malloc_pitch", pointer,
                 pitch, width, height)
LOCKSTEP_CHECKED(cudaMallocManaged, (void **pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal),
                 flags == cudaMemAttachGlobal || flags == cudaMemAttachHost, "malloc_mapped", pointer, bytes, 1)
LOCKSTEP_CHECKED(cudaMallocHost, (void **pointer, size_t bytes, unsigned flags = 0), flags < 8, "malloc_mapped",
                 pointer, bytes, 0)
LOCKSTEP_CHECKED(cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags = 0), flags < 8, "malloc_mapped", pointer,
                 bytes, 0)
LOCKSTEP_ROUTINE(cudaFreeHost, (void *pointer), "free_host", pointer)
LOCKSTEP_CHECKED(cudaHostRegister, (void *pointer, size_t bytes, unsigned flags), flags < 16, "host_register", pointer,
                 bytes)
LOCKSTEP_ROUTINE(cudaHostUnregister, (void *pointer), "host_unregister", pointer)
LOCKSTEP_ROUTINE(cudaHostGetDevicePointer, (void **device, void *host, unsigned), "host_device_pointer", device, host)
LOCKSTEP_ROUTINE(cudaMemGetInfo, (size_t *left, size_t *all), "mem_info", left, all)
LOCKSTEP_ROUTINE(cudaMemcpy, (void *target, const void *source, size_t bytes, cudaMemcpyKind kind), "memcpy", target,
                 source, bytes, kind)
LOCKSTEP_ROUTINE(cudaMemcpyAsync,
                 (void *target, const void *source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = 0),
                 "on_stream", stream, "memcpy", target, source, bytes, kind)
static inline cudaError_t cudaMemcpyPeerAsync(void *target, int target_device, const void *source, int source_device,
                                              size_t bytes, cudaStream_t stream = 0) {
    if (target_device || source_device) return ::lockstep_host::ask("set_device", target_device | source_device);
    return ::lockstep_host::ask("on_stream", stream, "memcpy", target, source, bytes, cudaMemcpyDeviceToDevice);
}
static inline cudaError_t cudaMemcpyPeer(void *target, int target_device, const void *source, int source_device,
                                         size_t bytes) {
    return cudaMemcpyPeerAsync(target, target_device, source, source_device, bytes);
}
LOCKSTEP_ROUTINE(cudaMemcpy2D,
                 (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                  size_t height, cudaMemcpyKind kind),
                 "memcpy_2d", target, target_pitch, source, source_pitch, width, height, kind)
LOCKSTEP_ROUTINE(cudaMemcpy2DAsync,
                 (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                  size_t height, cudaMemcpyKind kind, cudaStream_t stream = 0),
                 "on_stream", stream, "memcpy_2d", target, target_pitch, source, source_pitch, width, height, kind)
LOCKSTEP_ROUTINE(cudaMemset, (void *target, int value, size_t bytes), "memset", target, value, bytes)
LOCKSTEP_ROUTINE(cudaMemsetAsync, (void *target, int value, size_t bytes, cudaStream_t stream = 0), "on_stream", stream,
                 "memset", target, value, bytes)
LOCKSTEP_ROUTINE(cudaMemset2D, (void *target, size_t pitch, int value, size_t width, size_t height), "memset_2d",
                 target, pitch, value, width, height)
LOCKSTEP_ROUTINE(cudaMemset2DAsync,
                 (void *target, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream = 0),
                 "on_stream", stream, "memset_2d", target, pitch, value, width, height)
LOCKSTEP_ROUTINE(cudaMemPrefetchAsync, (const void *pointer, size_t, int, cudaStream_t stream = 0), "on_stream", stream,
                 "check_managed", pointer)
LOCKSTEP_ROUTINE(cudaMemPrefetchAsync,
                 (const void *pointer, size_t, cudaMemLocation, unsigned, cudaStream_t stream = 0), "on_stream", stream,
                 "check_managed", pointer)
LOCKSTEP_CHECKED(cudaMemAdvise, (const void *pointer, size_t, cudaMemoryAdvise advice, int),
                 ::lockstep_host::is_advice(advice), "check_managed", pointer)
LOCKSTEP_CHECKED(cudaMemAdvise, (const void *pointer, size_t, cudaMemoryAdvise advice, cudaMemLocation),
                 ::lockstep_host::is_advice(advice), "check_managed", pointer)
LOCKSTEP_ROUTINE(cudaStreamAttachMemAsync, (cudaStream_t, void *, size_t = 0, unsigned = 4), "nothing")

template <typename T>
static inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    return cudaMalloc((void **)pointer, bytes);
}
template <typename T>
static inline cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync((void **)pointer, bytes, stream);
}
template <typename T>
static inline cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height) {
    return cudaMallocPitch((void **)pointer, pitch, width, height);
}
template <typename T>
static inline cudaError_t cudaMallocManaged(T **pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal) {
    return cudaMallocManaged((void **)pointer, bytes, flags);
}
template <typename T>
static inline cudaError_t cudaMallocHost(T **pointer, size_t bytes, unsigned flags = 0) {
    return cudaMallocHost((void **)pointer, bytes, flags);
}
template <typename T>
static inline cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned flags = 0) {
    return cudaHostAlloc((void **)pointer, bytes, flags);
}
template <typename T>
static inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned flags) {
    return cudaHostGetDevicePointer((void **)device, host, flags);
}
static inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *pointer) {
    if (!found) return ::lockstep_host::ask("invalid_value");
    int type = 0;
    void *device = nullptr;
    cudaError_t error = ::lockstep_host::ask("pointer_attributes", pointer, &type, &device);
    found->type = (cudaMemoryType)type;
    found->device = 0;
    found->devicePointer = device;
    found->hostPointer = type == cudaMemoryTypeDevice ? nullptr : const_cast<void *>(pointer);
    return error;
}

// Device variables, identified by the addresses of their host counterparts
template <typename T>
static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *source, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return ::lockstep_host::ask("to_symbol", ::lockstep_host::symbol_of(symbol), source, bytes, offset, kind);
}
template <typename T>
static inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *source, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind, cudaStream_t stream = 0) {
    return ::lockstep_host::ask("on_stream", stream, "to_symbol", ::lockstep_host::symbol_of(symbol), source, bytes,
                                offset, kind);
}
template <typename T>
static inline cudaError_t cudaMemcpyFromSymbol(void *target, const T &symbol, size_t bytes, size_t offset = 0,
                                               cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return ::lockstep_host::ask("from_symbol", target, ::lockstep_host::symbol_of(symbol), bytes, offset, kind);
}
template <typename T>
static inline cudaError_t cudaMemcpyFromSymbolAsync(void *target, const T &symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind, cudaStream_t stream = 0) {
    return ::lockstep_host::ask("on_stream", stream, "from_symbol", target, ::lockstep_host::symbol_of(symbol), bytes,
                                offset, kind);
}
template <typename T>
static inline cudaError_t cudaGetSymbolAddress(void **pointer, const T &symbol) {
    return ::lockstep_host::ask("symbol_address", pointer, ::lockstep_host::symbol_of(symbol));
}
template <typename P, typename T>
static inline cudaError_t cudaGetSymbolAddress(P **pointer, const T &symbol) {
    return ::lockstep_host::ask("symbol_address", pointer, ::lockstep_host::symbol_of(symbol));
}
template <typename T>
static inline cudaError_t cudaGetSymbolSize(size_t *bytes, const T &symbol) {
    return ::lockstep_host::ask("symbol_size", bytes, ::lockstep_host::symbol_of(symbol));
}

// Devices
LOCKSTEP_ROUTINE(cudaGetDeviceCount, (int *count), "device_count", count)
LOCKSTEP_ROUTINE(cudaGetDevice, (int *device), "get_device", device)
LOCKSTEP_ROUTINE(cudaSetDevice, (int device), "set_device", device)
LOCKSTEP_ROUTINE(cudaChooseDevice, (int *device, const cudaDeviceProp *), "get_device", device)
LOCKSTEP_CHECKED(cudaSetDeviceFlags, (unsigned flags), flags < 256, "nothing")
LOCKSTEP_ROUTINE(cudaDeviceSynchronize, (), "synchronize")
LOCKSTEP_ROUTINE(cudaThreadSynchronize, (), "synchronize")
LOCKSTEP_ROUTINE(cudaDeviceReset, (), "reset")
LOCKSTEP_ROUTINE(cudaThreadExit, (), "reset")
LOCKSTEP_ROUTINE(cudaDeviceGetAttribute, (int *value, cudaDeviceAttr attribute, int device), "device_attribute", value,
                 attribute, device)
LOCKSTEP_CHECKED(cudaDeviceSetCacheConfig, (cudaFuncCache cache), (unsigned)cache <= cudaFuncCachePreferEqual,
                 "nothing")
LOCKSTEP_ROUTINE(cudaDeviceSetSharedMemConfig, (cudaSharedMemConfig), "nothing")
LOCKSTEP_CHECKED(cudaDeviceSetLimit, (cudaLimit limit, size_t), (unsigned)limit <= cudaLimitPersistingL2CacheSize,
                 "nothing")
LOCKSTEP_CHECKED(cudaDeviceGetLimit, (size_t *value, cudaLimit limit),
                 (unsigned)limit <= cudaLimitPersistingL2CacheSize, "get_limit", value, limit)
LOCKSTEP_ROUTINE(cudaDeviceCanAccessPeer, (int *can, int device, int peer), "no_peer", can, device, peer)
// There is no second device.
LOCKSTEP_ROUTINE(cudaDeviceGetP2PAttribute, (int *, cudaDeviceP2PAttr, int, int), "set_device", 1)
LOCKSTEP_ROUTINE(cudaDeviceEnablePeerAccess, (int peer, unsigned), "refuse_peer", peer)
LOCKSTEP_ROUTINE(cudaDeviceDisablePeerAccess, (int peer), "refuse_peer", peer)
LOCKSTEP_ROUTINE(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), "priorities", least, greatest)
LOCKSTEP_ROUTINE(cudaDriverGetVersion, (int *version), "version", version)
LOCKSTEP_ROUTINE(cudaRuntimeGetVersion, (int *version), "version", version)
LOCKSTEP_ROUTINE(cudaGetLastError, (), "last_error", 1)
LOCKSTEP_ROUTINE(cudaPeekAtLastError, (), "last_error", 0)
LOCKSTEP_ROUTINE(cudaProfilerStart, (), "nothing")
LOCKSTEP_ROUTINE(cudaProfilerStop, (), "nothing")

// The simulated device is on no bus.
static inline cudaError_t cudaDeviceGetPCIBusId(char *id, int room, int device) {
    if (!id || room < 13) return ::lockstep_host::ask("invalid_value");
    cudaError_t error = ::lockstep_host::ask("set_device", device);
    if (error == cudaSuccess) strcpy(id, "0000:00:00.0");
    return error;
}
static inline cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    bool is_known = device && id && !strcmp(id, "0000:00:00.0");
    return is_known ? cudaGetDevice(device) : ::lockstep_host::ask("invalid_value");
}

static inline const char *cudaGetErrorName(cudaError_t error) { return ::lockstep_host::text("error_name", error); }
static inline const char *cudaGetErrorString(cudaError_t error) { return ::lockstep_host::text("error_text", error); }

static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int device) {
    if (!found) return ::lockstep_host::ask("invalid_value");
    *found = cudaDeviceProp();
    cudaError_t error = ::lockstep_host::ask("device_name", found->name, sizeof found->name, device);
    if (error != cudaSuccess) return error;
    size_t left = 0;
    cudaMemGetInfo(&left, &found->totalGlobalMem);
    auto of = [&](int number) {
        int value = 0;
        ::lockstep_host::ask("device_attribute", &value, number, device);
        return value;
    };
    found->sharedMemPerBlock = of(8);
    found->regsPerBlock = of(12);
    found->warpSize = of(10);
    found->memPitch = of(11);
    found->maxThreadsPerBlock = of(1);
    for (int axis = 0; axis < 3; axis++)
        found->maxThreadsDim[axis] = of(2 + axis), found->maxGridSize[axis] = of(5 + axis);
    found->clockRate = of(13);
    found->totalConstMem = of(9);
    found->major = of(75);
    found->minor = of(76);
    found->textureAlignment = of(14);
    found->texturePitchAlignment = of(51);
    found->deviceOverlap = of(15);
    found->multiProcessorCount = of(16);
    found->canMapHostMemory = of(19);
    found->maxTexture1D = of(21);
    found->maxTexture2D[0] = of(22), found->maxTexture2D[1] = of(23);
    found->maxTexture3D[0] = of(24), found->maxTexture3D[1] = of(25), found->maxTexture3D[2] = of(26);
    for (int axis = 0; axis < 2; axis++) found->maxTexture1DLayered[axis] = of(42 + axis);
    for (int axis = 0; axis < 3; axis++) found->maxTexture2DLayered[axis] = of(27 + axis);
    found->concurrentKernels = of(31);
    found->asyncEngineCount = of(40);
    found->unifiedAddressing = of(41);
    found->memoryClockRate = of(36);
    found->memoryBusWidth = of(37);
    found->l2CacheSize = of(38);
    found->maxThreadsPerMultiProcessor = of(39);
    found->streamPrioritiesSupported = of(78);
    found->globalL1CacheSupported = of(79);
    found->localL1CacheSupported = of(80);
    found->sharedMemPerMultiprocessor = of(81);
    found->regsPerMultiprocessor = of(82);
    found->managedMemory = of(83);
    found->concurrentManagedAccess = of(89);
    found->computePreemptionSupported = of(90);
    found->cooperativeLaunch = 1;
    found->sharedMemPerBlockOptin = of(97);
    found->maxBlocksPerMultiProcessor = of(106);
    found->reservedSharedMemPerBlock = of(111);
    found->memoryPoolsSupported = of(115);
    return cudaSuccess;
}

// Streams and events
LOCKSTEP_ROUTINE(cudaStreamCreate, (cudaStream_t * stream), "stream_create", stream, 0)
LOCKSTEP_CHECKED(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), flags <= cudaStreamNonBlocking,
                 "stream_create", stream, flags)
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    cudaError_t error = cudaStreamCreateWithFlags(stream, flags);
    return error == cudaSuccess ? ::lockstep_host::ask("set_stream_priority", *stream, priority) : error;
}
LOCKSTEP_ROUTINE(cudaStreamGetPriority, (cudaStream_t stream, int *priority), "stream_priority", stream, priority)
LOCKSTEP_CHECKED(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), flags, "stream_flags", stream, flags)
LOCKSTEP_ROUTINE(cudaStreamSetAttribute, (cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue *), "nothing")
LOCKSTEP_ROUTINE(cudaCtxResetPersistingL2Cache, (), "nothing")
LOCKSTEP_ROUTINE(cudaStreamDestroy, (cudaStream_t stream), "stream_destroy", stream)
LOCKSTEP_ROUTINE(cudaStreamSynchronize, (cudaStream_t stream), "stream_synchronize", stream)
LOCKSTEP_ROUTINE(cudaStreamQuery, (cudaStream_t stream), "stream_query", stream)
LOCKSTEP_CHECKED(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags = 0), flags <= 1,
                 "wait_event", stream, event)
LOCKSTEP_ROUTINE(cudaEventCreate, (cudaEvent_t * event), "event_create", event)
LOCKSTEP_CHECKED(cudaEventCreate, (cudaEvent_t * event, unsigned flags), flags < 8, "event_create", event)
LOCKSTEP_CHECKED(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), flags < 8, "event_create", event)
LOCKSTEP_ROUTINE(cudaEventDestroy, (cudaEvent_t event), "event_destroy", event)
LOCKSTEP_ROUTINE(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream = 0), "event_record", event, stream)
LOCKSTEP_ROUTINE(cudaEventSynchronize, (cudaEvent_t event), "event_synchronize", event)
LOCKSTEP_ROUTINE(cudaEventQuery, (cudaEvent_t event), "event_query", event)
LOCKSTEP_ROUTINE(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t first, cudaEvent_t second), "event_elapsed",
                 milliseconds, first, second)
LOCKSTEP_CHECKED(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), function, "on_stream",
                 stream, "host_function", function, data)

static inline cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data,
                                                unsigned) {
    cudaError_t error = ::lockstep_host::ask_if(function, "stream_synchronize", stream);
    if (error == cudaSuccess) function(stream, cudaSuccess, data);
    return error;
}

// Launches and attributes of kernels. To identify a kernel, its host function is called, which stores its name.
static inline cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                           size_t shared_bytes = 0, cudaStream_t stream = 0,
                                           const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return ::lockstep_host::launch_by_address(kernel, grid, block, arguments, shared_bytes, stream, file, line);
}
template <typename... A>
static inline cudaError_t cudaLaunchKernel(void (*kernel)(A...), dim3 grid, dim3 block, void **arguments,
                                           size_t shared_bytes = 0, cudaStream_t stream = 0,
                                           const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return ::lockstep_host::launch_by_address((const void *)kernel, grid, block, arguments, shared_bytes, stream, file,
                                              line);
}
static inline cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                                      size_t shared_bytes = 0, cudaStream_t stream = 0,
                                                      const char *file = __builtin_FILE(),
                                                      int line = __builtin_LINE()) {
    unsigned long long blocks = 1ull * grid.x * grid.y * grid.z, threads = 1ull * block.x * block.y * block.z;
    if (blocks && threads && threads <= 1024) { // otherwise the launch reports the error
        cudaError_t error = ::lockstep_host::ask_of_kernel("check_cooperative", kernel, blocks, threads, shared_bytes);
        if (error != cudaSuccess) return error;
    }
    return ::lockstep_host::launch_by_address(kernel, grid, block, arguments, shared_bytes, stream, file, line);
}
template <typename... A>
static inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(A...), dim3 grid, dim3 block, void **arguments,
                                                      size_t shared_bytes = 0, cudaStream_t stream = 0,
                                                      const char *file = __builtin_FILE(),
                                                      int line = __builtin_LINE()) {
    return cudaLaunchCooperativeKernel((const void *)kernel, grid, block, arguments, shared_bytes, stream, file, line);
}
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments,
                                              const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (!config) return ::lockstep_host::ask("invalid_value");
    unsigned *cluster = ::lockstep_host::packed.cluster;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const auto &extents = config->attrs[i].val.clusterDim;
        if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
        cluster[0] = extents.x, cluster[1] = extents.y, cluster[2] = extents.z;
    }
    cudaError_t error = ::lockstep_host::launch_by_address(kernel, config->gridDim, config->blockDim, arguments,
                                                           config->dynamicSmemBytes, config->stream, file, line);
    cluster[0] = cluster[1] = cluster[2] = 0;
    return error;
}
// Arguments are converted to the kernel's parameter types. After a parameter pack there can be no default argument for
// the caller's line, so the line is this header's.
template <typename... A, typename... Given>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(A...), Given &&...given) {
    return [&](A... taken) {
        void *arguments[] = {(void *)__builtin_addressof(taken)..., nullptr};
        return cudaLaunchKernelExC(config, (const void *)kernel, arguments);
    }(static_cast<Given &&>(given)...);
}
template <typename T>
static inline cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute attribute, int value) {
    return ::lockstep_host::ask_of_kernel("set_kernel_attribute", (const void *)kernel, attribute, value);
}
template <typename T>
static inline cudaError_t cudaFuncSetCacheConfig(T *kernel, cudaFuncCache cache) {
    if ((unsigned)cache > cudaFuncCachePreferEqual) return ::lockstep_host::ask("invalid_value");
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 0);
}
template <typename T>
static inline cudaError_t cudaFuncSetSharedMemConfig(T *kernel, cudaSharedMemConfig) {
    return cudaSuccess;
}
template <typename T>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *found, T *kernel) {
    if (!found) return ::lockstep_host::ask("invalid_value");
    *found = cudaFuncAttributes();
    long long values[4] = {};
    cudaError_t error = ::lockstep_host::ask_of_kernel("kernel_attributes", (const void *)kernel, values);
    found->sharedSizeBytes = values[0];
    found->constSizeBytes = values[1];
    found->maxThreadsPerBlock = (int)values[2];
    found->maxDynamicSharedSizeBytes = (int)values[3];
    found->numRegs = 32;
    found->ptxVersion = found->binaryVersion = 90;
    return error;
}
template <typename T>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T kernel, int block_size,
                                                                        size_t shared_bytes) {
    return ::lockstep_host::ask_of_kernel("occupancy", (const void *)kernel, blocks, block_size, shared_bytes);
}
template <typename T>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, T kernel, int block_size,
                                                                                 size_t shared_bytes, unsigned) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, block_size, shared_bytes);
}
template <typename T>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T kernel, size_t shared_bytes = 0,
                                                             int limit = 0) {
    if (!grid || !block) return ::lockstep_host::ask("invalid_value");
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    int blocks = 0;
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, *block, shared_bytes);
    int processors = 0;
    ::lockstep_host::ask("device_attribute", &processors, 16, 0);
    *grid = blocks * processors;
    return error;
}
template <typename T>
static inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, T kernel, int blocks, int) {
    if (!bytes || blocks < 1) return ::lockstep_host::ask("invalid_value");
    long long values[4] = {};
    cudaError_t error = ::lockstep_host::ask_of_kernel("kernel_attributes", (const void *)kernel, values);
    int whole = 0, reserved = 0, most = 0;
    ::lockstep_host::ask("device_attribute", &whole, 81, 0);
    ::lockstep_host::ask("device_attribute", &reserved, 111, 0);
    ::lockstep_host::ask("device_attribute", &most, 97, 0);
    long long left = whole / blocks - reserved;
    left = (left < most ? left : most) - values[0];
    *bytes = left > 0 ? (size_t)left : 0;
    return error;
}
template <typename F, typename T>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, T kernel, F bytes,
                                                                         int limit = 0) {
    if (!grid || !block) return ::lockstep_host::ask("invalid_value");
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, (size_t)bytes(*block), limit);
}

#include "host_textures.h"
#include "host_pools.h"
#include "host_graphs.h"
