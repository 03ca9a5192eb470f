// Reads n and n numbers. One stream computes, the other copies the result back; an event orders the two.
#include <cstdio>

__global__ void square(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * x[i];
}

int main() {
    int n;
    if (scanf("%d", &n) != 1) return 1;
    size_t bytes = n * sizeof(float);
    float *x, *device_x;
    cudaMallocHost(&x, bytes);
    cudaMalloc(&device_x, bytes);
    for (int i = 0; i < n; ++i)
        if (scanf("%f", &x[i]) != 1) return 1;
    cudaStream_t compute, copy;
    cudaStreamCreate(&compute);
    cudaStreamCreate(&copy);
    cudaEvent_t ready;
    cudaEventCreate(&ready);
    cudaMemcpyAsync(device_x, x, bytes, cudaMemcpyHostToDevice, compute);
    square<<<(n + 127) / 128, 128, 0, compute>>>(device_x, n);
    cudaEventRecord(ready, compute);
    cudaStreamWaitEvent(copy, ready);
    cudaMemcpyAsync(x, device_x, bytes, cudaMemcpyDeviceToHost, copy);
    cudaStreamSynchronize(copy);
    for (int i = 0; i < n; ++i) printf("%.9g\n", x[i]);
    cudaEventDestroy(ready);
    cudaStreamDestroy(compute);
    cudaStreamDestroy(copy);
    cudaFree(device_x);
    cudaFreeHost(x);
    return 0;
}
