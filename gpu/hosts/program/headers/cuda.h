// The part of the driver API that loads and launches kernels of modules; its other routines call the runtime API, whose
// error numbers, streams and events are the same.
#pragma once
#define __cuda_cuda_h__  // code tests for the include guard of CUDA's header
#include "cuda_runtime.h"

#define CUDA_VERSION 13000
#define CUDAAPI
#define CUDA_CB

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_SOURCE = 300,
    CUDA_ERROR_FILE_NOT_FOUND = 301,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;

struct CUmod_st {
    int unit;
};
struct CUfunc_st {
    int unit;
    char name[1024];  // in the simulator
};
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUjit_option;
struct CUctxCreateParams {
    void *execAffinityParams;
    int numExecAffinityParams;
    void *cigParams;
};
typedef cudaUUID_t CUuuid;

enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
    CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH = 21,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH = 22,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT = 23,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH = 24,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT = 25,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH = 26,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29,
    CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT = 30,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED = 90,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED = 107
};
enum { CU_COMPUTEMODE_DEFAULT = 0, CU_COMPUTEMODE_PROHIBITED = 2, CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3 };
enum { CU_CTX_SCHED_AUTO = 0, CU_CTX_SCHED_SPIN = 1, CU_CTX_SCHED_YIELD = 2, CU_CTX_SCHED_BLOCKING_SYNC = 4 };
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum {
    CU_JIT_MAX_REGISTERS,
    CU_JIT_THREADS_PER_BLOCK,
    CU_JIT_WALL_TIME,
    CU_JIT_INFO_LOG_BUFFER,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
    CU_JIT_ERROR_LOG_BUFFER,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    CU_JIT_OPTIMIZATION_LEVEL,
    CU_JIT_TARGET = 9,
    CU_JIT_LOG_VERBOSE = 12
};
enum CUfunction_attribute_enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};
typedef int CUfunction_attribute;
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

#define LOCKSTEP_DRIVER(name, parameters, ...)                                                                         \
    static inline CUresult name parameters { return (CUresult)(__VA_ARGS__); }

// Devices and contexts: there is one of each.
LOCKSTEP_DRIVER(cuInit, (unsigned), 0)
LOCKSTEP_DRIVER(cuDriverGetVersion, (int *version), cudaDriverGetVersion(version))
LOCKSTEP_DRIVER(cuDeviceGetCount, (int *count), cudaGetDeviceCount(count))
LOCKSTEP_DRIVER(cuDeviceGet, (CUdevice * device, int ordinal), (*device = ordinal, cudaSetDevice(ordinal)))
LOCKSTEP_DRIVER(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device),
                cudaDeviceGetAttribute(value, (cudaDeviceAttr)attribute, device))
LOCKSTEP_DRIVER(cuDeviceTotalMem, (size_t *bytes, CUdevice), cudaMemGetInfo(nullptr, bytes))
static inline CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) snprintf(name, size, "%s", properties.name);
    return (CUresult)error;
}
static inline CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    return cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
}
static inline CUresult __lockstep_context(CUcontext *context, CUdevice device) {
    if (context) *context = (CUcontext)0x1;
    return (CUresult)cudaSetDevice(device);
}
LOCKSTEP_DRIVER(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer),
                cudaDeviceCanAccessPeer(can, device, peer))
LOCKSTEP_DRIVER(cuCtxEnablePeerAccess, (CUcontext, unsigned), cudaDeviceEnablePeerAccess(0, 0))
LOCKSTEP_DRIVER(cuCtxCreate, (CUcontext * context, unsigned, CUdevice device), __lockstep_context(context, device))
LOCKSTEP_DRIVER(cuCtxCreate, (CUcontext * context, CUctxCreateParams *, unsigned, CUdevice device),
                __lockstep_context(context, device))
LOCKSTEP_DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), __lockstep_context(context, device))
LOCKSTEP_DRIVER(cuDevicePrimaryCtxRelease, (CUdevice device), cudaSetDevice(device))
LOCKSTEP_DRIVER(cuCtxGetCurrent, (CUcontext * context), __lockstep_context(context, 0))
LOCKSTEP_DRIVER(cuCtxGetDevice, (CUdevice * device), cudaGetDevice(device))
LOCKSTEP_DRIVER(cuCtxSetCurrent, (CUcontext), 0)
LOCKSTEP_DRIVER(cuCtxPushCurrent, (CUcontext), 0)
LOCKSTEP_DRIVER(cuCtxPopCurrent, (CUcontext * context), __lockstep_context(context, 0))
LOCKSTEP_DRIVER(cuCtxDestroy, (CUcontext), cudaDeviceSynchronize())
LOCKSTEP_DRIVER(cuCtxDetach, (CUcontext), cudaDeviceSynchronize())
LOCKSTEP_DRIVER(cuCtxSynchronize, (), cudaDeviceSynchronize())
LOCKSTEP_DRIVER(cuGetErrorName, (CUresult error, const char **text), (*text = cudaGetErrorName((cudaError_t)error), 0))
LOCKSTEP_DRIVER(cuGetErrorString, (CUresult error, const char **text),
                (*text = cudaGetErrorString((cudaError_t)error), 0))

// Memory
LOCKSTEP_DRIVER(cuMemAlloc, (CUdeviceptr * pointer, size_t bytes), cudaMalloc((void **)pointer, bytes))
LOCKSTEP_DRIVER(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags),
                cudaMallocManaged((void **)pointer, bytes, flags))
LOCKSTEP_DRIVER(cuMemFree, (CUdeviceptr pointer), cudaFree((void *)pointer))
LOCKSTEP_DRIVER(cuMemAllocHost, (void **pointer, size_t bytes), cudaMallocHost(pointer, bytes))
LOCKSTEP_DRIVER(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags), cudaHostAlloc(pointer, bytes, flags))
LOCKSTEP_DRIVER(cuMemFreeHost, (void *pointer), cudaFreeHost(pointer))
LOCKSTEP_DRIVER(cuMemGetInfo, (size_t *left, size_t *all), cudaMemGetInfo(left, all))
LOCKSTEP_DRIVER(cuMemcpy, (CUdeviceptr target, CUdeviceptr source, size_t bytes),
                cudaMemcpy((void *)target, (void *)source, bytes, cudaMemcpyDefault))
LOCKSTEP_DRIVER(cuMemcpyHtoD, (CUdeviceptr target, const void *source, size_t bytes),
                cudaMemcpy((void *)target, source, bytes, cudaMemcpyHostToDevice))
LOCKSTEP_DRIVER(cuMemcpyDtoH, (void *target, CUdeviceptr source, size_t bytes),
                cudaMemcpy(target, (void *)source, bytes, cudaMemcpyDeviceToHost))
LOCKSTEP_DRIVER(cuMemcpyDtoD, (CUdeviceptr target, CUdeviceptr source, size_t bytes),
                cudaMemcpy((void *)target, (void *)source, bytes, cudaMemcpyDeviceToDevice))
LOCKSTEP_DRIVER(cuMemcpyHtoDAsync, (CUdeviceptr target, const void *source, size_t bytes, CUstream stream),
                cudaMemcpyAsync((void *)target, source, bytes, cudaMemcpyHostToDevice, stream))
LOCKSTEP_DRIVER(cuMemcpyDtoHAsync, (void *target, CUdeviceptr source, size_t bytes, CUstream stream),
                cudaMemcpyAsync(target, (void *)source, bytes, cudaMemcpyDeviceToHost, stream))
LOCKSTEP_DRIVER(cuMemsetD8, (CUdeviceptr target, unsigned char value, size_t count),
                cudaMemset((void *)target, value, count))
LOCKSTEP_DRIVER(cuMemsetD16, (CUdeviceptr target, unsigned short value, size_t count),
                ::lockstep_host::ask("memset_elements", target, 0, value, 2, count, 1))
LOCKSTEP_DRIVER(cuMemsetD32, (CUdeviceptr target, unsigned value, size_t count),
                ::lockstep_host::ask("memset_elements", target, 0, value, 4, count, 1))

// Streams and events
LOCKSTEP_DRIVER(cuStreamCreate, (CUstream * stream, unsigned flags), cudaStreamCreateWithFlags(stream, flags))
LOCKSTEP_DRIVER(cuStreamDestroy, (CUstream stream), cudaStreamDestroy(stream))
LOCKSTEP_DRIVER(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream))
LOCKSTEP_DRIVER(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
                cudaStreamWaitEvent(stream, event, flags))
LOCKSTEP_DRIVER(cuEventCreate, (CUevent * event, unsigned flags), cudaEventCreateWithFlags(event, flags))
LOCKSTEP_DRIVER(cuEventDestroy, (CUevent event), cudaEventDestroy(event))
LOCKSTEP_DRIVER(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord(event, stream))
LOCKSTEP_DRIVER(cuEventSynchronize, (CUevent event), cudaEventSynchronize(event))
LOCKSTEP_DRIVER(cuEventElapsedTime, (float *milliseconds, CUevent first, CUevent second),
                cudaEventElapsedTime(milliseconds, first, second))

// Modules: the simulator compiles the source of a file of PTX or machine code.
static inline CUresult __lockstep_module(CUmodule *module, const char *routine, const void *image) {
    if (!module || !image) return (CUresult)::lockstep_host::ask("invalid_value");
    int unit = 0;
    CUresult error = (CUresult)::lockstep_host::ask(routine, &unit, image);
    *module = error == CUDA_SUCCESS ? new CUmod_st{unit} : nullptr;
    return error;
}
LOCKSTEP_DRIVER(cuModuleLoad, (CUmodule * module, const char *path), __lockstep_module(module, "module_load", path))
LOCKSTEP_DRIVER(cuModuleLoadData, (CUmodule * module, const void *image),
                __lockstep_module(module, "module_load_data", image))
LOCKSTEP_DRIVER(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned, CUjit_option *, void **),
                __lockstep_module(module, "module_load_data", image))
LOCKSTEP_DRIVER(cuModuleLoadFatBinary, (CUmodule * module, const void *image),
                __lockstep_module(module, "module_load_data", image))
LOCKSTEP_DRIVER(cuModuleUnload, (CUmodule module), (delete module, 0))
static inline CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    if (!function || !module || !name) return (CUresult)::lockstep_host::ask("invalid_value");
    CUfunc_st found = {module->unit, {}};
    CUresult error =
        (CUresult)::lockstep_host::ask("module_function", module->unit, name, found.name, sizeof found.name);
    *function = error == CUDA_SUCCESS ? new CUfunc_st(found) : nullptr;
    return error;
}
LOCKSTEP_DRIVER(cuModuleGetGlobal, (CUdeviceptr * pointer, size_t *bytes, CUmodule module, const char *name),
                ::lockstep_host::ask("module_variable", module->unit, name, pointer, bytes))
static inline CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                      CUstream stream, void **arguments, void **extra,
                                      const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (!function) return (CUresult)::lockstep_host::ask("invalid_value");
    void *data = nullptr;
    size_t size = 0;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) data = extra[1];
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
    }
    return (CUresult)::lockstep_host::ask("on_stream", stream, "launch", function->unit, 0, 0, function->name, grid_x,
                                          grid_y, grid_z, block_x, block_y, block_z, shared_bytes, data, size,
                                          data ? nullptr : arguments, file, line, 0, 0, 0);
}
static inline CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    long long values[4] = {};
    CUresult error = (CUresult)::lockstep_host::ask("kernel_attributes", function->unit, 0, 0, function->name, values);
    *value = (int)(attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? values[2]
                   : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES             ? values[0]
                   : attribute == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES              ? values[1]
                   : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? values[3]
                                                                                  : 0);
    return error;
}
LOCKSTEP_DRIVER(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
                ::lockstep_host::ask("set_kernel_attribute", function->unit, 0, 0, function->name, attribute, value))
LOCKSTEP_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor,
                (int *blocks, CUfunction function, int block_size, size_t shared_bytes),
                ::lockstep_host::ask("occupancy", function->unit, 0, 0, function->name, blocks, block_size,
                                     shared_bytes))
static inline CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                        size_t (*bytes_of_block)(int), size_t shared_bytes, int limit) {
    if (!grid || !block) return (CUresult)::lockstep_host::ask("invalid_value");
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    int blocks = 0, processors = 0;
    CUresult error = cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, function, *block, bytes_of_block ? bytes_of_block(*block) : shared_bytes);
    ::lockstep_host::ask("device_attribute", &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    *grid = blocks * processors;
    return error;
}

#include "driver_memory.h"
