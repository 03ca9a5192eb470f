"""Calls that CUDA answers with an error: null results, sizes beyond memory, and streams that were destroyed."""

from __future__ import annotations

CALL = """
void call_%d() {
    char here[64] = {}, *memory, *managed, *first_managed; size_t pitch, many = (size_t)-1; float ms;
    cudaStream_t stream; cudaEvent_t first, second; cudaDeviceProp properties; int number; cudaArray_t array;
    cudaGraph_t graph; cudaPointerAttributes attributes; cudaFuncAttributes function;
    CHECK(cudaMalloc(&memory, 64)); CHECK(cudaMallocManaged(&managed, 64)); first_managed = managed;
    CHECK(cudaEventCreate(&first)); CHECK(cudaEventCreate(&second));
    CHECK(cudaEventRecord(first)); CHECK(cudaEventRecord(second));
    CHECK(cudaStreamCreate(&stream)); CHECK(cudaStreamSynchronize(stream)); CHECK(cudaStreamDestroy(stream));
    cudaError_t error = %s;
    printf("%%s %%s\\n", cudaGetErrorName(error), cudaGetErrorName(cudaGetLastError()));
    CHECK(cudaMemcpy(memory, here, 64, cudaMemcpyHostToDevice));
    CHECK(cudaMallocManaged(&managed, 64));
    nothing<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(first_managed)); CHECK(cudaFree(managed));
}
"""
INVALID, MEMORY, HANDLE = "cudaErrorInvalidValue", "cudaErrorMemoryAllocation", "cudaErrorInvalidResourceHandle"
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
}


def test_a_call_that_cuda_refuses_returns_its_error(program):
    """One program makes all calls: each returns its own error, and leaves a device that works for the next."""
    calls = "".join(CALL % numbered for numbered in enumerate(CALLS))
    main = "".join(f"    call_{number}();\n" for number in range(len(CALLS)))
    ended = program(f"__global__ void nothing() {{}}\n{calls}int main() {{\n{main}}}\n")
    assert ended.code == 0, ended.stderr
    assert dict(zip(CALLS, ended.stdout.splitlines(), strict=True)) == {
        call: f"{error} {error}" for call, error in CALLS.items()
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
