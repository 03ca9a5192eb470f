// CUB as a peer. Prints CUB's version, then the milliseconds of each repetition.
// Arguments: operation ("reduce", "scan", "select", "sort", "sort-pairs", the last two with "-64" for 64-bit keys, or a
// histogram: "histogram", the type, the bins and "uniform", "skewed" or "constant", such as
// "histogram-uint8-256-uniform"), elements, seed, warm-up rounds, repetitions.
#include <cub/cub.cuh>
#include <string>

#include "timing.cuh"

struct AboveHalf {
    __device__ bool operator()(float value) const { return value > 0.5f; }
};

// Integers of all bits, or floats from 0 to 1.
template <typename Sample>
__global__ void fill_samples(Sample *samples, size_t count, unsigned int seed, bool skewed, bool constant) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
        double value = hash(constant ? 0 : i, seed) / 4294967296.0;
        if (skewed) value *= value * value * value;
        samples[i] = (Sample)(Sample(0.5f) > 0 ? value : value * (1ull << 8 * sizeof(Sample)));
    }
}

// A histogram of samples from 0 to below `end`.
template <typename Sample, typename Level>
struct Histogram {
    int bins;
    Level end;

    cudaError_t run(void *scratch, size_t &bytes, void *samples, void *counts, size_t count) const {
        return cub::DeviceHistogram::HistogramEven(scratch, bytes, (const Sample *)samples, (int *)counts, bins + 1,
                                                   Level(0), end, (int)count);
    }
};

struct Work {
    std::string name, type, content;
    int bins;
    size_t count;
    void *input, *output;
    int *chosen, *carried, *carried_out;

    size_t size() const { return type == "uint8" ? 1 : type == "uint16" ? 2 : type == "uint64" ? 8 : 4; }

    template <typename Key>
    cudaError_t sort(void *scratch, size_t &bytes) const {
        const Key *keys = (const Key *)input;
        if (name == "sort") return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, (Key *)output, count);
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, (Key *)output, carried, carried_out, count);
    }

    cudaError_t run(void *scratch, size_t &bytes) const {
        const float *values = (const float *)input;
        if (name == "reduce") return cub::DeviceReduce::Sum(scratch, bytes, values, (float *)output, count);
        if (name == "scan") return cub::DeviceScan::InclusiveSum(scratch, bytes, values, (float *)output, count);
        if (name == "select")
            return cub::DeviceSelect::If(scratch, bytes, values, (float *)output, chosen, count, AboveHalf());
        if (name.rfind("sort", 0) == 0)
            return type == "uint64" ? sort<unsigned long long>(scratch, bytes) : sort<unsigned int>(scratch, bytes);
        if (type == "uint8")
            return Histogram<unsigned char, int>{bins, 1 << 8}.run(scratch, bytes, input, output, count);
        if (type == "uint16")
            return Histogram<unsigned short, int>{bins, 1 << 16}.run(scratch, bytes, input, output, count);
        if (type == "uint32")  // the largest is in no bin: one more would be no 32-bit number
            return Histogram<unsigned int, unsigned int>{bins, ~0u}.run(scratch, bytes, input, output, count);
        return Histogram<float, float>{bins, 1.0f}.run(scratch, bytes, input, output, count);
    }

    void fill(unsigned int seed) const {
        bool skewed = content == "skewed", constant = content == "constant";
        if (type == "uint8")
            fill_samples<<<2048, 256>>>((unsigned char *)input, count, seed, skewed, constant);
        else if (type == "uint16")
            fill_samples<<<2048, 256>>>((unsigned short *)input, count, seed, skewed, constant);
        else if (type == "uint32")
            fill_samples<<<2048, 256>>>((unsigned int *)input, count, seed, skewed, constant);
        else if (name.rfind("sort", 0) == 0)
            fill_words<<<2048, 256>>>((unsigned int *)input, count * size() / 4, seed);
        else
            fill_samples<<<2048, 256>>>((float *)input, count, seed, skewed, constant);
    }
};

int main(int, char **arguments) {
    Work work = {arguments[1], "",      "",      0,       strtoull(arguments[2], nullptr, 10),
                 nullptr,      nullptr, nullptr, nullptr, nullptr};
    unsigned int seed = atoi(arguments[3]);
    int warm_up = atoi(arguments[4]), repetitions = atoi(arguments[5]);
    char type[16], content[16];
    if (sscanf(arguments[1], "histogram-%15[^-]-%d-%15s", type, &work.bins, content) == 3) {
        work.type = type;
        work.content = content;
    }
    if (work.name == "sort-64" || work.name == "sort-pairs-64") {
        work.name.resize(work.name.size() - 3);
        work.type = "uint64";
    }
    bool pairs = work.name == "sort-pairs";

    CHECK(cudaMalloc(&work.input, work.count * work.size()));
    CHECK(cudaMalloc(&work.output, work.bins ? work.bins * sizeof(int) : work.count * work.size()));
    CHECK(cudaMalloc(&work.chosen, sizeof(int)));
    CHECK(cudaMalloc(&work.carried, pairs ? work.count * sizeof(int) : sizeof(int)));
    CHECK(cudaMalloc(&work.carried_out, pairs ? work.count * sizeof(int) : sizeof(int)));
    if (pairs) fill_words<<<2048, 256>>>((unsigned int *)work.carried, work.count, seed + 1);
    work.fill(seed);

    void *scratch = nullptr;
    size_t scratch_bytes = 0;
    CHECK(work.run(nullptr, scratch_bytes));
    CHECK(cudaMalloc(&scratch, scratch_bytes));
    printf("%d.%d.%d\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    time_rounds(warm_up, repetitions, [&] { CHECK(work.run(scratch, scratch_bytes)); });
    return 0;
}
