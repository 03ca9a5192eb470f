// The last step of all matrix product variants: BLAS's alpha and beta.

template <typename Element>
__device__ void finish(Element *c, int place, float sum, float alpha, float beta) {
    c[place] = beta == 0.0f ? alpha * sum : alpha * sum + beta * static_cast<float>(c[place]);
}

// Sum an element over the parts of k, each of which is a separate matrix of `elements` elements.
template <typename Element>
__device__ void finish_parts(const float *sums, Element *c, int elements, int parts, float alpha, float beta) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= elements) return;
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) sum += sums[(size_t)part * elements + i];
    finish(c, i, sum, alpha, beta);
}
