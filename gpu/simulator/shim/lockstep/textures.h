// Textures: a fetch by element is a load; of a fetch by coordinates the executor says which element it loads. Others are
// declared so that what does not read them runs, and what does is refused by name.
#pragma once

enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3
template <typename LockstepT, int Dimensions = 1, cudaTextureReadMode Mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture {};
typedef unsigned long long cudaSurfaceObject_t;

LOCKSTEP_API void __lockstep_texture();
LOCKSTEP_API long long __lockstep_texel(cudaTextureObject_t, size_t, float);
LOCKSTEP_API long long __lockstep_texel(cudaTextureObject_t, size_t, float, float);

template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex1D(cudaTextureObject_t texture, float x) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x)];
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex2D(cudaTextureObject_t texture, float x, float y) {
    return ((const LockstepT *)texture)[__lockstep_texel(texture, sizeof(LockstepT), x, y)];
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
