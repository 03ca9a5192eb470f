// Reads the size of a chunk, n and n numbers; doubles the numbers chunk by chunk in two streams, and prints them.
#include <algorithm>
#include <cstdio>

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

int main() {
    int chunk, n;
    if (scanf("%d %d", &chunk, &n) != 2) return 1;
    size_t bytes = n * sizeof(float);
    float *x, *y, *device_x, *device_y;
    cudaMallocHost(&x, bytes);
    cudaMallocHost(&y, bytes);
    cudaMalloc(&device_x, bytes);
    cudaMalloc(&device_y, bytes);
    for (int i = 0; i < n; ++i)
        if (scanf("%f", &x[i]) != 1) return 1;
    cudaStream_t streams[2];
    for (cudaStream_t &stream : streams) cudaStreamCreate(&stream);
    // gap: for each chunk: copy it to the GPU, launch scale, copy the result to y, all in one stream; wait at the end
    for (int first = 0, number = 0; first < n; first += chunk, ++number) {
        cudaStream_t stream = streams[number % 2];
        int count = std::min(chunk, n - first);
        cudaMemcpyAsync(device_x + first, x + first, count * sizeof(float), cudaMemcpyHostToDevice, stream);
        scale<<<(count + 127) / 128, 128, 0, stream>>>(device_x + first, device_y + first, count);
        cudaMemcpyAsync(y + first, device_y + first, count * sizeof(float), cudaMemcpyDeviceToHost, stream);
    }
    cudaDeviceSynchronize();
    // end
    for (int i = 0; i < n; ++i) printf("%.9g\n", y[i]);
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
    cudaFree(device_x);
    cudaFree(device_y);
    cudaFreeHost(x);
    cudaFreeHost(y);
    return 0;
}
