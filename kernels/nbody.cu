// N-body: the acceleration of each of n bodies by the gravity of all, for G = 1: the sum over j of m_j (x_j - x_i) /
// (|x_j - x_i|^2 + softening^2)^(3/2). A body is (x, y, z, m). Work: n^2 interactions, usually counted as 20 flop each;
// a GPU issues 13 instructions for one: 3 FADD, 6 FFMA, 3 FMUL and a reciprocal root. The squared softening is never 0,
// so that a body's force on itself is 0 and not 0/0.
//
// variant                idea                                             what still limits it
// nbody_naive            one thread per body, global memory only          a load from the cache for each interaction
// nbody_tiled            shared-memory tiling                             a shared load for each interaction
// nbody_registers        several bodies per thread share a load           too few threads for few bodies
// nbody_split            several threads per body share a tile            13 instructions for each interaction
// nbody_pairs            each pair once: 17 instructions for two          4 of 5 issue slots used; order of sums varies
//
// leapfrog_kick_drift    half a velocity step, one position step          3 launches per step; memory bandwidth
// leapfrog_kick          the second half, with the new accelerations
//
// nbody_potential        each block's share of the potential energy       as nbody_tiled
// nbody_moments          and of the other conserved quantities            memory bandwidth

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif
#ifndef BODIES_PER_THREAD
#define BODIES_PER_THREAD 4
#endif
#ifndef THREADS_PER_BODY
#define THREADS_PER_BODY 8
#endif
#ifndef PAIR_BLOCK
#define PAIR_BLOCK 128
#endif

__device__ float reciprocal_root(float x) {
#ifdef __NVCC__
    // rsqrtf() uses three more instructions for denormals.
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return rsqrtf(x);
#endif
}

// The acceleration by a mass per unit of distance.
__device__ float pull_of(float mass, float dx, float dy, float dz, float softening_squared) {
    float inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + softening_squared)));
    return mass * inverse * (inverse * inverse);
}

// Idea: each thread sums the accelerations by all bodies. Limit: all lanes of a warp load the same body, which is one
// transaction, but there is one per interaction, with its latency.
extern "C" __global__ void nbody_naive(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = bodies[i].x, y = bodies[i].y, z = bodies[i].z;
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < n; ++j) {
        float dx = bodies[j].x - x, dy = bodies[j].y - y, dz = bodies[j].z - z;
        float pull = pull_of(bodies[j].w, dx, dy, dz, softening_squared);
        ax += dx * pull;
        ay += dy * pull;
        az += dz * pull;
    }
    accelerations[i] = make_float4(ax, ay, az, 0.0f);
}

// Idea: shared-memory tiling. The threads of a block load a tile of bodies together, one each, and all read it. After
// the last body the tile is padded with bodies of no mass. Limit: 16 bytes from shared memory for each interaction.
// Source: Nyland, Harris, Prins, Fast N-Body Simulation with CUDA, GPU Gems 3 (2007).
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_tiled(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_SIZE + t;
    float4 place = bodies[min(i, n - 1)];
    float x = place.x, y = place.y, z = place.z;
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        // phase: load tile at {start}
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        // phase: pulls of tile at {start}
#pragma unroll 32
        for (int k = 0; k < BLOCK_SIZE; ++k) {
            float dx = tile[k].x - x, dy = tile[k].y - y, dz = tile[k].z - z;
            float pull = pull_of(tile[k].w, dx, dy, dz, softening_squared);
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }
    // phase: write
    if (i < n) accelerations[i] = make_float4(ax, ay, az, 0.0f);
}

// Idea: register tiling. A thread has several bodies in registers, and reuses each shared load for all of them. The
// gain is small where shared memory broadcasts a word to a warp as fast as on an H200. Limit: one thread per several
// bodies leaves most of the chip idle if there are few bodies.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_registers(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int first = blockIdx.x * BLOCK_SIZE * BODIES_PER_THREAD + t;
    float x[BODIES_PER_THREAD], y[BODIES_PER_THREAD], z[BODIES_PER_THREAD];
    float ax[BODIES_PER_THREAD], ay[BODIES_PER_THREAD], az[BODIES_PER_THREAD];
#pragma unroll
    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
        float4 place = bodies[min(first + r * BLOCK_SIZE, n - 1)];
        x[r] = place.x, y[r] = place.y, z[r] = place.z;
        ax[r] = ay[r] = az[r] = 0.0f;
    }
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        // phase: load tile at {start}
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        // phase: pulls of tile at {start}
#pragma unroll 32
        for (int k = 0; k < BLOCK_SIZE; ++k) {
#pragma unroll
            for (int r = 0; r < BODIES_PER_THREAD; ++r) {
                float dx = tile[k].x - x[r], dy = tile[k].y - y[r], dz = tile[k].z - z[r];
                float pull = pull_of(tile[k].w, dx, dy, dz, softening_squared);
                ax[r] += dx * pull;
                ay[r] += dy * pull;
                az[r] += dz * pull;
            }
        }
        __syncthreads();
    }
    // phase: write
#pragma unroll
    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
        int i = first + r * BLOCK_SIZE;
        if (i < n) accelerations[i] = make_float4(ax[r], ay[r], az[r], 0.0f);
    }
}

// Idea: THREADS_PER_BODY threads share a body. Each processes a different part of every tile; finally their sums are
// added in shared memory. The lanes of a warp have the same part, so that they still read the same body. As a tile
// takes little time, a block would mostly wait for the next one, so a thread loads its body of the next tile before it
// processes this one. Limit: no longer idle threads, but 13 instructions for each interaction.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_split(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    const int BODIES = BLOCK_SIZE / THREADS_PER_BODY;
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int part = t / BODIES;
    int i = blockIdx.x * BODIES + t % BODIES;
    float4 place = bodies[min(i, n - 1)];
    float x = place.x, y = place.y, z = place.z;
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    float4 next = t < n ? bodies[t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        // phase: load tile at {start}
        tile[t] = next;
        __syncthreads();
        int ahead = start + BLOCK_SIZE + t;
        next = ahead < n ? bodies[ahead] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        // phase: pulls of tile at {start}
#pragma unroll 32
        for (int k = 0; k < BODIES; ++k) {
            int j = part * BODIES + k;
            float dx = tile[j].x - x, dy = tile[j].y - y, dz = tile[j].z - z;
            float pull = pull_of(tile[j].w, dx, dy, dz, softening_squared);
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }
    // phase: add the parts
    tile[t] = make_float4(ax, ay, az, 0.0f);
    __syncthreads();
    if (part > 0 || i >= n) return;
    for (int p = 1; p < THREADS_PER_BODY; ++p) {
        ax += tile[p * BODIES + t].x;
        ay += tile[p * BODIES + t].y;
        az += tile[p * BODIES + t].z;
    }
    // phase: write
    accelerations[i] = make_float4(ax, ay, az, 0.0f);
}

// Idea: the forces of a pair are equal and opposite (Newton's third law), so each pair is computed once. Bodies are
// divided into tiles of 32 * BODIES_PER_THREAD; a warp holds a tile in registers, and processes `tiles_per_warp` of the
// following tiles, up to half way around the circle of tiles, so that every two tiles meet once. It processes 32 bodies
// of such a tile at a time. A lane begins with one of them and continues with its neighbor's, 32 times around, while
// the sum for that body is passed on to the next lane. Accelerations are added by atomics and begin as zeros; their
// last bits depend on the order. Limit: 16 floating-point instructions and a reciprocal root for two interactions,
// which dominate all else: on an H200 they use four of five issue slots.
extern "C" __global__ void __launch_bounds__(PAIR_BLOCK)
    nbody_pairs(const float4 *bodies, float4 *accelerations, int n, float softening_squared, int tiles,
                int tiles_per_warp) {
    const int TILE = 32 * BODIES_PER_THREAD;
    // Each body twice, so that a lane finds its neighbors' bodies after its own.
    __shared__ float4 around[PAIR_BLOCK / 32][64];
    int lane = threadIdx.x % 32;
    float4 *sources = around[threadIdx.x / 32];
    int task = (blockIdx.x * PAIR_BLOCK + threadIdx.x) / 32;
    int own = task % tiles;
    int first = task / tiles * tiles_per_warp;
    // With an even number of tiles, opposite ones would meet twice.
    int end = min(first + tiles_per_warp, tiles / 2 + (tiles % 2 == 1 || own < tiles / 2));
    if (first >= end) return;

    float4 place[BODIES_PER_THREAD];
    float3 sum[BODIES_PER_THREAD];
#pragma unroll
    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
        int i = own * TILE + r * 32 + lane;
        place[r] = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        sum[r] = make_float3(0.0f, 0.0f, 0.0f);
    }
    for (int away = first; away < end; ++away) {
        int start = (own + away) % tiles * TILE;
        for (int j = start + lane; j - lane < min(start + TILE, n); j += 32) {
            float4 mine = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            __syncwarp();
            sources[lane] = mine;
            sources[lane + 32] = mine;
            __syncwarp();
            if (away == 0) {
                // A tile with itself: each pair is computed from both sides.
#pragma unroll 4
                for (int k = 0; k < 32; ++k) {
                    float4 source = sources[lane + k];
#pragma unroll
                    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
                        float dx = source.x - place[r].x, dy = source.y - place[r].y, dz = source.z - place[r].z;
                        float pull = pull_of(source.w, dx, dy, dz, softening_squared);
                        sum[r].x += dx * pull;
                        sum[r].y += dy * pull;
                        sum[r].z += dz * pull;
                    }
                }
                continue;
            }
            float3 back = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll 8
            for (int k = 0; k < 32; ++k) {
                float4 source = sources[lane + k];
#pragma unroll
                for (int r = 0; r < BODIES_PER_THREAD; ++r) {
                    float dx = source.x - place[r].x, dy = source.y - place[r].y, dz = source.z - place[r].z;
                    float inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + softening_squared)));
                    float cube = inverse * inverse * inverse;
                    float there = source.w * cube, here = place[r].w * cube;
                    sum[r].x += dx * there;
                    sum[r].y += dy * there;
                    sum[r].z += dz * there;
                    back.x -= dx * here;
                    back.y -= dy * here;
                    back.z -= dz * here;
                }
                back.x = __shfl_sync(0xffffffffu, back.x, (lane + 1) % 32);
                back.y = __shfl_sync(0xffffffffu, back.y, (lane + 1) % 32);
                back.z = __shfl_sync(0xffffffffu, back.z, (lane + 1) % 32);
            }
            if (j < n) {
                atomicAdd(&accelerations[j].x, back.x);
                atomicAdd(&accelerations[j].y, back.y);
                atomicAdd(&accelerations[j].z, back.z);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
        int i = own * TILE + r * 32 + lane;
        if (i < n) {
            atomicAdd(&accelerations[i].x, sum[r].x);
            atomicAdd(&accelerations[i].y, sum[r].y);
            atomicAdd(&accelerations[i].z, sum[r].z);
        }
    }
}

// Leapfrog integration (kick-drift-kick): second order, and time-reversible. Positions move by a whole step with the
// velocity after half a step of acceleration.
extern "C" __global__ void leapfrog_kick_drift(float4 *bodies, float4 *velocities, const float4 *accelerations,
                                               float half_step, float step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 body = bodies[i], velocity = velocities[i], acceleration = accelerations[i];
    velocity.x += acceleration.x * half_step;
    velocity.y += acceleration.y * half_step;
    velocity.z += acceleration.z * half_step;
    body.x += velocity.x * step;
    body.y += velocity.y * step;
    body.z += velocity.z * step;
    velocities[i] = velocity;
    bodies[i] = body;
}

// The second kick, with the accelerations at the new positions.
extern "C" __global__ void leapfrog_kick(float4 *velocities, const float4 *accelerations, float half_step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 velocity = velocities[i], acceleration = accelerations[i];
    velocity.x += acceleration.x * half_step;
    velocity.y += acceleration.y * half_step;
    velocity.z += acceleration.z * half_step;
    velocities[i] = velocity;
}

// Sum a block's values in `parts`; the result is in the first element.
__device__ void fold(double *parts) {
    for (int half = BLOCK_SIZE / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
}

// The potentials of a block's bodies times their masses, which counts each pair twice. Sums of a tile are float, all
// others double: energies are compared over many steps, where float rounding would look like drift. A block's result is
// the last of its 8 values in `conserved`. BLOCK_SIZE is a power of two.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_potential(const float4 *bodies, double *conserved, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK_SIZE];
    __shared__ double parts[BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_SIZE + t;
    float4 place = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float x = place.x, y = place.y, z = place.z;
    double total = 0.0;
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        float sum = 0.0f;
        if (start == blockIdx.x * BLOCK_SIZE) {
            // A body's interaction with itself is finite, and excluded.
            for (int k = 0; k < BLOCK_SIZE; ++k) {
                float dx = tile[k].x - x, dy = tile[k].y - y, dz = tile[k].z - z;
                float inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + softening_squared)));
                sum += tile[k].w * inverse * (float)(k != t);
            }
        } else {
#pragma unroll 32
            for (int k = 0; k < BLOCK_SIZE; ++k) {
                float dx = tile[k].x - x, dy = tile[k].y - y, dz = tile[k].z - z;
                sum += tile[k].w * reciprocal_root(dx * dx + (dy * dy + (dz * dz + softening_squared)));
            }
        }
        total -= sum;
        __syncthreads();
    }
    parts[t] = total * place.w;
    fold(parts);
    if (t == 0) conserved[8 * blockIdx.x + 7] = parts[0];
}

// A block's kinetic energy, momentum and angular momentum about the origin: the first 7 of its 8 values.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_moments(const float4 *bodies, const float4 *velocities, double *conserved, int n) {
    __shared__ double parts[BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_SIZE + t;
    float4 body = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 velocity = i < n ? velocities[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    double m = body.w, x = body.x, y = body.y, z = body.z, vx = velocity.x, vy = velocity.y, vz = velocity.z;
    double own[7] = {m * (vx * vx + vy * vy + vz * vz) / 2,
                     m * vx,
                     m * vy,
                     m * vz,
                     m * (y * vz - z * vy),
                     m * (z * vx - x * vz),
                     m * (x * vy - y * vx)};
    // One after the other: seven arrays of a block's doubles would exceed shared memory.
#pragma unroll
    for (int k = 0; k < 7; ++k) {
        parts[t] = own[k];
        fold(parts);
        if (t == 0) conserved[8 * blockIdx.x + k] = parts[0];
    }
}
