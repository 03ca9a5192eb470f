// Compensated summation (Kahan): what an addition rounds away is subtracted from the next element.
__global__ void sum(const float *x, float *y, int n) {
    float total = 0.0f;
    float lost = 0.0f;
    for (int i = 0; i < n; ++i) {
        // gap: add x[i] less `lost`; what is lost now?
        float value = x[i] - lost;
        float next = total + value;
        lost = (next - total) - value;
        total = next;
        // end
    }
    *y = total;
}
