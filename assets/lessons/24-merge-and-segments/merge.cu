// Merge path: a thread finds where its four elements begin in a and b, and merges only these.
__device__ int find_split(const int *a, int n, const int *b, int m, int d) {
    int low = max(0, d - m);
    int high = min(d, n);
    // gap: return how many of the first d elements of the result come from a
    while (low < high) {
        int mid = (low + high) / 2;
        if (a[mid] <= b[d - 1 - mid])
            low = mid + 1;
        else
            high = mid;
    }
    return low;
    // end
}

__global__ void merge(const int *a, const int *b, int *out, int *places, int n, int m) {
    int d = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (d >= n + m) return;
    int i = find_split(a, n, b, m, d);
    int j = d - i;
    for (int k = d; k < min(d + 4, n + m); ++k) {
        bool from_a = i < n && (j == m || a[i] <= b[j]);
        places[k] = from_a ? i : n + j;
        out[k] = from_a ? a[i++] : b[j++];
    }
}
