// Surfaces: elements that are read and written by coordinates, of which x counts bytes. The executor says which element
// lies there; beyond the edges there is none where that is allowed.
#pragma once

typedef unsigned char *cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

LOCKSTEP_API long long __lockstep_surfel(cudaSurfaceObject_t, size_t, int, int);
LOCKSTEP_API long long __lockstep_surfel(cudaSurfaceObject_t, size_t, int, int, int);
LOCKSTEP_API long long __lockstep_surfel(cudaSurfaceObject_t, size_t, int, int, int, int);

// The name, its coordinates as parameters and as arguments.
#define LOCKSTEP_UNPACKED(...) __VA_ARGS__
#define LOCKSTEP_SURFEL(boundary, at) __lockstep_surfel(surface, sizeof(LockstepT), boundary, LOCKSTEP_UNPACKED at)
#define LOCKSTEP_SURFACE(kind, parameters, at)                                                                         \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline LockstepT surf##kind##read(cudaSurfaceObject_t surface, LOCKSTEP_UNPACKED parameters,          \
                                                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {              \
        long long place = mode == cudaBoundaryModeZero    ? LOCKSTEP_SURFEL(0, at)                                     \
                          : mode == cudaBoundaryModeClamp ? LOCKSTEP_SURFEL(1, at)                                     \
                                                          : LOCKSTEP_SURFEL(2, at);                                    \
        LockstepT found = LockstepT();                                                                                 \
        if (place >= 0) found = ((const LockstepT *)surface)[place];                                                   \
        return found;                                                                                                  \
    }                                                                                                                  \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline void surf##kind##read(LockstepT *found, cudaSurfaceObject_t surface,                           \
                                              LOCKSTEP_UNPACKED parameters,                                            \
                                              cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                   \
        *found = surf##kind##read<LockstepT>(surface, LOCKSTEP_UNPACKED at, mode);                                     \
    }                                                                                                                  \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline void surf##kind##write(LockstepT value, cudaSurfaceObject_t surface,                           \
                                               LOCKSTEP_UNPACKED parameters,                                           \
                                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                  \
        long long place = mode == cudaBoundaryModeZero    ? LOCKSTEP_SURFEL(0, at)                                     \
                          : mode == cudaBoundaryModeClamp ? LOCKSTEP_SURFEL(1, at)                                     \
                                                          : LOCKSTEP_SURFEL(2, at);                                    \
        if (place >= 0) ((LockstepT *)surface)[place] = value;                                                         \
    }
LOCKSTEP_SURFACE(1D, (int x), (x))
LOCKSTEP_SURFACE(2D, (int x, int y), (x, y))
LOCKSTEP_SURFACE(3D, (int x, int y, int z), (x, y, z))
LOCKSTEP_SURFACE(2DLayered, (int x, int y, int layer), (x, y, layer))
#undef LOCKSTEP_SURFACE
#undef LOCKSTEP_SURFEL
#undef LOCKSTEP_UNPACKED
