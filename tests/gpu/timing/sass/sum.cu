__device__ float folded(float value) {
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_down_sync(0xffffffffu, value, apart);
    return value;
}
extern "C" __global__ void sum(const float *from, float *to, int n) {
    float mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine += from[i];
    mine = folded(mine);
    if (threadIdx.x % 32 == 0) atomicAdd(to, mine);
}
extern "C" __global__ void keep_apart(float *at, const int *p, int n) {
    float kept[5];
    for (int i = 0; i < 5; ++i) kept[i] = at[i * n];
    for (int i = 0; i < n; ++i) kept[p[i]] += at[p[i]];
    for (int i = 0; i < 5; ++i) at[i * n] = kept[i];
}
