"""Kernels of modules: the driver API, sources that NVRTC compiles, and PTX with its source beside it."""

from __future__ import annotations

import struct

HEAD = """
#include <cuda.h>
#include <nvrtc.h>
#ifndef __cuda_cuda_h__
#error code tests for the include guard of CUDA's header
#endif
#include <string>
#include <vector>
#define DRIVER(call) do { \\
    CUresult result = (call); \\
    if (result != CUDA_SUCCESS) { \\
        const char *name; cuGetErrorName(result, &name); \\
        printf("%s\\n", name); \\
    } \\
} while (0)
"""
SCALE = """
__constant__ int offset;
template <typename T> __global__ void scale(T *values, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = values[i] * factor + OFFSET + offset;
}
extern "C" __global__ void add(int *values) { values[blockIdx.x * blockDim.x + threadIdx.x] += LATER; }
"""


def test_nvrtc_compiles_a_source_at_run_time(program):
    ended = program(
        HEAD
        + f'const char *source = R"cuda(#include "later.h"\n{SCALE})cuda";\n'
        + """
int main() {
    nvrtcProgram program;
    const char *headers[] = {"#define LATER 1000\\n"}, *names[] = {"later.h"};
    const char *options[] = {"-D", "OFFSET=5", "-arch=sm_90"};
    nvrtcCreateProgram(&program, source, "scale.cu", 1, headers, names);
    nvrtcAddNameExpression(program, "scale<int>");
    const char *lowered;
    printf("%d ", nvrtcGetLoweredName(program, "scale<int>", &lowered));
    printf("%s ", nvrtcGetErrorString(nvrtcCompileProgram(program, 3, options)));
    size_t size;
    nvrtcGetPTXSize(program, &size);
    std::vector<char> code(size);
    nvrtcGetPTX(program, code.data());
    printf("%d ", nvrtcGetLoweredName(program, "scale<int>", &lowered));
    printf("%d\\n", nvrtcGetLoweredName(program, "x", &lowered));

    CUdevice device; CUcontext context; CUmodule module; CUfunction scale, add;
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGet(&device, 0));
    CUctxCreateParams parameters = {};
    DRIVER(cuCtxCreate(&context, &parameters, 0, device));
    DRIVER(cuModuleLoadDataEx(&module, code.data(), 0, nullptr, nullptr));
    nvrtcGetLoweredName(program, "scale<int>", &lowered);
    DRIVER(cuModuleGetFunction(&scale, module, lowered));
    DRIVER(cuModuleGetFunction(&add, module, "add"));
    nvrtcDestroyProgram(&program);
    CUdeviceptr values, offset;
    int n = 100, factor = 3, more = 20, host[100];
    DRIVER(cuMemAlloc(&values, sizeof host));
    DRIVER(cuMemsetD32(values, 7, n));
    DRIVER(cuModuleGetGlobal(&offset, &size, module, "offset"));
    DRIVER(cuMemcpyHtoD(offset, &more, size));
    void *arguments[] = {&values, &factor, &n};
    DRIVER(cuLaunchKernel(scale, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &values, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    size = sizeof values;
    DRIVER(cuLaunchKernel(add, 1, 1, 1, 50, 1, 1, 0, nullptr, nullptr, extra));
    DRIVER(cuMemcpyDtoH(host, values, sizeof host));
    printf("%d %d\\n", host[49], host[50]);
    int threads, blocks;
    DRIVER(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
    DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 512, 0));
    printf("%d %d\\n", threads, blocks);
    DRIVER(cuLaunchKernel(add, 1, 1, 1, 4096, 1, 1, 0, nullptr, nullptr, extra));
    DRIVER(cuModuleGetFunction(&add, module, "subtract"));
    DRIVER(cuModuleGetGlobal(&offset, nullptr, module, "none"));
    DRIVER(cuMemFree(values));
    DRIVER(cuModuleUnload(module));
    DRIVER(cuCtxDestroy(context));
}
""",
        "--check",
    )
    assert ended.stdout.splitlines() == [
        "4 NVRTC_SUCCESS 0 10",
        "1046 46",
        "1024 4",
        "cudaErrorInvalidConfiguration",
        "cudaErrorSymbolNotFound",
        "cudaErrorSymbolNotFound",
    ], ended.stderr
    assert ended.code == 0, ended.stderr
    assert "2 launches on the simulator" in ended.stderr


def test_nvrtc_reports_the_compilers_errors(program):
    ended = program(
        HEAD
        + """
int main() {
    nvrtcProgram program;
    nvrtcCreateProgram(&program, "__global__ void wrong() { nothing; }", "wrong.cu", 0, nullptr, nullptr);
    printf("%s\\n", nvrtcGetErrorString(nvrtcCompileProgram(program, 0, nullptr)));
    size_t size;
    nvrtcGetProgramLogSize(program, &size);
    std::vector<char> log(size);
    nvrtcGetProgramLog(program, log.data());
    puts(log.data());
    printf("%d %d\\n", nvrtcGetPTXSize(program, &size), nvrtcCreateProgram(&program, nullptr, "", 0, nullptr, nullptr));
}
"""
    )
    first, second, *_, last = ended.stdout.splitlines()
    assert (first, second) == (
        "NVRTC_ERROR_COMPILATION",
        "wrong.cu:1:27: error: use of undeclared identifier 'nothing'",
    ), ended.stderr
    assert last == "4 3"


def test_a_module_is_compiled_from_the_source_beside_it(program, tmp_path):
    (tmp_path / "scale_kernel64.ptx").write_text("anything")
    (tmp_path / "scale_kernel.cu").write_text("__global__ void scale(int *a) { a[threadIdx.x] *= 2; }")
    (tmp_path / "alone.cubin").write_bytes(b"\\x7fELF")
    code = b".text._Z5scalePi\0.nv.constant0._Z5scalePi\0"
    (tmp_path / "any.fatbin").write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(code)) + code + b"more")
    elf = b"\x7fELF".ljust(64, b"\0") + code
    elf = elf[:40] + struct.pack("<Q", len(elf)) + elf[48:]
    (tmp_path / "any.cubin").write_bytes(elf)
    ended = program(
        HEAD
        + f"""
const std::string folder = "{tmp_path}/";"""
        + """
#include <fstream>
#include <sstream>
std::string read(const char *name) {
    std::ostringstream text;
    text << std::ifstream(folder + name, std::ios::binary).rdbuf();
    return text.str();
}
int main() {
    CUmodule module; CUfunction scale; CUdeviceptr values; int host[32];
    cuInit(0);
    DRIVER(cuModuleLoad(&module, (folder + "none.ptx").c_str()));
    DRIVER(cuModuleLoad(&module, (folder + "alone.cubin").c_str()));
    DRIVER(cuModuleLoadData(&module, ".visible .entry _Z4nonePi("));
    std::string ptx = ".visible .entry _Z5scalePi(.param .u64 a)";
    std::string images[] = {read("any.fatbin"), read("any.cubin"), ptx};
    for (int from = 0; from < 5; from++) {
        if (from == 3) DRIVER(cuModuleLoad(&module, (folder + "scale_kernel64.ptx").c_str()));
        if (from == 4) {
            CUlinkState state; void *image; char log[9] = "unset"; void *values[] = {log};
            CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER};
            DRIVER(cuLinkCreate(1, options, values, &state));
            DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, "a", 0, nullptr, nullptr));
            DRIVER(cuLinkComplete(state, &image, nullptr));
            DRIVER(cuModuleLoadData(&module, image));
            DRIVER(cuLinkDestroy(state));
            printf("%s", log);
        }
        if (from < 3) DRIVER(cuModuleLoadData(&module, images[from].data()));
        DRIVER(cuModuleGetFunction(&scale, module, "_Z5scalePi"));
        DRIVER(cuMemAlloc(&values, sizeof host));
        DRIVER(cuMemsetD32(values, 21, 32));
        void *arguments[] = {&values};
        DRIVER(cuLaunchKernel(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
        DRIVER(cuMemcpyDtoH(host, values, sizeof host));
        printf("%d\\n", host[31]);
    }
}
"""
    )
    assert ended.stdout.splitlines() == [
        "cudaErrorFileNotFound",
        "cudaErrorInvalidDeviceFunction",
        "cudaErrorInvalidDeviceFunction",
        *["42"] * 5,
    ], ended.stderr
    assert "no .cu file beside it is the source of alone.cubin" in ended.stderr
    assert "with NVRTC" in ended.stderr


def test_arrays_textures_and_virtual_memory_of_the_driver_api(program):
    ended = program(
        HEAD
        + """
__global__ void fetch(CUtexObject t, float *out) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); }
int main() {
    CUarray array; CUtexObject texture; CUdeviceptr range; CUmemGenericAllocationHandle memory;
    unsigned char pixels[2][3] = {{0, 51, 255}, {9, 9, 9}}, back[4] = {};
    CUDA_ARRAY_DESCRIPTOR format = {3, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    DRIVER(cuArrayCreate(&array, &format));
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = pixels, copy.WidthInBytes = 3, copy.Height = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
    DRIVER(cuMemcpy2D(&copy));
    copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array, copy.srcXInBytes = 1, copy.WidthInBytes = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = back, copy.dstXInBytes = 1, copy.Height = 1;
    DRIVER(cuMemcpy2D(&copy));
    CUDA_RESOURCE_DESC what = {CU_RESOURCE_TYPE_ARRAY};
    what.res.array.hArray = array;
    CUDA_TEXTURE_DESC how = {};
    DRIVER(cuTexObjectCreate(&texture, &what, &how, nullptr));
    CUmemAllocationProp place = {CU_MEM_ALLOCATION_TYPE_PINNED, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    size_t bytes;
    DRIVER(cuMemGetAllocationGranularity(&bytes, &place, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVER(cuMemAddressReserve(&range, bytes - 1, 0, 0, 0));
    DRIVER(cuMemAddressReserve(&range, bytes, 0, 0, 0));
    DRIVER(cuMemCreate(&memory, bytes, &place, 0));
    DRIVER(cuMemMap(range, bytes, 0, memory, 0));
    DRIVER(cuMemMap(range, bytes, 0, memory, 0));
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    DRIVER(cuMemSetAccess(range, bytes, &access, 1));
    fetch<<<1, 3>>>(texture, (float *)range);
    float found[3];
    DRIVER(cuMemcpyDtoH(found, range, sizeof found));
    printf("%g %g %g, %d %d %d\\n", found[0], found[1], found[2], back[0], back[1], back[2]);
    DRIVER(cuMemUnmap(range, bytes));
    DRIVER(cuMemRelease(memory));
    DRIVER(cuMemAddressFree(range, bytes));
    DRIVER(cuMemcpyDtoH(found, range, sizeof found));
    DRIVER(cuCtxPopCurrent(nullptr));
    DRIVER(cuTexObjectDestroy(texture));
    DRIVER(cuArrayDestroy(array));
}
"""
    )
    assert ended.stdout.splitlines() == [
        "cudaErrorInvalidValue",
        "cudaErrorNotSupported",
        "0 0.2 1, 0 51 255",
        "cudaErrorInvalidValue",
    ], ended.stderr
