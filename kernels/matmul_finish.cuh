// What all rungs of the matrix product end with: BLAS's alpha and beta.

template <typename Element>
__device__ void finish(Element *c, int place, float sum, float alpha, float beta) {
    c[place] = beta == 0.0f ? alpha * sum : alpha * sum + beta * static_cast<float>(c[place]);
}
