// How many of the first 4 t elements of the result are from a? A search along a diagonal.
__global__ void find_splits(const int *a, const int *b, int *splits, int n, int m) {
    int t = threadIdx.x;
    int d = 4 * t;
    int low = max(0, d - m);
    int high = min(d, n);
    while (low < high) {
        int mid = (low + high) / 2;
        if (a[mid] <= b[d - 1 - mid])
            low = mid + 1;
        else
            high = mid;
    }
    splits[t] = low;
}
