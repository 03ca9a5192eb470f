// N-body on several devices: each has some of the bodies, and gathers the positions of all, its own first, before it
// computes accelerations. Forces and time steps are those of nbody.cu.
//
// kernel        idea
// nbody_gather  copies the bodies of a chunk to their positions among all

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Limit: 32 bytes of memory traffic per body, and the transfer from its device.
extern "C" __global__ void nbody_gather(const float4 *chunk, float4 *all, int first, int count) {
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (i < count) all[first + i] = chunk[i];
}
