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
// Of a texture that filters: the elements around a place, the weight of the second one along an axis, and what is
// between two for a weight.
LOCKSTEP_API bool __lockstep_texels_are_filtered(cudaTextureObject_t);
LOCKSTEP_API long long __lockstep_texel_beside(cudaTextureObject_t, size_t, int, float);
LOCKSTEP_API long long __lockstep_texel_beside(cudaTextureObject_t, size_t, int, int, float, float);
LOCKSTEP_API float __lockstep_texel_weight(cudaTextureObject_t, int, float);
LOCKSTEP_API float __lockstep_between(float, float, float);
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

#define LOCKSTEP_AT(type, ...) ((const type *)texture)[__lockstep_texel_beside(texture, sizeof(type), __VA_ARGS__)]
#define LOCKSTEP_FILTERED(type)                                                                                        \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex1D<type>(cudaTextureObject_t texture, float x) {                                       \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? __lockstep_between(LOCKSTEP_AT(type, 0, x), LOCKSTEP_AT(type, 1, x),                              \
                                        __lockstep_texel_weight(texture, 0, x))                                        \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x)];                              \
    }                                                                                                                  \
    template <>                                                                                                        \
    LOCKSTEP_API inline type tex2D<type>(cudaTextureObject_t texture, float x, float y) {                              \
        return __lockstep_texels_are_filtered(texture)                                                                 \
                   ? __lockstep_between(                                                                               \
                         __lockstep_between(LOCKSTEP_AT(type, 0, 0, x, y), LOCKSTEP_AT(type, 1, 0, x, y),              \
                                            __lockstep_texel_weight(texture, 0, x)),                                   \
                         __lockstep_between(LOCKSTEP_AT(type, 0, 1, x, y), LOCKSTEP_AT(type, 1, 1, x, y),              \
                                            __lockstep_texel_weight(texture, 0, x)),                                   \
                         __lockstep_texel_weight(texture, 1, y))                                                       \
                   : ((const type *)texture)[__lockstep_texel(texture, sizeof(type), x, y)];                           \
    }
LOCKSTEP_FILTERED(float)
LOCKSTEP_FILTERED(float4)
#undef LOCKSTEP_FILTERED
#undef LOCKSTEP_AT

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
template <typename LockstepT, cudaTextureReadMode Mode>
LOCKSTEP_API LockstepT tex3D(const texture<LockstepT, 3, Mode> &, float, float, float) {
    __lockstep_texture();
    return LockstepT();
}
LOCKSTEP_TEXTURE_OBJECT(tex3D)
LOCKSTEP_TEXTURE_OBJECT(tex2DLod)
LOCKSTEP_TEXTURE_OBJECT(tex3DLod)
LOCKSTEP_TEXTURE_OBJECT(tex2DLayered)
LOCKSTEP_TEXTURE_OBJECT(texCubemap)
