// N-body over several devices: each has some of the bodies, and before it computes what pulls them it gathers the places
// of all, its own first. The forces, and the steps of time, are those of nbody.cu.
//
// kernel        idea
// nbody_gather  the bodies of a chunk go to their place among all

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Limit: 32 bytes of memory's bandwidth a body, and what the device that had it sends.
extern "C" __global__ void nbody_gather(const float4 *chunk, float4 *all, int first, int count) {
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (i < count) all[first + i] = chunk[i];
}
