// Each thread needs a number of slots and gets the index of its first one: an exclusive scan by one thread.
__global__ void allocate(const int *wanted, int *first, int n) {
    int next = 0;
    for (int i = 0; i < n; ++i) {
        first[i] = next;
        next += wanted[i];
    }
}
