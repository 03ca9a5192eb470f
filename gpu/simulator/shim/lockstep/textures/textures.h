// Textures: a fetch by element is a load; of a fetch by coordinates the executor says which elements it loads. Others are
// declared so that what does not read them runs, and what does is refused by name.
#pragma once

enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3
template <typename LockstepT, int Dimensions = 1, cudaTextureReadMode Mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture {};
// What host code hands over for a volume.
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};

LOCKSTEP_API void __lockstep_texture();
LOCKSTEP_API long long __lockstep_texel(cudaTextureObject_t, size_t, float);
LOCKSTEP_API long long __lockstep_texel(cudaTextureObject_t, size_t, float, float);
LOCKSTEP_API long long __lockstep_texel(cudaTextureObject_t, size_t, float, float, float);
// Of a texture that filters: the elements around a place, the weight of the second one along an axis, and what is
// between two for a weight.
LOCKSTEP_API bool __lockstep_texels_are_filtered(cudaTextureObject_t);
LOCKSTEP_API long long __lockstep_texel_beside(cudaTextureObject_t, size_t, int, float);
LOCKSTEP_API long long __lockstep_texel_beside(cudaTextureObject_t, size_t, int, int, float, float);
LOCKSTEP_API long long __lockstep_texel_beside(cudaTextureObject_t, size_t, int, int, int, float, float, float);
LOCKSTEP_API float __lockstep_texel_weight(cudaTextureObject_t, int, float);
LOCKSTEP_API inline float2 __lockstep_between(float2 first, float2 second, float weight) {
    return make_float2(__lockstep_between(first.x, second.x, weight), __lockstep_between(first.y, second.y, weight));
}
LOCKSTEP_API inline float4 __lockstep_between(float4 first, float4 second, float weight) {
    return make_float4(__lockstep_between(first.x, second.x, weight), __lockstep_between(first.y, second.y, weight),
                       __lockstep_between(first.z, second.z, weight), __lockstep_between(first.w, second.w, weight));
}

template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex1D(cudaTextureObject_t texture, float x) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x)];
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex2D(cudaTextureObject_t texture, float x, float y) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x, y)];
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex3D(cudaTextureObject_t texture, float x, float y, float z) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x, y, z)];
}
// A layer is chosen by its number, and nothing is between two of them.
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex1DLayered(cudaTextureObject_t texture, float x, int layer) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x, (float)layer)];
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex2DLayered(cudaTextureObject_t texture, float x, float y, int layer) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x, y, (float)layer)];
}

#define LOCKSTEP_AT(type, ...) ((const type *)texture)[__lockstep_texel_beside(texture, sizeof(type), __VA_ARGS__)]
#define LOCKSTEP_IN_X(first, second) __lockstep_between(first, second, __lockstep_texel_weight(texture, 0, x))
#define LOCKSTEP_IN_Y(first, second) __lockstep_between(first, second, __lockstep_texel_weight(texture, 1, y))
#define LOCKSTEP_ROW(type, y0, z0)                                                                                     \
    LOCKSTEP_IN_X(LOCKSTEP_AT(type, 0, y0, z0, x, y, z), LOCKSTEP_AT(type, 1, y0, z0, x, y, z))
#define LOCKSTEP_SLICE(type, z0) LOCKSTEP_IN_Y(LOCKSTEP_ROW(type, 0, z0), LOCKSTEP_ROW(type, 1, z0))
#define LOCKSTEP_FILTERED(type)                                                                                        \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex1D<type>(cudaTextureObject_t texture, float x) {                                       \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? LOCKSTEP_IN_X(LOCKSTEP_AT(type, 0, x), LOCKSTEP_AT(type, 1, x))                                   \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x)];                              \
    }                                                                                                                  \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex2D<type>(cudaTextureObject_t texture, float x, float y) {                              \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? LOCKSTEP_IN_Y(LOCKSTEP_IN_X(LOCKSTEP_AT(type, 0, 0, x, y), LOCKSTEP_AT(type, 1, 0, x, y)),        \
                                   LOCKSTEP_IN_X(LOCKSTEP_AT(type, 0, 1, x, y), LOCKSTEP_AT(type, 1, 1, x, y)))        \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x, y)];                           \
    }                                                                                                                  \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex3D<type>(cudaTextureObject_t texture, float x, float y, float z) {                     \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? __lockstep_between(LOCKSTEP_SLICE(type, 0), LOCKSTEP_SLICE(type, 1),                              \
                                        __lockstep_texel_weight(texture, 2, z))                                        \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x, y, z)];                        \
    }                                                                                                                  \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex1DLayered<type>(cudaTextureObject_t texture, float x, int layer) {                     \
        float y = (float)layer;                                                                                        \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? LOCKSTEP_IN_X(LOCKSTEP_AT(type, 0, 0, x, y), LOCKSTEP_AT(type, 1, 0, x, y))                       \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x, y)];                           \
    }                                                                                                                  \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex2DLayered<type>(cudaTextureObject_t texture, float x, float y, int layer) {            \
        float z = (float)layer;                                                                                        \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? LOCKSTEP_SLICE(type, 0)                                                                           \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x, y, z)];                        \
    }
LOCKSTEP_FILTERED(float)
LOCKSTEP_FILTERED(float2)
LOCKSTEP_FILTERED(float4)
#undef LOCKSTEP_FILTERED
#undef LOCKSTEP_SLICE
#undef LOCKSTEP_ROW
#undef LOCKSTEP_IN_Y
#undef LOCKSTEP_IN_X
#undef LOCKSTEP_AT

// A cubemap's texel is in the face of the largest coordinate; the other two, divided by it, are its place there.
LOCKSTEP_API inline float3 __lockstep_cube_place(float x, float y, float z) {
    float in_x = fabsf(x), in_y = fabsf(y), in_z = fabsf(z);
    if (in_x >= in_y && in_x >= in_z) return make_float3((1 - z / x) / 2, (1 - y / in_x) / 2, x < 0);
    if (in_y >= in_z) return make_float3((1 + x / in_y) / 2, (1 + z / y) / 2, y < 0 ? 3 : 2);
    return make_float3((1 + x / z) / 2, (1 - y / in_z) / 2, z < 0 ? 5 : 4);
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT texCubemap(cudaTextureObject_t texture, float x, float y, float z) {
    float3 at = __lockstep_cube_place(x, y, z);
    return tex2DLayered<LockstepT>(texture, at.x, at.y, (int)at.z);
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT texCubemapLayered(cudaTextureObject_t texture, float x, float y, float z, int layer) {
    float3 at = __lockstep_cube_place(x, y, z);
    return tex2DLayered<LockstepT>(texture, at.x, at.y, 6 * layer + (int)at.z);
}

// A texture reference stands for the memory that it is bound to.
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex1Dfetch(const texture<LockstepT, 1> &reference, int element) {
    return ((const LockstepT *)&reference)[element];
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex1D(const texture<LockstepT, 1> &reference, float x) {
    return tex1D<LockstepT>((cudaTextureObject_t)&reference, x);
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex2D(const texture<LockstepT, 2> &reference, float x, float y) {
    return tex2D<LockstepT>((cudaTextureObject_t)&reference, x, y);
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex3D(const texture<LockstepT, 3> &reference, float x, float y, float z) {
    return tex3D<LockstepT>((cudaTextureObject_t)&reference, x, y, z);
}

#define LOCKSTEP_TEXTURE(name)                                                                                         \
    template <typename LockstepT, int Dimensions, typename... Places>                                                  \
    LOCKSTEP_API float name(const texture<LockstepT, Dimensions, cudaReadModeNormalizedFloat> &, Places...) {          \
        __lockstep_texture();                                                                                          \
        return 0;                                                                                                      \
    }
#define LOCKSTEP_TEXTURE_OBJECT(name)                                                                                  \
    template <typename LockstepT, typename... Places>                                                                  \
    LOCKSTEP_API LockstepT name(cudaTextureObject_t, Places...) {                                                      \
        __lockstep_texture();                                                                                          \
        return LockstepT();                                                                                            \
    }
LOCKSTEP_TEXTURE(tex1Dfetch)
LOCKSTEP_TEXTURE(tex1D)
LOCKSTEP_TEXTURE(tex2D)
LOCKSTEP_TEXTURE(tex3D)
LOCKSTEP_TEXTURE_OBJECT(tex2DLod)
LOCKSTEP_TEXTURE_OBJECT(tex3DLod)
