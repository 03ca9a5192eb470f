// Compensated summation (Kahan): what an addition rounds away is subtracted from the next element.
__global__ void sum(const float *x, float *y, int n) {
    float total = 0.0f;
    float lost = 0.0f;
    for (int i = 0; i < n; ++i) {
        // gap: add x[i], corrected by `lost`, to total; then compute what this addition has added too much
        float value = x[i] - lost;
        float next = total + value;
        lost = (next - total) - value;
        total = next;
        // end
    }
    *y = total;
}
