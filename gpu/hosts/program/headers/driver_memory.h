// Arrays, textures and virtual memory of the driver API, over the runtime API's; and images that are linked at run time.
#pragma once
#include <string>

// Arrays and copies of rows
typedef cudaArray_t CUarray;
typedef enum CUarray_format_enum {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20
} CUarray_format;
typedef enum CUmemorytype_enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE,
    CU_MEMORYTYPE_ARRAY,
    CU_MEMORYTYPE_UNIFIED
} CUmemorytype;
struct CUDA_ARRAY_DESCRIPTOR {
    size_t Width, Height;
    CUarray_format Format;
    unsigned NumChannels;
};
struct CUDA_MEMCPY2D {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch, dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch, WidthInBytes, Height;
};
static inline cudaChannelFormatDesc __lockstep_format(CUarray_format format, unsigned channels) {
    int bits = format == CU_AD_FORMAT_FLOAT ? 32 : format == CU_AD_FORMAT_HALF ? 16 : 4 << (format & 7);
    return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0,
            format & 0x30 ? cudaChannelFormatKindFloat
            : format & 8  ? cudaChannelFormatKindSigned
                          : cudaChannelFormatKindUnsigned};
}
static inline CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *how) {
    if (!array || !how) return (CUresult)::lockstep_host::ask("invalid_value");
    cudaChannelFormatDesc format = __lockstep_format(how->Format, how->NumChannels);
    return (CUresult)cudaMallocArray(array, &format, how->Width, how->Height);
}
LOCKSTEP_DRIVER(cuArrayDestroy, (CUarray array), cudaFreeArray(array))
static inline CUresult cuMemcpy2D(const CUDA_MEMCPY2D *how) {
    if (!how) return (CUresult)::lockstep_host::ask("invalid_value");
    bool from_array = how->srcMemoryType == CU_MEMORYTYPE_ARRAY, to_array = how->dstMemoryType == CU_MEMORYTYPE_ARRAY;
    if (from_array && to_array) return (CUresult)::lockstep_host::ask("not_supported");
    size_t width = how->WidthInBytes, height = how->Height;
    size_t source_pitch = how->srcPitch ? how->srcPitch : width, target_pitch = how->dstPitch ? how->dstPitch : width;
    const char *source =
        how->srcMemoryType == CU_MEMORYTYPE_HOST ? (const char *)how->srcHost : (const char *)how->srcDevice;
    char *target = how->dstMemoryType == CU_MEMORYTYPE_HOST ? (char *)how->dstHost : (char *)how->dstDevice;
    source += how->srcY * source_pitch + how->srcXInBytes, target += how->dstY * target_pitch + how->dstXInBytes;
    if (to_array)
        return (CUresult)cudaMemcpy2DToArray(how->dstArray, how->dstXInBytes, how->dstY, source, source_pitch, width,
                                             height, cudaMemcpyDefault);
    if (from_array)
        return (CUresult)cudaMemcpy2DFromArray(target, target_pitch, how->srcArray, how->srcXInBytes, how->srcY, width,
                                               height, cudaMemcpyDefault);
    return (CUresult)cudaMemcpy2D(target, target_pitch, source, source_pitch, width, height, cudaMemcpyDefault);
}

// Texture objects; the enumerations have the runtime's numbers
typedef cudaTextureObject_t CUtexObject;
typedef cudaResourceType CUresourcetype;
typedef cudaTextureAddressMode CUaddress_mode;
typedef cudaTextureFilterMode CUfilter_mode;
#define CU_RESOURCE_TYPE_ARRAY cudaResourceTypeArray
#define CU_RESOURCE_TYPE_LINEAR cudaResourceTypeLinear
#define CU_RESOURCE_TYPE_PITCH2D cudaResourceTypePitch2D
#define CU_TR_ADDRESS_MODE_WRAP cudaAddressModeWrap
#define CU_TR_ADDRESS_MODE_CLAMP cudaAddressModeClamp
#define CU_TR_ADDRESS_MODE_MIRROR cudaAddressModeMirror
#define CU_TR_ADDRESS_MODE_BORDER cudaAddressModeBorder
#define CU_TR_FILTER_MODE_POINT cudaFilterModePoint
#define CU_TR_FILTER_MODE_LINEAR cudaFilterModeLinear
#define CU_TRSF_READ_AS_INTEGER 1
#define CU_TRSF_NORMALIZED_COORDINATES 2
struct CUDA_RESOURCE_DESC {
    CUresourcetype resType;
    union {
        struct {
            CUarray hArray;
        } array;
        struct {
            CUdeviceptr devPtr;
            CUarray_format format;
            unsigned numChannels;
            size_t sizeInBytes;
        } linear;
        struct {
            CUdeviceptr devPtr;
            CUarray_format format;
            unsigned numChannels;
            size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
    unsigned flags;
};
struct CUDA_TEXTURE_DESC {
    CUaddress_mode addressMode[3];
    CUfilter_mode filterMode;
    unsigned flags, maxAnisotropy;
    CUfilter_mode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4];
    int reserved[12];
};
struct CUDA_RESOURCE_VIEW_DESC;
static inline CUresult cuTexObjectCreate(CUtexObject *texture, const CUDA_RESOURCE_DESC *what,
                                         const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *) {
    if (!texture || !what || !how) return (CUresult)::lockstep_host::ask("invalid_value");
    cudaResourceDesc resource = {};
    resource.resType = what->resType;
    cudaChannelFormatDesc format = {};
    const auto &linear = what->res.linear;
    const auto &rows = what->res.pitch2D;
    if (what->resType == cudaResourceTypeArray) {
        resource.res.array.array = what->res.array.hArray;
        cudaError_t error = cudaGetChannelDesc(&format, what->res.array.hArray);
        if (error != cudaSuccess) return (CUresult)error;
    } else if (what->resType == cudaResourceTypeLinear) {
        format = __lockstep_format(linear.format, linear.numChannels);
        resource.res.linear = {(void *)linear.devPtr, format, linear.sizeInBytes};
    } else {
        format = __lockstep_format(rows.format, rows.numChannels);
        resource.res.pitch2D = {(void *)rows.devPtr, format, rows.width, rows.height, rows.pitchInBytes};
    }
    cudaTextureDesc sampling = {};
    for (int axis = 0; axis < 3; axis++) sampling.addressMode[axis] = how->addressMode[axis];
    sampling.filterMode = how->filterMode;
    sampling.normalizedCoords = how->flags & CU_TRSF_NORMALIZED_COORDINATES ? 1 : 0;
    bool as_fraction =
        format.f != cudaChannelFormatKindFloat && format.x < 32 && !(how->flags & CU_TRSF_READ_AS_INTEGER);
    sampling.readMode = as_fraction ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    return (CUresult)cudaCreateTextureObject(texture, &resource, &sampling, nullptr);
}
LOCKSTEP_DRIVER(cuTexObjectDestroy, (CUtexObject texture), cudaDestroyTextureObject(texture))

// Virtual memory: a reserved range has its memory at once, so one allocation cannot be mapped at two addresses.
typedef unsigned long long CUmemGenericAllocationHandle;
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum { CU_MEM_ALLOCATION_COMP_NONE, CU_MEM_ALLOCATION_COMP_GENERIC };
enum { CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
typedef enum {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
} CUmemAllocationGranularity_flags;
struct CUmemLocation {
    int type, id;
};
struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};
namespace lockstep_host {
struct Allocation {
    size_t bytes;
    bool is_mapped;
};
constexpr size_t granularity = 2 << 20;
}  // namespace lockstep_host
LOCKSTEP_DRIVER(cuMemGetAllocationGranularity,
                (size_t *bytes, const CUmemAllocationProp *, CUmemAllocationGranularity_flags),
                bytes ? (*bytes = ::lockstep_host::granularity, 0) : ::lockstep_host::ask("invalid_value"))
LOCKSTEP_DRIVER(cuMemAddressReserve, (CUdeviceptr * pointer, size_t bytes, size_t, CUdeviceptr, unsigned long long),
                pointer && bytes && bytes % ::lockstep_host::granularity == 0 ? cudaMalloc((void **)pointer, bytes)
                                                                              : ::lockstep_host::ask("invalid_value"))
LOCKSTEP_DRIVER(cuMemAddressFree, (CUdeviceptr pointer, size_t), cudaFree((void *)pointer))
static inline CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *how,
                                   unsigned long long) {
    if (!handle || !how || !bytes || bytes % ::lockstep_host::granularity)
        return (CUresult)::lockstep_host::ask("invalid_value");
    *handle = (CUmemGenericAllocationHandle) new ::lockstep_host::Allocation{bytes, false};
    return (CUresult)cudaSetDevice(how->location.id);
}
static inline CUresult cuMemMap(CUdeviceptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                                unsigned long long) {
    auto *allocation = (::lockstep_host::Allocation *)handle;
    if (!allocation || offset + bytes > allocation->bytes) return (CUresult)::lockstep_host::ask("invalid_value");
    if (allocation->is_mapped) return (CUresult)::lockstep_host::ask("not_supported");
    allocation->is_mapped = true;
    return CUDA_SUCCESS;
}
LOCKSTEP_DRIVER(cuMemUnmap, (CUdeviceptr, size_t), 0)
LOCKSTEP_DRIVER(cuMemRelease, (CUmemGenericAllocationHandle handle), (delete (::lockstep_host::Allocation *)handle, 0))
LOCKSTEP_DRIVER(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *how, size_t count),
                how &&count ? cudaSetDevice(how[count - 1].location.id) : ::lockstep_host::ask("invalid_value"))
static inline CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *how, CUmemGenericAllocationHandle) {
    if (!how) return (CUresult)::lockstep_host::ask("invalid_value");
    *how = {CU_MEM_ALLOCATION_TYPE_PINNED, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
    return CUDA_SUCCESS;
}

// Linking: the texts of PTX, one after the other
struct CUlinkState_st {
    std::string image;
};
typedef CUlinkState_st *CUlinkState;
typedef enum CUjitInputType_enum {
    CU_JIT_INPUT_CUBIN,
    CU_JIT_INPUT_PTX,
    CU_JIT_INPUT_FATBINARY,
    CU_JIT_INPUT_OBJECT,
    CU_JIT_INPUT_LIBRARY
} CUjitInputType;
static inline CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
    if (!state) return (CUresult)::lockstep_host::ask("invalid_value");
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER) *(char *)values[i] = 0;
    *state = new CUlinkState_st;
    return CUDA_SUCCESS;
}
static inline CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *,
                                     unsigned, CUjit_option *, void **) {
    if (!state || !data) return (CUresult)::lockstep_host::ask("invalid_value");
    if (type != CU_JIT_INPUT_PTX) return (CUresult)::lockstep_host::ask("not_supported");
    state->image += std::string((const char *)data, bytes).c_str();  // without a terminating zero
    return CUDA_SUCCESS;
}
static inline CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned count,
                                     CUjit_option *options, void **values) {
    FILE *file = path ? fopen(path, "rb") : nullptr;
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::string text;
    for (int letter; (letter = fgetc(file)) != EOF;) text += (char)letter;
    fclose(file);
    return cuLinkAddData(state, type, (void *)text.data(), text.size(), path, count, options, values);
}
static inline CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
    if (!state || !image) return (CUresult)::lockstep_host::ask("invalid_value");
    *image = (void *)state->image.c_str();
    if (bytes) *bytes = state->image.size() + 1;
    return CUDA_SUCCESS;
}
LOCKSTEP_DRIVER(cuLinkDestroy, (CUlinkState state), (delete state, 0))
