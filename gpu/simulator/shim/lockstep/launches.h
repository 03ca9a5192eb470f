// Launches, of the host and of kernels. The executor runs child kernels in the order in which they are launched; a
// stream's number tells tail launches from others, and the race checker which launches are ordered.
#pragma once

typedef struct CUstream_st *cudaStream_t;
enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};

#define cudaStreamDefault 0u
#define cudaStreamNonBlocking 1u
#define cudaStreamTailLaunch ((cudaStream_t)0x3)
#define cudaStreamFireAndForget ((cudaStream_t)0x4)

extern "C" int cudaConfigureCall(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = 0);
extern "C" int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = 0);
LOCKSTEP_API void __lockstep_launch(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = 0);
LOCKSTEP_API void __lockstep_wait_for_children();
LOCKSTEP_API long long __lockstep_handle();

LOCKSTEP_API inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int) {
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    *stream = (cudaStream_t)((__lockstep_handle() << 16) + (thread + 0x10));
    return cudaSuccess;
}
LOCKSTEP_API inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
LOCKSTEP_API inline cudaError_t cudaDeviceSynchronize() {
    __lockstep_wait_for_children();
    return cudaSuccess;
}
LOCKSTEP_API inline cudaError_t cudaGetLastError() { return cudaSuccess; }
LOCKSTEP_API inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
LOCKSTEP_API inline const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaSuccess ? "cudaSuccess" : "cudaErrorInvalidValue";
}
LOCKSTEP_API inline const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "invalid argument";
}

// Conditions of a graph's nodes: the handle is the address of a number.
typedef unsigned long long cudaGraphConditionalHandle;
LOCKSTEP_API inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value) {
    atomicExch((unsigned int *)handle, value);
}
