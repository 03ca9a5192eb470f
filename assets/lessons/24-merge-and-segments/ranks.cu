// One thread per element: a binary search in the other array finds its position.
__device__ int count_before(const int *x, int n, int value, bool equal) {
    int low = 0;
    int high = n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (x[mid] < value || (equal && x[mid] == value))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

__global__ void merge(const int *a, const int *b, int *out, int *places, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int k = i + count_before(b, m, a[i], false);
        out[k] = a[i];
        places[k] = i;
    }
    if (i < m) {
        int k = i + count_before(a, n, b[i], true);
        out[k] = b[i];
        places[k] = n + i;
    }
}
