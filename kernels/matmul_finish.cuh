// What all rungs of the matrix product end with: BLAS's alpha and beta.

__device__ void finish(float *c, int place, float sum, float alpha, float beta) {
    c[place] = beta == 0.0f ? alpha * sum : alpha * sum + beta * c[place];
}
