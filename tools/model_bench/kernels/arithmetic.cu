// Kernels from tutorials and samples, none of them ours: more arithmetic than memory traffic.

__device__ float normal_below(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail =
        0.39894228f * __expf(-0.5f * d * d) *
        (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call,
                                         float *put, float rate, float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 5.0f + 25.0f * price[i], x = 1.0f + 99.0f * strike[i], t = 0.25f + 9.75f * years[i];
    float root = sqrtf(t);
    float d1 = (__logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float c1 = normal_below(d1), c2 = normal_below(d2), discount = __expf(-rate * t);
    call[i] = s * c1 - x * discount * c2;
    put[i] = x * discount * (1.0f - c2) - s * (1.0f - c1);
}

extern "C" __global__ void mandelbrot(int *counts, int width, int height, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float cx = -2.0f + 3.0f * x / width, cy = -1.0f + 2.0f * y / height, zx = 0, zy = 0;
    int count = 0;
    while (zx * zx + zy * zy < 4.0f && count < most) {
        float next = zx * zx - zy * zy + cx;
        zy = 2.0f * zx * zy + cy;
        zx = next;
        ++count;
    }
    counts[y * width + x] = count;
}

extern "C" __global__ void monte_carlo(unsigned int *inside, int rounds, unsigned int seed) {
    unsigned int state = seed ^ ((blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761u), hits = 0;
    for (int round = 0; round < rounds; ++round) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float x = (state >> 8) * (1.0f / 16777216.0f);
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float y = (state >> 8) * (1.0f / 16777216.0f);
        hits += x * x + y * y < 1.0f;
    }
    atomicAdd(inside, hits);
}

// A polynomial by Horner's rule: each step depends on the one before.
extern "C" __global__ void horner(const float *x, float *y, int degree, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i], sum = 0;
    for (int k = degree; k >= 0; --k) sum = sum * value + 1.0f / (k + 1);
    y[i] = sum;
}

extern "C" __global__ void multiply_add_four(float *values, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = values[i], b = a + 1, c = a + 2, d = a + 3;
    for (int round = 0; round < rounds; ++round) {
        a = a * 0.999f + 0.5f;
        b = b * 0.998f + 0.25f;
        c = c * 0.997f + 0.125f;
        d = d * 0.996f + 0.0625f;
    }
    values[i] = a + b + c + d;
}

extern "C" __global__ void waves(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __sinf(x[i]) * __expf(-x[i]) + __cosf(2 * x[i]) * rsqrtf(1 + x[i] * x[i]);
}

extern "C" __global__ void collatz(int *lengths, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long value = i + 1;
    int length = 0;
    while (value != 1) {
        value = value & 1 ? 3 * value + 1 : value >> 1;
        ++length;
    }
    lengths[i] = length;
}
