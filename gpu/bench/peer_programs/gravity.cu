// N-body as commonly written, as a peer. Prints the milliseconds of each repetition.
// Arguments: bodies per thread (1, 2 or 4), bodies (a multiple of 1024), seed, warm-up rounds, repetitions. One body per
// thread with a tile in shared memory is what CUDA's own sample does; several per thread is the usual next step.
#include "timing.cuh"

const int BLOCK = 256;

template <int BODIES>
__global__ void gravity(const float4 *bodies, float4 *accelerations, int n, float softening_squared) {
    __shared__ float4 tile[BLOCK];
    float4 place[BODIES];
    float3 sum[BODIES];
    int first = blockIdx.x * BLOCK * BODIES + threadIdx.x;
    for (int r = 0; r < BODIES; ++r) {
        place[r] = bodies[first + r * BLOCK];
        sum[r] = make_float3(0.0f, 0.0f, 0.0f);
    }
    for (int start = 0; start < n; start += BLOCK) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int j = 0; j < BLOCK; ++j) {
            float4 body = tile[j];
#pragma unroll
            for (int r = 0; r < BODIES; ++r) {
                float dx = body.x - place[r].x, dy = body.y - place[r].y, dz = body.z - place[r].z;
                float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening_squared);
                float pull = body.w * inverse * inverse * inverse;
                sum[r].x += dx * pull;
                sum[r].y += dy * pull;
                sum[r].z += dz * pull;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < BODIES; ++r) accelerations[first + r * BLOCK] = make_float4(sum[r].x, sum[r].y, sum[r].z, 0.0f);
}

int main(int, char **arguments) {
    int per_thread = atoi(arguments[1]), n = atoi(arguments[2]);
    int warm_up = atoi(arguments[4]), repetitions = atoi(arguments[5]);
    float4 *bodies, *accelerations;
    CHECK(cudaMalloc(&bodies, n * sizeof(float4)));
    CHECK(cudaMalloc(&accelerations, n * sizeof(float4)));
    fill_fractions<<<n * 4 / BLOCK, BLOCK>>>((float *)bodies, n * 4, atoi(arguments[3]));
    auto kernel = per_thread == 1 ? gravity<1> : per_thread == 2 ? gravity<2> : gravity<4>;
    time_rounds(warm_up, repetitions,
                [&] { kernel<<<n / (BLOCK * per_thread), BLOCK>>>(bodies, accelerations, n, 0.0009f); });
    return 0;
}
