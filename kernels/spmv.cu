// Sparse matrix-vector product: y = A x, where most elements of A are zero and only the others, its entries, are kept;
// float32, any number of rows, which are as many as columns. In CSR, compressed sparse rows, entries stand row after row,
// each with its column, and offsets say where each row begins: row r has the entries from offsets[r] to offsets[r + 1].
// Least traffic: 8 bytes an entry, 4 a row for the offsets, x read once and y written once; 2 operations an entry.
//
// rung            idea                                              what still limits it
// spmv_coo        a thread an entry, sums by atomics                an atomic for each entry, queues at long rows
// spmv_scalar     a thread a row                                    lanes read entries a row apart
// spmv_ell        entries by columns, rows as long as the longest   one long row makes all of them long
// spmv_vector     a warp a row, sums by shuffles                    rows shorter than a warp leave lanes idle
// spmv_fitted     as many lanes a row as rows have entries          one long row keeps a few lanes at work alone
// spmv_balanced   as many entries a block, whatever their rows      the memory's bandwidth, and x in any order

// Threads of a block: a power of two, whole warps from spmv_vector on.
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Lanes that share a row in spmv_fitted: a power of two, 1 to 32.
#ifndef LANES
#define LANES 16
#endif

// Entries of a thread of spmv_balanced, and of its block.
#define ITEMS 8
#define PART (BLOCK_SIZE * ITEMS)

#define WARP 32
#define ALL_LANES 0xffffffffu

// Idea: one thread an entry, which has its row and its column (COO, coordinates); neighbors read neighbors, and rows of
// any lengths are alike. Limit: an atomic for each entry, where a row needs one; those of a row wait for each other.
extern "C" __global__ void spmv_coo(const int *rows, const int *columns, const float *entries, const float *x, float *y,
                                    int count) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    // phase: multiply and add
    if (k < count) atomicAdd(&y[rows[k]], entries[k] * x[columns[k]]);
}

// Idea: one thread a row, which goes through its entries and keeps the sum in a register. Limit: the lanes of a warp
// read entries a row apart, each from a sector of its own; and all wait for the longest row among theirs.
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

// Idea: the first entries of all rows, then the second ones, and so on (ELLPACK): a thread a row, and neighbors read
// neighbors. Rows that have no more are filled up with column -1. Limit: memory for rows that are all as long as the
// longest, and a warp still waits for its longest.
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

// Add up a row with so many neighboring lanes; all of a warp's take part, and the first of each row has the sum.
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

// Idea: one warp a row: its lanes read entries side by side, and hand each other their sums (Bell and Garland,
// Implementing sparse matrix-vector multiplication on throughput-oriented processors, 2009). Limit: of a row with 8
// entries a quarter of the warp has something to do.
extern "C" __global__ void spmv_vector(const int *offsets, const int *columns, const float *entries, const float *x,
                                       float *y, int n) {
    int row = (blockIdx.x * BLOCK_SIZE + threadIdx.x) / WARP;
    // phase: add up the row
    float sum = sum_of_row<WARP>(offsets, columns, entries, x, row, n);
    // phase: write
    if (row < n && threadIdx.x % WARP == 0) y[row] = sum;
}

// Idea: LANES lanes a row, about as many as rows have entries, so that a warp has several rows and few lanes are idle.
// Limit: of rows that differ much the short ones leave lanes idle, and a long one keeps its few lanes at work when all
// others have ended.
extern "C" __global__ void spmv_fitted(const int *offsets, const int *columns, const float *entries, const float *x,
                                       float *y, int n) {
    int row = (blockIdx.x * BLOCK_SIZE + threadIdx.x) / LANES;
    // phase: add up the rows
    float sum = sum_of_row<LANES>(offsets, columns, entries, x, row, n);
    // phase: write
    if (row < n && threadIdx.x % LANES == 0) y[row] = sum;
}

// The row that entry k is of: the last one that begins no later.
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

// Idea: every block takes equally many entries, whatever their rows. Their products come into shared memory, neighbors
// from neighbors, and then the rows among them are added up there, with as many lanes each as there are threads for.
// What a block has of a row that others share is added by an atomic. (Rows through shared memory: Greathouse and Daga,
// Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format, 2014; equal parts: Merrill and
// Garland, Merge-based parallel sparse matrix-vector multiplication, 2016.) Limit: the memory's bandwidth, and x, which
// is read in any order.
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
