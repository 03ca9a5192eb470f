// Sparse matrix-vector product: y = A x, where only the nonzero elements of A, its entries, are stored; float32,
// square, with any number of rows. In CSR (compressed sparse rows) entries are stored row by row, each with its column,
// and row r has the entries from offsets[r] to offsets[r + 1]. Minimum traffic: 8 bytes per entry, 4 per row for the
// offsets, x read once and y written once; 2 operations per entry.
//
// variant         idea                                              what still limits it
// spmv_coo        one thread per entry, atomic sums                 one atomic per entry, contention in long rows
// spmv_scalar     one thread per row                                uncoalesced: lanes read one row apart
// spmv_ell        entries by columns, padded rows                   one long row makes all of them long
// spmv_vector     one warp per row, sums by shuffles                rows shorter than a warp leave lanes idle
// spmv_fitted     lanes per row as entries per average row          a long row keeps only a few lanes busy
// spmv_balanced   equal numbers of entries per block                memory bandwidth, irregular reads of x

// Threads per block: a power of two, whole warps from spmv_vector on.
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Lanes per row in spmv_fitted: a power of two, 1 to 32.
#ifndef LANES
#define LANES 16
#endif

// Entries per thread of spmv_balanced, and per block.
#define ITEMS 8
#define PART (BLOCK_SIZE * ITEMS)

#define WARP 32
#define ALL_LANES 0xffffffffu

// Idea: one thread per entry, stored with its row and column (COO, coordinates); coalesced, and independent of row
// lengths. Limit: one atomic per entry, where a row needs one sum; contention among the entries of a row.
extern "C" __global__ void spmv_coo(const int *rows, const int *columns, const float *entries, const float *x, float *y,
                                    int count) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    // phase: multiply and add
    if (k < count) atomicAdd(&y[rows[k]], entries[k] * x[columns[k]]);
}

// Idea: one thread per row, which loops over its entries and keeps the sum in a register. Limit: uncoalesced, as lanes
// read entries one row apart, each in another sector; and a warp waits for the longest of its rows.
extern "C" __global__ void spmv_scalar(const int *offsets, const int *columns, const float *entries, const float *x,
                                       float *y, int n) {
    int row = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (row >= n) return;
    // phase: add up the row
    float sum = 0.0f;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) sum += entries[k] * x[columns[k]];
    // phase: write
    y[row] = sum;
}

// Idea: the first entries of all rows, then the second ones, and so on (ELLPACK): one thread per row, with coalesced
// reads. Shorter rows are padded with column -1. Limit: memory for rows that are all as long as the longest, and a warp
// still waits for the longest of its rows.
extern "C" __global__ void spmv_ell(const int *columns, const float *entries, const float *x, float *y, int n,
                                    int width) {
    int row = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (row >= n) return;
    // phase: add up the row
    float sum = 0.0f;
    for (int j = 0; j < width; ++j) {
        int column = columns[j * n + row];
        if (column < 0) break;
        sum += entries[j * n + row] * x[column];
    }
    // phase: write
    y[row] = sum;
}

// Sum a row over ROW_LANES neighboring lanes; all lanes of the warp take part, and the first of each row has the sum.
template <int ROW_LANES>
__device__ float sum_of_row(const int *offsets, const int *columns, const float *entries, const float *x, int row,
                            int n) {
    float sum = 0.0f;
    if (row < n) {
        int end = offsets[row + 1];
        for (int k = offsets[row] + threadIdx.x % ROW_LANES; k < end; k += ROW_LANES) sum += entries[k] * x[columns[k]];
    }
    for (int distance = ROW_LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_down_sync(ALL_LANES, sum, distance, ROW_LANES);
    return sum;
}

// Idea: one warp per row: its lanes read entries coalesced, and combine their sums by shuffles (Bell and Garland,
// Implementing sparse matrix-vector multiplication on throughput-oriented processors, 2009). Limit: a row with 8
// entries uses a quarter of the warp.
extern "C" __global__ void spmv_vector(const int *offsets, const int *columns, const float *entries, const float *x,
                                       float *y, int n) {
    int row = (blockIdx.x * BLOCK_SIZE + threadIdx.x) / WARP;
    // phase: add up the row
    float sum = sum_of_row<WARP>(offsets, columns, entries, x, row, n);
    // phase: write
    if (row < n && threadIdx.x % WARP == 0) y[row] = sum;
}

// Idea: LANES lanes per row, about as many as rows have entries, so that a warp has several rows and few idle lanes.
// Limit: rows of different lengths: short ones leave lanes idle, and a long one keeps its few lanes busy when all
// others have finished.
extern "C" __global__ void spmv_fitted(const int *offsets, const int *columns, const float *entries, const float *x,
                                       float *y, int n) {
    int row = (blockIdx.x * BLOCK_SIZE + threadIdx.x) / LANES;
    // phase: add up the rows
    float sum = sum_of_row<LANES>(offsets, columns, entries, x, row, n);
    // phase: write
    if (row < n && threadIdx.x % LANES == 0) y[row] = sum;
}

// The row of entry k: the last one that begins at or before k.
__device__ int row_of(const int *offsets, int n, int k) {
    int low = 0;
    int high = n;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (offsets[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Idea: every block processes the same number of entries, regardless of rows. Their products are stored in shared
// memory, with coalesced reads, and then its rows are summed there, with as many lanes each as threads allow. Partial
// sums of rows that blocks share are added by atomics. (Rows through shared memory: Greathouse and Daga, Efficient
// sparse matrix-vector multiplication on GPUs using the CSR storage format, 2014; equal parts: Merrill and Garland,
// Merge-based parallel sparse matrix-vector multiplication, 2016.) Limit: memory bandwidth, and the irregular reads of
// x.
extern "C" __global__ void spmv_balanced(const int *offsets, const int *columns, const float *entries, const float *x,
                                         float *y, int n, int count) {
    __shared__ float products[PART];
    __shared__ int outermost[2];
    int t = threadIdx.x;
    int first = blockIdx.x * PART;
    int last = min(first + PART, count);
    if (first >= last) return;
    // phase: multiply
#pragma unroll
    for (int i = t; i < PART; i += BLOCK_SIZE)
        if (first + i < last) products[i] = entries[first + i] * x[columns[first + i]];
    // phase: find the rows
    if (t < 2) outermost[t] = row_of(offsets, n, t == 0 ? first : last - 1);
    __syncthreads();
    int begin = outermost[0];
    int end = outermost[1] + 1;
    int lanes = WARP;
    while (lanes > 1 && lanes * (end - begin) > BLOCK_SIZE) lanes /= 2;
    // phase: add up the rows
    for (int next = begin; next < end; next += BLOCK_SIZE / lanes) {
        int row = next + t / lanes;
        int from = row < end ? offsets[row] : last;
        int to = row < end ? offsets[row + 1] : last;
        float sum = 0.0f;
        for (int k = max(from, first) + t % lanes; k < min(to, last); k += lanes) sum += products[k - first];
        for (int distance = lanes / 2; distance > 0; distance /= 2)
            sum += __shfl_down_sync(ALL_LANES, sum, distance, lanes);
        if (row < end && t % lanes == 0) {
            if (from >= first && to <= last)
                y[row] = sum;
            else
                atomicAdd(&y[row], sum);
        }
    }
}
