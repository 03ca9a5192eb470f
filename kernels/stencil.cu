// 7-point stencil: each point of a three-dimensional grid becomes `center` times itself plus `around` times the sum of
// its six neighbors, as in a step of heat conduction or of Jacobi's method. Points outside are zero. Points are
// float32, x fastest, then y, then z: planes x rows x columns, of any size. Minimum traffic: 8 bytes per point, read
// once and written once; 8 operations.
//
// variant             idea                                            what still limits it
// stencil_naive       one thread per point, seven loads               each point is loaded seven times
// stencil_tiled       a cube and its halo in shared memory            half of the loads are halo
// stencil_coarse      loop along z, three planes in shared memory     planes are copied within shared memory
// stencil_registers   neighbors along z in registers                  two barriers per plane, loads of one float
// stencil_vectors     four points per thread, no shared memory        memory bandwidth

// Points along each edge of a cube of stencil_tiled: its blocks have two more threads along each.
#ifndef TILE
#define TILE 8
#endif

// Points along each edge of a face of stencil_coarse and stencil_registers, whose blocks have two more threads, and
// planes per block of these and of stencil_vectors.
#ifndef FACE
#define FACE 30
#define LENGTH 32
#endif

__device__ float point(const float *in, int z, int y, int x, int planes, int rows, int columns) {
    bool inside = 0 <= z && z < planes && 0 <= y && y < rows && 0 <= x && x < columns;
    return inside ? in[(z * rows + y) * columns + x] : 0.0f;
}

// Idea: one thread per point, lanes along a row; the point and its six neighbors come from global memory. Limit: each
// point is loaded seven times, mostly from the caches: seven loads for eight operations.
extern "C" __global__ void stencil_naive(const float *in, float *out, int planes, int rows, int columns, float center,
                                         float around) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= columns || y >= rows || z >= planes) return;
    // phase: add the neighbors
    float sum = point(in, z - 1, y, x, planes, rows, columns) + point(in, z + 1, y, x, planes, rows, columns) +
                point(in, z, y - 1, x, planes, rows, columns) + point(in, z, y + 1, x, planes, rows, columns) +
                point(in, z, y, x - 1, planes, rows, columns) + point(in, z, y, x + 1, planes, rows, columns);
    // phase: write
    int place = (z * rows + y) * columns + x;
    out[place] = center * in[place] + around * sum;
}

// Idea: shared-memory tiling. A block loads a cube and its halo, one point per thread; the inner threads compute (Kirk
// and Hwu, Programming Massively Parallel Processors, ch. 8). Limit: blocks allow no larger cubes: of 10 x 10 x 10
// loaded points only 8 x 8 x 8 are results, and half of the threads compute nothing.
extern "C" __global__ void stencil_tiled(const float *in, float *out, int planes, int rows, int columns, float center,
                                         float around) {
    __shared__ float tile[TILE + 2][TILE + 2][TILE + 2];
    int i = threadIdx.x;
    int j = threadIdx.y;
    int k = threadIdx.z;
    int x = blockIdx.x * TILE + i - 1;
    int y = blockIdx.y * TILE + j - 1;
    int z = blockIdx.z * TILE + k - 1;
    // phase: load the tile
    tile[k][j][i] = point(in, z, y, x, planes, rows, columns);
    __syncthreads();
    // phase: add the neighbors
    bool inner = i > 0 && i <= TILE && j > 0 && j <= TILE && k > 0 && k <= TILE;
    if (inner && x < columns && y < rows && z < planes) {
        float sum = tile[k - 1][j][i] + tile[k + 1][j][i] + tile[k][j - 1][i] + tile[k][j + 1][i] + tile[k][j][i - 1] +
                    tile[k][j][i + 1];
        out[(z * rows + y) * columns + x] = center * tile[k][j][i] + around * sum;
    }
}

// Idea: thread coarsening. A block covers a face, far wider than a cube's, and loops along z with three planes in
// shared memory: it loads one, and computes the middle one. Limit: planes are copied within shared memory, though along
// z each thread needs only its own points.
extern "C" __global__ void stencil_coarse(const float *in, float *out, int planes, int rows, int columns, float center,
                                          float around) {
    __shared__ float below[FACE + 2][FACE + 2];
    __shared__ float here[FACE + 2][FACE + 2];
    __shared__ float above[FACE + 2][FACE + 2];
    int i = threadIdx.x;
    int j = threadIdx.y;
    int x = blockIdx.x * FACE + i - 1;
    int y = blockIdx.y * FACE + j - 1;
    int first = blockIdx.z * LENGTH;
    bool writes = i > 0 && i <= FACE && j > 0 && j <= FACE && x < columns && y < rows;
    // phase: load the first planes
    below[j][i] = point(in, first - 1, y, x, planes, rows, columns);
    here[j][i] = point(in, first, y, x, planes, rows, columns);
    for (int z = first; z < first + LENGTH && z < planes; ++z) {
        // phase: load the plane above {z}
        above[j][i] = point(in, z + 1, y, x, planes, rows, columns);
        __syncthreads();
        // phase: add around plane {z}
        if (writes) {
            float sum = below[j][i] + above[j][i] + here[j - 1][i] + here[j + 1][i] + here[j][i - 1] + here[j][i + 1];
            out[(z * rows + y) * columns + x] = center * here[j][i] + around * sum;
        }
        __syncthreads();
        below[j][i] = here[j][i];
        here[j][i] = above[j][i];
    }
}

// Idea: a thread keeps its neighbors along z in registers; only one plane remains in shared memory, for neighbors in x
// and y. Limit: two barriers per plane, and each load fetches one float.
extern "C" __global__ void stencil_registers(const float *in, float *out, int planes, int rows, int columns,
                                             float center, float around) {
    __shared__ float here[FACE + 2][FACE + 2];
    int i = threadIdx.x;
    int j = threadIdx.y;
    int x = blockIdx.x * FACE + i - 1;
    int y = blockIdx.y * FACE + j - 1;
    int first = blockIdx.z * LENGTH;
    bool writes = i > 0 && i <= FACE && j > 0 && j <= FACE && x < columns && y < rows;
    // phase: load the first planes
    float below = point(in, first - 1, y, x, planes, rows, columns);
    float own = point(in, first, y, x, planes, rows, columns);
    for (int z = first; z < first + LENGTH && z < planes; ++z) {
        // phase: load the plane above {z}
        here[j][i] = own;
        float above = point(in, z + 1, y, x, planes, rows, columns);
        __syncthreads();
        // phase: add around plane {z}
        if (writes) {
            float sum = below + above + here[j - 1][i] + here[j + 1][i] + here[j][i - 1] + here[j][i + 1];
            out[(z * rows + y) * columns + x] = center * own + around * sum;
        }
        __syncthreads();
        below = own;
        own = above;
    }
}

// Four neighbors of a row, zeros outside. ALIGNED: rows are whole quads, so that one 16-byte load fetches them.
template <bool ALIGNED>
__device__ float4 quad(const float *in, int z, int y, int x, int planes, int rows, int columns) {
    if constexpr (ALIGNED) {
        bool inside = 0 <= z && z < planes && 0 <= y && y < rows && x < columns;
        float4 found = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside) found = *reinterpret_cast<const float4 *>(in + (z * rows + y) * columns + x);
        return found;
    } else {
        return make_float4(point(in, z, y, x, planes, rows, columns), point(in, z, y, x + 1, planes, rows, columns),
                           point(in, z, y, x + 2, planes, rows, columns),
                           point(in, z, y, x + 3, planes, rows, columns));
    }
}

template <bool ALIGNED>
__device__ void walk(const float *in, float *out, int planes, int rows, int columns, float center, float around) {
    int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int first = blockIdx.z * LENGTH;
    if (x >= columns || y >= rows) return;
    // phase: load the first planes
    float4 below = quad<ALIGNED>(in, first - 1, y, x, planes, rows, columns);
    float4 own = quad<ALIGNED>(in, first, y, x, planes, rows, columns);
    for (int z = first; z < first + LENGTH && z < planes; ++z) {
        // phase: load what is around plane {z}
        float4 above = quad<ALIGNED>(in, z + 1, y, x, planes, rows, columns);
        float4 back = quad<ALIGNED>(in, z, y - 1, x, planes, rows, columns);
        float4 front = quad<ALIGNED>(in, z, y + 1, x, planes, rows, columns);
        float left = point(in, z, y, x - 1, planes, rows, columns);
        float right = point(in, z, y, x + 4, planes, rows, columns);
        // phase: add around plane {z}
        float4 made;
        made.x = center * own.x + around * (below.x + above.x + back.x + front.x + left + own.y);
        made.y = center * own.y + around * (below.y + above.y + back.y + front.y + own.x + own.z);
        made.z = center * own.z + around * (below.z + above.z + back.z + front.z + own.y + own.w);
        made.w = center * own.w + around * (below.w + above.w + back.w + front.w + own.z + right);
        float *place = out + (z * rows + y) * columns + x;
        if constexpr (ALIGNED) {
            *reinterpret_cast<float4 *>(place) = made;
        } else {
            place[0] = made.x;
            if (x + 1 < columns) place[1] = made.y;
            if (x + 2 < columns) place[2] = made.z;
            if (x + 3 < columns) place[3] = made.w;
        }
        below = own;
        own = above;
    }
}

// Idea: no shared memory and no barrier. A thread loops along z with four points in registers, which are neighbors of
// each other; the other neighbors are 16-byte loads that hit L1, where other threads' loads put them (single loads if
// rows are not whole quads). Limit: memory bandwidth.
extern "C" __global__ void stencil_vectors(const float *in, float *out, int planes, int rows, int columns, float center,
                                           float around) {
    if (columns % 4 == 0)
        walk<true>(in, out, planes, rows, columns, center, around);
    else
        walk<false>(in, out, planes, rows, columns, center, around);
}
