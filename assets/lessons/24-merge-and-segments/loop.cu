// One thread merges two sorted arrays.
__global__ void merge(const int *a, const int *b, int *out, int n, int m) {
    int i = 0;
    int j = 0;
    for (int k = 0; k < n + m; ++k) {
        bool from_a = i < n && (j == m || a[i] <= b[j]);
        out[k] = from_a ? a[i++] : b[j++];
    }
}
