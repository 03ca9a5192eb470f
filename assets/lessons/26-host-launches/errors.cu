// Reads the threads per block, n and n numbers. If a call or the launch fails, it ends with exit code 1.
#include <cstdio>
#include <vector>

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

static bool failed(cudaError_t error) {
    if (error != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}

int main() {
    int threads, n;
    if (scanf("%d %d", &threads, &n) != 2) return 2;
    std::vector<float> x(n), y(n);
    for (float &value : x)
        if (scanf("%f", &value) != 1) return 2;
    size_t bytes = n * sizeof(float);
    float *device_x, *device_y;
    if (failed(cudaMalloc(&device_x, bytes)) || failed(cudaMalloc(&device_y, bytes))) return 1;
    if (failed(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice))) return 1;
    scale<<<(n + threads - 1) / threads, threads>>>(device_x, device_y, n);
    if (failed(cudaGetLastError()) || failed(cudaDeviceSynchronize())) return 1;
    if (failed(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost))) return 1;
    for (float value : y) printf("%.9g\n", value);
    return failed(cudaFree(device_x)) || failed(cudaFree(device_y));
}
