// One thread adds up all elements, one per iteration.
__global__ void sum(const int *x, int *y, int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) total += x[i];
    *y = total;
}
