// A histogram whose bins are spread over the blocks of a cluster: each counts in the shared memory of whoever has the
// bin, and writes its own bins when all have counted.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4) histogram(const int *in, int n, int *bins, int count) {
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    int each = count / cluster.num_blocks();
    for (int i = threadIdx.x; i < each; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = in[i];
        atomicAdd(cluster.map_shared_rank(own, bin / each) + bin % each, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < each; i += blockDim.x) {
        atomicAdd(&bins[cluster.block_rank() * each + i], own[i]);
    }
}
