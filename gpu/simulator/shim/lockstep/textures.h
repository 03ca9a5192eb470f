// Textures are declared so that what does not read them runs, and what does is refused by name.
#pragma once

enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3
template <typename LockstepT, int Dimensions = 1, cudaTextureReadMode Mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture {};
typedef unsigned long long cudaSurfaceObject_t;

LOCKSTEP_API void __lockstep_texture();

#define LOCKSTEP_TEXTURE(name)                                                                                         \
    template <typename LockstepT, int Dimensions, cudaTextureReadMode Mode, typename... Places>                        \
    LOCKSTEP_API LockstepT name(texture<LockstepT, Dimensions, Mode>, Places...) {                                     \
        __lockstep_texture();                                                                                          \
        return LockstepT();                                                                                            \
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
LOCKSTEP_TEXTURE_OBJECT(tex1D)
LOCKSTEP_TEXTURE_OBJECT(tex2D)
LOCKSTEP_TEXTURE_OBJECT(tex3D)
LOCKSTEP_TEXTURE_OBJECT(tex2DLod)
LOCKSTEP_TEXTURE_OBJECT(tex3DLod)
LOCKSTEP_TEXTURE_OBJECT(tex2DLayered)
LOCKSTEP_TEXTURE_OBJECT(texCubemap)
