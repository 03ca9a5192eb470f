// x[0] is large, the others are 1. How much do the ones add to it?
__global__ void gain(const float *x, float *y, int n) {
    float total = x[0];
    for (int i = 1; i < n; ++i) total += x[i];
    *y = total - x[0];
}
