// Reads n and n numbers, doubles them on the GPU, and prints them.
#include <cstdio>
#include <vector>

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

int main() {
    int n;
    if (scanf("%d", &n) != 1) return 1;
    std::vector<float> x(n), y(n);
    for (float &value : x)
        if (scanf("%f", &value) != 1) return 1;
    float *device_x, *device_y;
    // gap: allocate device_x and device_y, copy x to the GPU, launch scale, copy the result to y, free both
    size_t bytes = n * sizeof(float);
    cudaMalloc(&device_x, bytes);
    cudaMalloc(&device_y, bytes);
    cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice);
    scale<<<(n + 127) / 128, 128>>>(device_x, device_y, n);
    cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost);
    cudaFree(device_x);
    cudaFree(device_y);
    // end
    for (float value : y) printf("%.9g\n", value);
    return 0;
}
