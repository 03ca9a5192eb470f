// The same numbers, added from the last to the first.
__global__ void gain(const float *x, float *y, int n) {
    float total = 0.0f;
    for (int i = n - 1; i >= 0; --i) total += x[i];
    *y = total - x[0];
}
