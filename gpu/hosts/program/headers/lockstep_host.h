// Calls from host code to the simulator, through one function whose address is in an environment variable.
#pragma once

#include <dlfcn.h>

// Sixteen no-operations before a kernel's host function distinguish it from other functions. Older versions of g++
// cannot link them where two files instantiate the same template.
#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)) && (defined(__clang__) || __GNUC__ >= 11)
#define LOCKSTEP_KERNEL_PREFIX 16
#ifndef __global__
#define __global__ __global__ __attribute__((patchable_function_entry(16, 16)))
#endif
#endif

namespace lockstep_host {

using Entry = long long (*)(const char *, const long long *, int);

inline Entry entry() {
    static Entry function = [] {
        const char *address = getenv("LOCKSTEP_ENTRY");
        return address ? (Entry)strtoull(address, nullptr, 10) : nullptr;
    }();
    return function;
}

template <typename... A>
inline long long call(const char *name, A... arguments) {
    long long words[] = {(long long)arguments..., 0};
    return entry()(name, words, (int)sizeof...(A));
}
template <typename... A>
inline cudaError_t ask(const char *name, A... arguments) {
    return (cudaError_t)call(name, arguments...);
}
template <typename... A>
inline cudaError_t ask_if(bool is_valid, A... request) {
    return is_valid ? ask(request...) : ask("invalid_value");
}
inline bool is_advice(cudaMemoryAdvise advice) {
    return advice >= cudaMemAdviseSetReadMostly && advice <= cudaMemAdviseUnsetAccessedBy;
}
inline const char *text(const char *name, int number) {
    static thread_local char buffers[2][256];
    static thread_local int turn = 0;
    turn ^= 1;
    call(name, number, buffers[turn], sizeof buffers[turn]);
    return buffers[turn];
}

// Packed arguments of a kernel: written by its host function, used by the launch that follows.
struct Packed {
    const char *kernel = nullptr;
    int unit = 0, line = 0, template_parameters = 0;
    bool only_identify = false;
    unsigned cluster[3] = {}; // of the next launch; 0 for no clusters
    size_t size = 0;
    char bytes[32764];
};
inline thread_local Packed packed;

inline void add(const void *value, size_t size, size_t alignment) {
    packed.size = (packed.size + alignment - 1) / alignment * alignment;
    memcpy(packed.bytes + packed.size, value, size);
    packed.size += size;
}
template <typename... A>
constexpr size_t packed_size() {
    size_t size = 0;
    ((size = (size + alignof(A) - 1) / alignof(A) * alignof(A) + sizeof(A)), ...);
    return size;
}
template <typename... A>
inline void pack(int unit, int line, int template_parameters, const char *kernel, const A &...arguments) {
    packed.kernel = kernel;
    packed.unit = unit;
    packed.line = line;
    packed.template_parameters = template_parameters;
    static_assert(packed_size<A...>() <= sizeof packed.bytes, "a kernel has at most 32,764 bytes of parameters");
    if (packed.only_identify) return;
    packed.size = 0;
    (add((const void *)__builtin_addressof(arguments), sizeof(A), alignof(A)), ...);
}

// Return whether an address is that of a kernel's host function.
inline bool is_kernel(const void *address) {
    if (!address) return false;
#ifdef LOCKSTEP_KERNEL_PREFIX
    Dl_info own = {}, found = {};
    if (!dladdr((const void *)&add, &own) || !dladdr(address, &found) || own.dli_fbase != found.dli_fbase) return false;
#ifdef __x86_64__
    const unsigned char prefix = 0x90;
#else
    const unsigned prefix = 0xd503201f;
#endif
    for (int i = 1; i <= LOCKSTEP_KERNEL_PREFIX; i++)
        if (memcmp((const char *)address - i * sizeof prefix, &prefix, sizeof prefix)) return false;
#endif
    return true;
}

// Identify a kernel by calling its host function, which does not access its arguments then.
inline void identify(const void *kernel) {
    packed.kernel = nullptr;
    if (!is_kernel(kernel)) return;
    packed.only_identify = true;
    ((void (*)())kernel)();
    packed.only_identify = false;
}
template <typename... A>
inline cudaError_t ask_of_kernel(const char *name, const void *kernel, A... arguments) {
    identify(kernel);
    return ask(name, packed.unit, packed.line, packed.template_parameters, packed.kernel, arguments...);
}
// `where` is the routine that receives the launch, with its arguments: for a stream or a graph.
template <typename... A>
inline cudaError_t launch_into(dim3 grid, dim3 block, size_t shared_bytes, void **arguments, const char *file, int line,
                               A... where) {
    return ask(where..., "launch", packed.unit, packed.line, packed.template_parameters, packed.kernel, grid.x, grid.y,
               grid.z, block.x, block.y, block.z, shared_bytes, packed.bytes, packed.size, arguments, file, line,
               packed.cluster[0], packed.cluster[1], packed.cluster[2]);
}
template <typename... A>
inline cudaError_t launch_address_into(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                                       const char *file, int line, A... where) {
    identify(kernel);
    packed.size = 0;
    return launch_into(grid, block, shared_bytes, arguments, file, line, where...);
}
inline cudaError_t launch_by_address(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                                     cudaStream_t stream, const char *file, int line) {
    return launch_address_into(kernel, grid, block, arguments, shared_bytes, file, line, "on_stream", stream);
}

template <typename T>
inline const void *symbol_of(const T &symbol) {
    return (const void *)&reinterpret_cast<const char &>(symbol);
}
// Some callers pass the symbol's address.
template <typename T>
inline const void *symbol_of(T *const &symbol) {
    const void *own = (const void *)&symbol;
    return call("is_symbol", own) ? own : (const void *)symbol;
}

struct Variable {
    Variable(int unit, const char *name, const volatile void *place, size_t bytes, bool managed) {
        call("variable", unit, name, place, bytes, managed);
    }
};

} // namespace lockstep_host

static inline void __lockstep_launch(dim3 grid, dim3 block = 1, size_t shared_bytes = 0, cudaStream_t stream = 0,
                                     const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    ::lockstep_host::launch_into(grid, block, shared_bytes, nullptr, file, line, "on_stream", stream);
}

// Output of kernels goes through the program's own stream, to keep its order.
extern "C" inline __attribute__((used)) void lockstep_print(const char *text, size_t bytes) {
    fwrite(text, 1, bytes, stdout);
}
