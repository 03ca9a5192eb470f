// Texture and surface objects of host code, over linear memory, pitched memory and CUDA arrays.
#pragma once

enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned,
    cudaChannelFormatKindUnsigned,
    cudaChannelFormatKindFloat,
    cudaChannelFormatKindNone
};
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaResourceType {
    cudaResourceTypeArray,
    cudaResourceTypeMipmappedArray,
    cudaResourceTypeLinear,
    cudaResourceTypePitch2D
};
#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3
#define cudaTextureTypeCubemap 0xC
#define cudaArrayDefault 0u
#define cudaArrayLayered 1u
#define cudaArraySurfaceLoadStore 2u
#define cudaArrayCubemap 4u
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;

struct cudaChannelFormatDesc {
    int x, y, z, w;
    cudaChannelFormatKind f;
};
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            void *devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};
struct cudaResourceViewDesc;

template <typename T, int Dimensions = 1, cudaTextureReadMode Mode = cudaReadModeElementType>
struct texture {
    int normalized = 0;
    cudaTextureFilterMode filterMode = cudaFilterModePoint;
    cudaTextureAddressMode addressMode[3] = {cudaAddressModeClamp, cudaAddressModeClamp, cudaAddressModeClamp};
    cudaChannelFormatDesc channelDesc{};
};

static inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}
template <typename T>
struct lockstep_channels {
    static constexpr int count = 1;
    using element = T;
};
#define LOCKSTEP_CHANNELS(name, scalar)                                                                                \
    template <>                                                                                                        \
    struct lockstep_channels<name##1> {                                                                                \
        static constexpr int count = 1;                                                                                \
        using element = scalar;                                                                                        \
    };                                                                                                                 \
    template <>                                                                                                        \
    struct lockstep_channels<name##2> {                                                                                \
        static constexpr int count = 2;                                                                                \
        using element = scalar;                                                                                        \
    };                                                                                                                 \
    template <>                                                                                                        \
    struct lockstep_channels<name##4> {                                                                                \
        static constexpr int count = 4;                                                                                \
        using element = scalar;                                                                                        \
    };
LOCKSTEP_CHANNELS(char, signed char)
LOCKSTEP_CHANNELS(uchar, unsigned char)
LOCKSTEP_CHANNELS(short, short)
LOCKSTEP_CHANNELS(ushort, unsigned short)
LOCKSTEP_CHANNELS(int, int)
LOCKSTEP_CHANNELS(uint, unsigned)
LOCKSTEP_CHANNELS(float, float)
#undef LOCKSTEP_CHANNELS
template <typename T>
static inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    using Element = typename lockstep_channels<T>::element;
    int bits = 8 * sizeof(Element), count = lockstep_channels<T>::count;
    return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0,
            Element(0.5) != 0          ? cudaChannelFormatKindFloat
            : Element(-1) < Element(0) ? cudaChannelFormatKindSigned
                                       : cudaChannelFormatKindUnsigned};
}

static inline size_t lockstep_element_bytes(const cudaChannelFormatDesc &format) {
    return (size_t)(format.x + format.y + format.z + format.w) / 8;
}
static inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) { return {width, height, depth}; }
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
static inline cudaPitchedPtr make_cudaPitchedPtr(void *pointer, size_t pitch, size_t width, size_t height) {
    return {pointer, pitch, width, height};
}

static inline cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *format, cudaExtent extent,
                                            unsigned flags = 0) {
    if (!format) return ::lockstep_host::ask("invalid_value");
    return ::lockstep_host::ask("array", array, extent.width, extent.height, extent.depth, format,
                                lockstep_element_bytes(*format), flags);
}
static inline cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *format, size_t width,
                                          size_t height = 0, unsigned flags = 0) {
    return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}
static inline cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags,
                                           cudaArray_t array) {
    return ::lockstep_host::ask("array_info", format, extent, flags, array);
}
static inline cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *format, cudaArray_const_t array) {
    return ::lockstep_host::ask_if(format, "array_info", format, 0, 0, array);
}
static inline cudaError_t cudaFreeArray(cudaArray_t array) { return ::lockstep_host::ask("array_free", array); }
static inline cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void *source, size_t bytes,
                                            cudaMemcpyKind kind) {
    return ::lockstep_host::ask("to_array", array, x, y, 0, source, bytes, bytes, 1, kind);
}
static inline cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void *source, size_t pitch,
                                              size_t width, size_t height, cudaMemcpyKind kind) {
    return ::lockstep_host::ask("to_array", array, x, y, 0, source, pitch, width, height, kind);
}
static inline cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t x, size_t y, const void *source,
                                                   size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                                   cudaStream_t stream = 0) {
    return ::lockstep_host::ask("on_stream", stream, "to_array", array, x, y, 0, source, pitch, width, height, kind);
}
static inline cudaError_t cudaMemcpy2DFromArray(void *target, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                                                size_t width, size_t height, cudaMemcpyKind kind) {
    return ::lockstep_host::ask("from_array", target, pitch, array, x, y, 0, width, height, kind);
}

static inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                                  const cudaTextureDesc *how, const cudaResourceViewDesc *) {
    if (!how || !resource) return ::lockstep_host::ask("invalid_value");
    const int sampling[] = {how->filterMode, how->normalizedCoords, how->addressMode[0], how->readMode};
    const auto &of = resource->res;
    if (resource->resType == cudaResourceTypeArray)
        return ::lockstep_host::ask("texture_of_array", texture, of.array.array, sampling);
    if (resource->resType == cudaResourceTypeLinear)
        return ::lockstep_host::ask("texture_of_memory", texture, of.linear.devPtr, of.linear.sizeInBytes, 0, 0, 0,
                                    &of.linear.desc, sampling);
    if (resource->resType == cudaResourceTypePitch2D)
        return ::lockstep_host::ask("texture_of_memory", texture, of.pitch2D.devPtr,
                                    of.pitch2D.pitchInBytes * of.pitch2D.height, of.pitch2D.pitchInBytes,
                                    of.pitch2D.width, of.pitch2D.height, &of.pitch2D.desc, sampling);
    return ::lockstep_host::ask("not_supported");
}
static inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
    return ::lockstep_host::ask("texture_destroy", texture);
}

static inline cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource) {
    if (!resource) return ::lockstep_host::ask("invalid_value");
    if (resource->resType != cudaResourceTypeArray) return ::lockstep_host::ask("not_supported");
    return ::lockstep_host::ask("surface_of_array", surface, resource->res.array.array);
}
static inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
    return ::lockstep_host::ask("surface_destroy", surface);
}

// Texture references were removed in CUDA 12; binding one reports an error.
template <typename T, int D, cudaTextureReadMode M, typename... A>
static inline cudaError_t cudaBindTexture(size_t *, const texture<T, D, M> &, A...) {
    return ::lockstep_host::ask("texture_reference");
}
template <typename T, int D, cudaTextureReadMode M, typename... A>
static inline cudaError_t cudaBindTexture2D(size_t *, const texture<T, D, M> &, A...) {
    return ::lockstep_host::ask("texture_reference");
}
template <typename T, int D, cudaTextureReadMode M, typename... A>
static inline cudaError_t cudaBindTextureToArray(const texture<T, D, M> &, A...) {
    return ::lockstep_host::ask("texture_reference");
}
template <typename T, int D, cudaTextureReadMode M>
static inline cudaError_t cudaUnbindTexture(const texture<T, D, M> &) {
    return cudaSuccess;
}

// A volume consists of slices of pitched rows.
struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    cudaMemcpyKind kind;
};
static inline cudaError_t cudaMalloc3D(cudaPitchedPtr *volume, cudaExtent extent) {
    if (!volume) return ::lockstep_host::ask("invalid_value");
    volume->xsize = extent.width;
    volume->ysize = extent.height;
    return ::lockstep_host::ask("malloc_pitch", &volume->ptr, &volume->pitch, extent.width,
                                extent.height * extent.depth);
}
static inline char *lockstep_row(const cudaPitchedPtr &volume, const cudaPos &at, size_t z) {
    return (char *)volume.ptr + ((at.z + z) * volume.ysize + at.y) * volume.pitch + at.x;
}
static inline cudaError_t cudaMemset3D(cudaPitchedPtr volume, int value, cudaExtent extent) {
    for (size_t z = 0; z < extent.depth; z++) {
        cudaError_t error = ::lockstep_host::ask("memset_2d", lockstep_row(volume, {0, 0, 0}, z), volume.pitch, value,
                                                 extent.width, extent.height);
        if (error) return error;
    }
    return cudaSuccess;
}
// Positions and extents are in elements if an array is involved, otherwise in bytes.
static inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *how) {
    if (!how) return ::lockstep_host::ask("invalid_value");
    const cudaPos &from = how->srcPos, &to = how->dstPos;
    const cudaPitchedPtr &source = how->srcPtr, &target = how->dstPtr;
    const cudaExtent &box = how->extent;
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < box.depth && !error; z++) {
        if (how->srcArray && how->dstArray)
            error = ::lockstep_host::ask("array_to_array", how->dstArray, to.x, to.y, to.z + z, how->srcArray, from.x,
                                         from.y, from.z + z, box.width, box.height);
        else if (how->dstArray)
            error = ::lockstep_host::ask("box_to_array", how->dstArray, to.x, to.y, to.z + z,
                                         lockstep_row(source, from, z), source.pitch, box.width, box.height, how->kind);
        else if (how->srcArray)
            error = ::lockstep_host::ask("box_from_array", lockstep_row(target, to, z), target.pitch, how->srcArray,
                                         from.x, from.y, from.z + z, box.width, box.height, how->kind);
        else
            error = ::lockstep_host::ask("memcpy_2d", lockstep_row(target, to, z), target.pitch,
                                         lockstep_row(source, from, z), source.pitch, box.width, box.height, how->kind);
    }
    return error;
}
static inline void lockstep_copy(void *how) { cudaMemcpy3D((const cudaMemcpy3DParms *)how); }
static inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *how, cudaStream_t stream = 0) {
    if (!::lockstep_host::call("captures", stream)) return cudaMemcpy3D(how);
    return ::lockstep_host::ask("on_stream", stream, "host_function", &lockstep_copy, new cudaMemcpy3DParms(*how));
}
