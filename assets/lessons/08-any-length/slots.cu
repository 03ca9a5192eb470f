// Everybody says how many slots it needs, and gets the number of its first one. One thread does it here, one by one.
__global__ void allocate(const int *wanted, int *first, int n) {
    int next = 0;
    for (int i = 0; i < n; ++i) {
        first[i] = next;
        next += wanted[i];
    }
}
