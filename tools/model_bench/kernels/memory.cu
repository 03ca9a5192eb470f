// Kernels from tutorials and samples, none of them ours: streaming, strides, gathers and pointer chasing. The timing
// model is tested on them and never tuned to them.

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void copy_vectors(const float4 *from, float4 *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

extern "C" __global__ void copy_strided(const float *from, float *to, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[(size_t)i * stride];
}

extern "C" __global__ void gather(const int *places, const float *from, float *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[places[i]];
}

extern "C" __global__ void scatter(const int *places, const float *from, float *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[places[i]] = from[i];
}

// A linked list that each thread follows from another start.
extern "C" __global__ void follow(const int *next, int *ends, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int place = i % n;
    for (int step = 0; step < steps; ++step) place = next[place];
    ends[i] = place;
}

struct Particle {
    float x, y, z, vx, vy, vz, mass;
};

extern "C" __global__ void move_particles(Particle *particles, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = particles[i];
    p.vy -= 9.81f * dt;
    p.x += p.vx * dt;
    p.y += p.vy * dt;
    p.z += p.vz * dt;
    particles[i] = p;
}

extern "C" __global__ void daxpy(double a, const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void gray(const uchar3 *colors, unsigned char *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar3 c = colors[i];
    result[i] = (unsigned char)(0.299f * c.x + 0.587f * c.y + 0.114f * c.z);
}
