// N-body: the acceleration of each of n bodies by the gravity of all, for G = 1: the sum over j of
// m_j (x_j - x_i) / (|x_j - x_i|^2 + softening^2)^(3/2). A body is (x, y, z, m). Work: n^2 interactions, which the field
// counts as 20 flop each; a GPU issues 13 instructions for one: 3 FADD, 6 FFMA, 3 FMUL and a reciprocal root. The square
// of the softening is never 0, so that a body's pull on itself is 0 and not 0/0.
//
// rung                   idea                                             what still limits it
// nbody_naive            one thread a body, all from global memory        a load from the cache for each interaction
// nbody_tiled            a block fetches a tile of bodies for all of it   a shared load for each interaction
// nbody_registers        several bodies a thread share a shared load      too few threads where bodies are few
// nbody_split            several threads a body, each a part of a tile    13 instructions for each interaction
//
// leapfrog_kick_drift    half a step of velocity, a step of place         3 launches a step; bound by memory
// leapfrog_kick          the other half, with the new accelerations
//
// nbody_potential        each body's potential, for the energy            as nbody_tiled

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif
#ifndef BODIES_PER_THREAD
#define BODIES_PER_THREAD 4
#endif
#ifndef THREADS_PER_BODY
#define THREADS_PER_BODY 8
#endif

__device__ float reciprocal_root(float x) {
#ifdef __NVCC__
    // rsqrtf() spends three more instructions on denormals.
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return rsqrtf(x);
#endif
}

// Adds to `sum` the pull of `source` on a body at `place`.
__device__ void attract(float3 &sum, float4 place, float4 source, float softening_squared) {
    float dx = source.x - place.x;
    float dy = source.y - place.y;
    float dz = source.z - place.z;
    float inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + softening_squared)));
    float pull = source.w * inverse * (inverse * inverse);
    sum.x += dx * pull;
    sum.y += dy * pull;
    sum.z += dz * pull;
}

// Idea: a thread adds up the pull of every body on its own. Limit: all threads of a warp want the same body, so a load
// is one transaction, but there is one for each interaction, and its latency.
extern "C" __global__ void nbody_naive(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 place = bodies[i];
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < n; ++j) attract(sum, place, bodies[j], softening_squared);
    accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}

// Idea: the threads of a block fetch a tile of bodies together, one each, and all read it from shared memory. Past the
// last body the tile is filled with bodies of no mass. Limit: 16 bytes from shared memory for each interaction. Source:
// Nyland, Harris, Prins, Fast N-Body Simulation with CUDA, GPU Gems 3 (2007).
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_tiled(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_SIZE + t;
    float4 place = bodies[min(i, n - 1)];
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 32
        for (int k = 0; k < BLOCK_SIZE; ++k) attract(sum, place, tile[k], softening_squared);
        __syncthreads();
    }
    if (i < n) accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}

// Idea: a thread holds several bodies in registers, so that a body read from shared memory is used for each of them.
// Limit: a thread for every few bodies leaves most of the chip idle where bodies are few.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_registers(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int first = blockIdx.x * BLOCK_SIZE * BODIES_PER_THREAD + t;
    float4 place[BODIES_PER_THREAD];
    float3 sum[BODIES_PER_THREAD];
#pragma unroll
    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
        place[r] = bodies[min(first + r * BLOCK_SIZE, n - 1)];
        sum[r] = make_float3(0.0f, 0.0f, 0.0f);
    }
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BLOCK_SIZE; ++k) {
            float4 source = tile[k];
#pragma unroll
            for (int r = 0; r < BODIES_PER_THREAD; ++r) attract(sum[r], place[r], source, softening_squared);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < BODIES_PER_THREAD; ++r) {
        int i = first + r * BLOCK_SIZE;
        if (i < n) accelerations[i] = make_float4(sum[r].x, sum[r].y, sum[r].z, 0.0f);
    }
}

// Idea: THREADS_PER_BODY threads share a body. Each takes another part of every tile; at the end their sums, laid out in
// shared memory, are added. The lanes of a warp share a part, so that they still read the same body. Limit: none of the
// chip's idleness, but each interaction takes 13 instructions.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_split(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    const int BODIES = BLOCK_SIZE / THREADS_PER_BODY;
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int part = t / BODIES;
    int i = blockIdx.x * BODIES + t % BODIES;
    float4 place = bodies[min(i, n - 1)];
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 32
        for (int k = 0; k < BODIES; ++k) attract(sum, place, tile[part * BODIES + k], softening_squared);
        __syncthreads();
    }
    tile[t] = make_float4(sum.x, sum.y, sum.z, 0.0f);
    __syncthreads();
    if (part > 0 || i >= n) return;
    for (int p = 1; p < THREADS_PER_BODY; ++p) {
        float4 other = tile[p * BODIES + t];
        sum.x += other.x;
        sum.y += other.y;
        sum.z += other.z;
    }
    accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}

// Leapfrog, kick-drift-kick: second order, and reversible in time. Places move by a whole step with the velocity that
// half a step of acceleration gave.
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

// The second kick, with the accelerations at the new places.
extern "C" __global__ void leapfrog_kick(float4 *velocities, const float4 *accelerations, float half_step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 velocity = velocities[i], acceleration = accelerations[i];
    velocity.x += acceleration.x * half_step;
    velocity.y += acceleration.y * half_step;
    velocity.z += acceleration.z * half_step;
    velocities[i] = velocity;
}

// The potential at each body of all others. Sums of a tile are float, their total is double: energies are compared over
// many steps, where float's rounding would be taken for drift.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_potential(const float4 *bodies, double *potentials, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_SIZE + t;
    float4 place = bodies[min(i, n - 1)];
    double total = 0.0;
    for (int start = 0; start < n; start += BLOCK_SIZE) {
        tile[t] = start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        float sum = 0.0f;
        for (int k = 0; k < BLOCK_SIZE; ++k) {
            float4 source = tile[k];
            float dx = source.x - place.x, dy = source.y - place.y, dz = source.z - place.z;
            float inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + softening_squared)));
            sum += start + k == i ? 0.0f : source.w * inverse;
        }
        total -= sum;
        __syncthreads();
    }
    if (i < n) potentials[i] = total;
}
