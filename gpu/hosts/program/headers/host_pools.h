// Memory pools: all share the device's memory, and freed memory is released at once, so thresholds have no effect.
#pragma once

struct cudaMemPool_st {
    unsigned long long threshold = 0;
    int reuse[4] = {1, 1, 1, 1}; // by number of the attribute
};
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone };
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    cudaMemAllocationHandleType handleTypes;
    cudaMemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};

enum cudaMemAccessFlags { cudaMemAccessFlagsProtNone, cudaMemAccessFlagsProtRead, cudaMemAccessFlagsProtReadWrite = 3 };
struct cudaMemAccessDesc {
    cudaMemLocation location;
    cudaMemAccessFlags flags;
};

namespace lockstep_host {
inline cudaMemPool_st default_pool;
inline cudaMemPool_t current_pool = &default_pool;
}  // namespace lockstep_host

static inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    if (!pool) return ::lockstep_host::ask("invalid_value");
    *pool = &::lockstep_host::default_pool;
    return ::lockstep_host::ask("set_device", device);
}
static inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    if (!pool) return ::lockstep_host::ask("invalid_value");
    *pool = ::lockstep_host::current_pool;
    return ::lockstep_host::ask("set_device", device);
}
static inline cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    if (!pool) return ::lockstep_host::ask("invalid_value");
    ::lockstep_host::current_pool = pool;
    return ::lockstep_host::ask("set_device", device);
}
static inline cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
    if (!pool || !properties) return ::lockstep_host::ask("invalid_value");
    *pool = new cudaMemPool_st;
    return cudaSuccess;
}
static inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (!pool || pool == &::lockstep_host::default_pool) return ::lockstep_host::ask("invalid_value");
    if (::lockstep_host::current_pool == pool) ::lockstep_host::current_pool = &::lockstep_host::default_pool;
    delete pool;
    return cudaSuccess;
}
static inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    if (!pool || !value) return ::lockstep_host::ask("invalid_value");
    if (attribute >= 1 && attribute <= 3) {
        pool->reuse[attribute] = *(int *)value;
    } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
        pool->threshold = *(unsigned long long *)value;
    } else if (attribute != cudaMemPoolAttrReservedMemHigh && attribute != cudaMemPoolAttrUsedMemHigh) {
        return ::lockstep_host::ask("invalid_value"); // the current sizes cannot be set
    }
    return cudaSuccess;
}
static inline cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    if (!pool || !value || attribute < 1 || attribute > 8) return ::lockstep_host::ask("invalid_value");
    if (attribute <= 3) {
        *(int *)value = pool->reuse[attribute];
    } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
        *(unsigned long long *)value = pool->threshold;
    } else { // all memory in use, since there is one pool
        size_t left = 0, all = 0;
        cudaMemGetInfo(&left, &all);
        *(unsigned long long *)value = all - left;
    }
    return cudaSuccess;
}
// The only device can always access its pools.
static inline cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t count) {
    bool is_valid = pool && access;
    for (size_t i = 0; is_valid && i < count; i++)
        is_valid = access[i].location.type == cudaMemLocationTypeDevice && access[i].location.id == 0 &&
                   access[i].flags == cudaMemAccessFlagsProtReadWrite;
    return ::lockstep_host::ask_if(is_valid, "nothing");
}
static inline cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool, cudaMemLocation *of) {
    if (!flags || !pool || !of) return ::lockstep_host::ask("invalid_value");
    *flags = cudaMemAccessFlagsProtReadWrite;
    return ::lockstep_host::ask("set_device", of->id);
}
static inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
    return ::lockstep_host::ask_if(pool, "nothing");
}
static inline cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
    return pool ? cudaMallocAsync(pointer, bytes, stream) : ::lockstep_host::ask("invalid_value");
}
template <typename T>
static inline cudaError_t cudaMallocFromPoolAsync(T **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync((void **)pointer, bytes, pool, stream);
}
template <typename T>
static inline cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync((void **)pointer, bytes, pool, stream);
}
