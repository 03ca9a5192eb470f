"""Copies by rows and boxes, textures as objects, and launches whose blocks wait for each other, of whole programs."""

from __future__ import annotations

import pytest


def test_copies_by_rows_keep_what_lies_between(program):
    ended = program(
        """
        #include <vector>
        int main() {
            const int width = 5, height = 4;
            std::vector<int> host(width * height), back(8 * height, -1);
            for (int i = 0; i < width * height; i++) host[i] = i;
            int *rows;
            size_t pitch;
            CHECK(cudaMallocPitch(&rows, &pitch, width * sizeof(int), height));
            CHECK(cudaMemset2D(rows, pitch, 1, width * sizeof(int), height));
            CHECK(cudaMemcpy2D(rows, pitch, host.data(), width * sizeof(int), 3 * sizeof(int), height,
                               cudaMemcpyHostToDevice));
            CHECK(cudaMemcpy2D(back.data(), 8 * sizeof(int), rows, pitch, width * sizeof(int), height,
                               cudaMemcpyDeviceToHost));
            for (int each : back) printf("%x ", each);
            printf("%d %s\\n", pitch % 512 == 0,
                   cudaGetErrorName(cudaMemcpy2D(rows, 4, host.data(), 20, 20, 1, cudaMemcpyHostToDevice)));
        }
        """
    )
    row = "{:x} {:x} {:x} 1010101 1010101 ffffffff ffffffff ffffffff "
    rows = "".join(row.format(5 * y, 5 * y + 1, 5 * y + 2) for y in range(4))
    assert (ended.code, ended.stdout) == (0, f"{rows}1 cudaErrorInvalidPitchValue\n"), ended.stderr


def test_copies_of_boxes(program):
    """A box of 3 x 2 x 2 elements, from the middle of one volume to the corner of another."""
    ended = program(
        """
        __global__ void read(cudaPitchedPtr volume, int x, int y, int z, int *out) {
            const char *slice = (const char *)volume.ptr + z * volume.pitch * volume.ysize;
            *out = ((const int *)(slice + y * volume.pitch))[x];
        }
        int main() {
            int host[4][3][6], back[2][2][3];
            for (int i = 0; i < 72; i++) (&host[0][0][0])[i] = i;
            cudaPitchedPtr volume;
            CHECK(cudaMalloc3D(&volume, make_cudaExtent(6 * sizeof(int), 3, 4)));
            CHECK(cudaMemset3D(volume, 0, make_cudaExtent(6 * sizeof(int), 3, 4)));
            cudaMemcpy3DParms how = {};
            how.srcPtr = make_cudaPitchedPtr(host, 6 * sizeof(int), 6, 3);
            how.srcPos = make_cudaPos(2 * sizeof(int), 1, 1);
            how.dstPtr = volume;
            how.dstPos = make_cudaPos(sizeof(int), 0, 2);
            how.extent = make_cudaExtent(3 * sizeof(int), 2, 2);
            how.kind = cudaMemcpyHostToDevice;
            CHECK(cudaMemcpy3D(&how));
            int *out, found;
            CHECK(cudaMalloc(&out, 4));
            read<<<1, 1>>>(volume, 2, 1, 3, out);
            CHECK(cudaMemcpy(&found, out, 4, cudaMemcpyDeviceToHost));
            cudaMemcpy3DParms home = {};
            home.srcPtr = volume;
            home.srcPos = make_cudaPos(sizeof(int), 0, 2);
            home.dstPtr = make_cudaPitchedPtr(back, 3 * sizeof(int), 3, 2);
            home.extent = how.extent;
            home.kind = cudaMemcpyDeviceToHost;
            CHECK(cudaMemcpy3D(&home));
            int wrong = 0;
            for (int z = 0; z < 2; z++)
                for (int y = 0; y < 2; y++)
                    for (int x = 0; x < 3; x++) wrong += back[z][y][x] != host[z + 1][y + 1][x + 2];
            printf("%d %d\\n", found == host[2][2][3], wrong);
        }
        """
    )
    assert (ended.code, ended.stdout) == (0, "1 0\n"), ended.stderr


def test_texture_objects_over_memory_and_arrays(program):
    """Points, the mean of neighbors, what lies outside, and rows of a pitch, as the programming guide has them."""
    ended = program(
        """
        typedef cudaTextureObject_t Texture;
        __global__ void fetch(Texture line, Texture image, Texture rows, float *out) {
            out[0] = tex1Dfetch<float>(line, 3);
            out[1] = tex2D<float>(image, 1.5f, 2.5f);
            out[2] = tex2D<float>(image, 2.0f, 1.0f);
            out[3] = tex2D<float>(image, -3.0f, 9.0f);
            out[4] = tex2D<float>(rows, 2.2f, 1.7f);
        }
        int main() {
            float host[3][4], back[5], *line, *out, *rows;
            for (int i = 0; i < 12; i++) (&host[0][0])[i] = i * i;
            CHECK(cudaMalloc(&line, sizeof host));
            CHECK(cudaMalloc(&out, sizeof back));
            CHECK(cudaMemcpy(line, host, sizeof host, cudaMemcpyHostToDevice));

            cudaResourceDesc memory = {};
            memory.resType = cudaResourceTypeLinear;
            memory.res.linear.devPtr = line;
            memory.res.linear.desc = cudaCreateChannelDesc<float>();
            memory.res.linear.sizeInBytes = sizeof host;
            cudaTextureDesc plain = {};
            plain.readMode = cudaReadModeElementType;
            cudaTextureObject_t of_line, of_image, of_rows;
            CHECK(cudaCreateTextureObject(&of_line, &memory, &plain, nullptr));

            cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
            cudaArray_t array;
            CHECK(cudaMallocArray(&array, &format, 4, 3));
            const size_t bytes = sizeof host[0];
            CHECK(cudaMemcpy2DToArray(array, 0, 0, host, bytes, bytes, 3, cudaMemcpyHostToDevice));
            float part[2];
            CHECK(cudaMemcpy2DFromArray(part, 4, array, 8, 1, 4, 2, cudaMemcpyDeviceToHost));
            printf("%g %g ", part[0], part[1]);
            cudaResourceDesc image = {};
            image.resType = cudaResourceTypeArray;
            image.res.array.array = array;
            cudaTextureDesc filtered = {};
            filtered.filterMode = cudaFilterModeLinear;
            filtered.addressMode[0] = filtered.addressMode[1] = cudaAddressModeClamp;
            CHECK(cudaCreateTextureObject(&of_image, &image, &filtered, nullptr));

            size_t pitch;
            CHECK(cudaMallocPitch(&rows, &pitch, sizeof host[0], 3));
            CHECK(cudaMemcpy2D(rows, pitch, host, sizeof host[0], sizeof host[0], 3, cudaMemcpyHostToDevice));
            cudaResourceDesc pitched = {};
            pitched.resType = cudaResourceTypePitch2D;
            pitched.res.pitch2D.devPtr = rows;
            pitched.res.pitch2D.desc = format;
            pitched.res.pitch2D.width = 4;
            pitched.res.pitch2D.height = 3;
            pitched.res.pitch2D.pitchInBytes = pitch;
            CHECK(cudaCreateTextureObject(&of_rows, &pitched, &plain, nullptr));

            fetch<<<1, 1>>>(of_line, of_image, of_rows, out);
            CHECK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
            for (float each : back) printf("%g ", each);
            CHECK(cudaDestroyTextureObject(of_line));
            CHECK(cudaDestroyTextureObject(of_image));
            CHECK(cudaFreeArray(array));
            printf("\\n");
        }
        """
    )
    image = [[(4 * y + x) ** 2 for x in range(4)] for y in range(3)]
    between = (image[0][1] + image[0][2] + image[1][1] + image[1][2]) / 4
    right = [image[1][2], image[2][2], 9, image[2][1], between, image[2][0], image[1][2]]
    assert (ended.code, ended.stdout) == (0, "".join(f"{x:g} " for x in right) + "\n"), ended.stderr


def test_blocks_of_a_cooperative_launch_wait_for_each_other(program):
    ended = program(
        """
        #include <cooperative_groups.h>
        namespace cg = cooperative_groups;
        __global__ void sum(const int *in, int *partial, int *out) {
            cg::grid_group grid = cg::this_grid();
            __shared__ int kept;
            if (threadIdx.x == 0) kept = 0;
            __syncthreads();
            atomicAdd(&kept, in[grid.thread_rank()]);
            __syncthreads();
            if (threadIdx.x == 0) partial[blockIdx.x] = kept;
            grid.sync();
            if (grid.thread_rank() == 0)
                for (int i = 0; i < gridDim.x; i++) *out += partial[i];
        }
        int main() {
            int *data, one = 1, can = 0, blocks = 0;
            CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
            CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 64, 0));
            CHECK(cudaMallocManaged(&data, 300 * sizeof(int)));
            for (int i = 0; i < 256; i++) data[i] = i;
            int *partial = data + 256, *out = data + 299;
            *out = 0;
            void *arguments[] = {&data, &partial, &out};
            CHECK(cudaLaunchCooperativeKernel((void *)sum, dim3(4), dim3(64), arguments, 0, 0));
            CHECK(cudaDeviceSynchronize());
            printf("%d %d %d\\n", *out, can, blocks > 0);
        }
        """,
        "--check",
    )
    assert (ended.code, ended.stdout) == (0, f"{sum(range(256))} 1 1\n"), ended.stderr


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["machine code", "checked"])
def test_a_launch_puts_blocks_into_clusters(program, options):
    ended = program(
        """
        #include <cooperative_groups.h>
        __global__ void ring(int *out, float scale) {
            __shared__ int own;
            auto cluster = cooperative_groups::this_cluster();
            own = 10 * blockIdx.x;
            cluster.sync();
            int next = (cluster.block_rank() + 1) % cluster.num_blocks();
            out[blockIdx.x] = (int)(scale * *cluster.map_shared_rank(&own, next));
            cluster.sync();
        }
        int main() {
            int *out, found[6];
            CHECK(cudaMalloc(&out, sizeof found));
            cudaLaunchAttribute attribute[1];
            attribute[0].id = cudaLaunchAttributeClusterDimension;
            attribute[0].val.clusterDim.x = 3;
            attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
            cudaLaunchConfig_t config = {};
            config.gridDim = 6;
            config.blockDim = 1;
            config.attrs = attribute;
            config.numAttrs = 1;
            CHECK(cudaFuncSetAttribute(ring, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
            CHECK(cudaLaunchKernelEx(&config, ring, out, 2));
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            for (int i = 0; i < 6; i++) printf("%d ", found[i]);
            ring<<<6, 1>>>(out, 1);
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            config.gridDim = 7;
            printf("%d %s\\n", found[5], cudaGetErrorName(cudaLaunchKernelEx(&config, ring, out, 1.0f)));
        }
        """,
        *options,
    )
    assert (ended.code, ended.stdout) == (0, "20 40 0 80 100 60 50 cudaErrorInvalidConfiguration\n"), ended.stderr


def test_a_texture_of_rows_reads_what_they_hold_when_a_kernel_is_launched(program):
    ended = program(
        """
        __global__ void fetch(cudaTextureObject_t rows, float *out) { *out = tex2D<float>(rows, 0, 1); }
        int main() {
            float *rows, *out, host[2][3] = {}, found[2];
            size_t pitch;
            CHECK(cudaMalloc(&out, 8));
            CHECK(cudaMallocPitch(&rows, &pitch, sizeof host[0], 2));
            cudaResourceDesc pitched = {};
            pitched.resType = cudaResourceTypePitch2D;
            pitched.res.pitch2D = {rows, cudaCreateChannelDesc<float>(), 3, 2, pitch};
            cudaTextureDesc border = {};
            cudaTextureObject_t texture;
            CHECK(cudaCreateTextureObject(&texture, &pitched, &border, nullptr));
            for (int i = 0; i < 2; i++) {
                host[1][0] = 5 + i;
                CHECK(cudaMemcpy2D(rows, pitch, host, sizeof host[0], sizeof host[0], 2, cudaMemcpyHostToDevice));
                fetch<<<1, 1>>>(texture, out + i);
            }
            CHECK(cudaMemcpy(found, out, 8, cudaMemcpyDeviceToHost));
            border.readMode = cudaReadModeNormalizedFloat;
            cudaError_t refused = cudaCreateTextureObject(&texture, &pitched, &border, nullptr);
            printf("%g %g %s\\n", found[0], found[1], cudaGetErrorName(refused));
        }
        """
    )
    assert ended.stdout == "5 6 cudaErrorInvalidValue\n", ended.stderr


def test_integers_are_read_as_fractions_and_filtered(program):
    """By the CUDA C++ Programming Guide, chapter "Texture Object API": unsigned to [0, 1], signed to [-1, 1]."""
    ended = program(
        """
        __global__ void fetch(cudaTextureObject_t t, float4 *out) { out[0] = tex2D<float4>(t, 1.5f, 0.5f); }
        __global__ void line(cudaTextureObject_t t, float *out) { out[0] = tex1Dfetch<float>(t, 2); }
        __global__ void between(cudaTextureObject_t t, float *out) { out[0] = tex2D<float>(t, 1, 0.5f); }
        cudaTextureDesc how = {};
        cudaResourceDesc over = {};
        cudaTextureObject_t create() {
            cudaTextureObject_t texture;
            how.readMode = cudaReadModeNormalizedFloat;
            CHECK(cudaCreateTextureObject(&texture, &over, &how, nullptr));
            return texture;
        }
        int main() {
            uchar4 *rows;
            short *words, values[3] = {0, 32767, -32768};
            float *out, found[8];
            size_t pitch;
            CHECK(cudaMalloc(&out, sizeof found));
            CHECK(cudaMalloc(&words, sizeof values));
            CHECK(cudaMallocPitch(&rows, &pitch, 8, 1));
            over.resType = cudaResourceTypePitch2D;
            over.res.pitch2D = {rows, cudaCreateChannelDesc<uchar4>(), 2, 1, pitch};
            cudaTextureObject_t pixels = create();
            over.resType = cudaResourceTypeLinear;
            over.res.linear = {words, cudaCreateChannelDesc<short>(), sizeof values};
            cudaTextureObject_t sequence = create();
            uchar4 host[2] = {{}, {0, 51, 255, 102}};
            CHECK(cudaMemcpy(rows, host, 8, cudaMemcpyHostToDevice));
            CHECK(cudaMemcpy(words, values, sizeof values, cudaMemcpyHostToDevice));
            fetch<<<1, 1>>>(pixels, (float4 *)out);
            line<<<1, 1>>>(sequence, out + 4);
            cudaArray_t array;
            auto format = cudaCreateChannelDesc<unsigned char>();
            CHECK(cudaMallocArray(&array, &format, 2, 1));
            over.resType = cudaResourceTypeArray;
            over.res.array.array = array;
            how.filterMode = cudaFilterModeLinear;
            cudaTextureObject_t smooth = create();
            CHECK(cudaMemcpy2DToArray(array, 0, 0, host + 1, 2, 2, 1, cudaMemcpyHostToDevice));
            between<<<1, 1>>>(smooth, out + 5);
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            for (int i = 0; i < 6; i++) printf("%g ", found[i]);
        }
        """
    )
    assert ended.stdout == "0 0.2 1 0.4 -1 0.1 ", ended.stderr


def test_faces_of_cubemaps_are_read_by_direction(program):
    """By the CUDA C++ Programming Guide, chapter "Cubemap Textures": the face of the largest coordinate."""
    ended = program(
        """
        __constant__ float3 directions[] = {{2, 1, -1}, {-2, 1, -1}, {1, 2, -1}, {1, -2, -1}, {1, -1, 2}, {1, -1, -2}};
        __global__ void look(cudaTextureObject_t cube, float *out) {
            float3 d = directions[threadIdx.x];
            out[threadIdx.x] = texCubemap<float>(cube, d.x, d.y, d.z);
        }
        int main() {
            float host[6][2][2], *out, found[6];
            for (int i = 0; i < 24; i++) (&host[0][0][0])[i] = i;
            auto format = cudaCreateChannelDesc<float>();
            cudaArray_t array;
            cudaExtent faces = make_cudaExtent(2, 2, 5);
            printf("%s ", cudaGetErrorName(cudaMalloc3DArray(&array, &format, faces, cudaArrayCubemap)));
            faces.depth = 6;
            CHECK(cudaMalloc3DArray(&array, &format, faces, cudaArrayCubemap));
            cudaMemcpy3DParms copy = {};
            copy.srcPtr = make_cudaPitchedPtr(host, 8, 2, 2);
            copy.dstArray = array;
            copy.extent = faces;
            copy.kind = cudaMemcpyHostToDevice;
            CHECK(cudaMemcpy3D(&copy));
            cudaResourceDesc over = {};
            over.resType = cudaResourceTypeArray;
            over.res.array.array = array;
            cudaTextureDesc how = {};
            how.normalizedCoords = 1;
            cudaTextureObject_t cube;
            CHECK(cudaCreateTextureObject(&cube, &over, &how, nullptr));
            CHECK(cudaMalloc(&out, sizeof found));
            look<<<1, 6>>>(cube, out);
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            for (float each : found) printf("%g ", each);
        }
        """
    )
    # The guide's s and t for each direction above select these rows and columns of a face.
    rows_and_columns = [(0, 1), (0, 0), (0, 1), (1, 1), (1, 1), (1, 0)]
    expected = [4 * face + 2 * row + column for face, (row, column) in enumerate(rows_and_columns)]
    assert ended.stdout == "cudaErrorInvalidValue " + "".join(f"{value} " for value in expected), ended.stderr


def test_surface_objects_are_written_and_read(program):
    """Turned by 90 degrees from one surface into another, with what each mode does beyond the edges, and a texture."""
    ended = program(
        """
        __global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
            int x = threadIdx.x, y = blockIdx.x;
            uchar4 color;
            surf2Dread(&color, from, x * sizeof(uchar4), y);
            surf2Dwrite(color, to, y * sizeof(uchar4), width - 1 - x);
        }
        __global__ void beyond(cudaSurfaceObject_t of, int *found) {
            int x = threadIdx.x - 2;
            found[threadIdx.x] = surf2Dread<int>(of, x * (int)sizeof(int), 1, cudaBoundaryModeClamp);
            found[8 + threadIdx.x] = surf2Dread<int>(of, x * (int)sizeof(int), 1, cudaBoundaryModeZero);
            surf2Dwrite(-1, of, 4 * 4, (int)threadIdx.x, cudaBoundaryModeZero);
        }
        __global__ void line(cudaSurfaceObject_t of) {
            surf1Dwrite(surf1Dread<float>(of, threadIdx.x * 4) * 2, of, threadIdx.x * 4);
        }
        __global__ void look(cudaTextureObject_t line, float *found) { found[threadIdx.x] = tex1D<float>(line, 2.5f); }
        __global__ void astray(cudaSurfaceObject_t of) { surf2Dwrite(1, of, 16, 2); }
        cudaSurfaceObject_t over(cudaArray_t array) {
            cudaResourceDesc what = {};
            what.resType = cudaResourceTypeArray;
            what.res.array.array = array;
            cudaSurfaceObject_t surface;
            CHECK(cudaCreateSurfaceObject(&surface, &what));
            return surface;
        }
        int main() {
            const int width = 4, height = 3;
            unsigned pixels[height][width], turned[width][height];
            for (int i = 0; i < width * height; i++) (&pixels[0][0])[i] = 0x1010101u * i;
            auto four = cudaCreateChannelDesc<uchar4>(), one = cudaCreateChannelDesc<float>();
            cudaArray_t first, second, third;
            CHECK(cudaMallocArray(&first, &four, width, height, cudaArraySurfaceLoadStore));
            CHECK(cudaMallocArray(&second, &four, height, width, cudaArraySurfaceLoadStore));
            CHECK(cudaMemcpy2DToArray(first, 0, 0, pixels, 4 * width, 4 * width, height, cudaMemcpyHostToDevice));
            cudaSurfaceObject_t from = over(first), to = over(second);
            turn<<<height, width>>>(from, to, width, height);
            CHECK(cudaMemcpy2DFromArray(turned, 4 * height, second, 0, 0, 4 * height, width, cudaMemcpyDeviceToHost));
            int wrong = 0;
            for (int y = 0; y < height; y++)
                for (int x = 0; x < width; x++) wrong += turned[width - 1 - x][y] != pixels[y][x];
            int *beside, found[16];
            CHECK(cudaMalloc(&beside, sizeof found));
            beyond<<<1, 8>>>(from, beside);
            CHECK(cudaMemcpy(found, beside, sizeof found, cudaMemcpyDeviceToHost));
            printf("%d:", wrong);
            for (int each : found) printf(" %d", each & 255);
            CHECK(cudaDestroySurfaceObject(to));

            float values[5] = {1, 2, 3, 4, 5};
            CHECK(cudaMallocArray(&third, &one, 5, 0, cudaArraySurfaceLoadStore));
            CHECK(cudaMemcpyToArray(third, 0, 0, values, sizeof values, cudaMemcpyHostToDevice));
            line<<<1, 5>>>(over(third));
            cudaResourceDesc what = {};
            what.res.array.array = third;
            cudaTextureDesc how = {};
            cudaTextureObject_t texture;
            CHECK(cudaCreateTextureObject(&texture, &what, &how, nullptr));
            look<<<1, 1>>>(texture, (float *)beside);
            CHECK(cudaMemcpy(values, beside, 4, cudaMemcpyDeviceToHost));
            cudaArray_t plain;
            CHECK(cudaMallocArray(&plain, &one, 5));
            what.res.array.array = plain;
            cudaSurfaceObject_t none;
            printf("; %g %s %s", values[0], cudaGetErrorName(cudaCreateSurfaceObject(&none, &what)),
                   cudaGetErrorName(cudaDestroySurfaceObject(to)));
            astray<<<1, 2>>>(from);
            printf(" %s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
        }
        """
    )
    clamped, zeroed = "4 4 4 5 6 7 7 7", "0 0 4 5 6 7 0 0"
    refused = "cudaErrorInvalidValue cudaErrorInvalidValue cudaErrorIllegalAddress"
    assert (ended.code, ended.stdout) == (0, f"0: {clamped} {zeroed}; 6 {refused}\n"), ended.stderr
    assert "accesses x = 16, y = 2 of a surface, which has 16 x 3 (x in bytes): out of bounds" in " ".join(
        ended.stderr.split()
    )


def test_arrays_of_slices_are_copied_and_read_between_their_elements(program):
    """What a filter makes of a volume is compared with the three lines of its definition."""
    ended = program(
        """
        #include <cmath>
        #include <vector>
        __global__ void sample(cudaTextureObject_t volume, const float3 *at, float *found, float3 whole) {
            float3 here = at[threadIdx.x];
            found[threadIdx.x] = tex3D<float>(volume, here.x / whole.x, here.y / whole.y, here.z / whole.z);
        }
        __global__ void layers(cudaTextureObject_t of, float *found) {
            found[threadIdx.x] = tex2DLayered<float>(of, 1.0f / 4, 0.5f / 3, (int)threadIdx.x - 1);
        }
        __global__ void twice(cudaSurfaceObject_t of) {
            float value;
            surf3Dread(&value, of, threadIdx.x * 4, threadIdx.y, threadIdx.z);
            surf3Dwrite(2 * value, of, threadIdx.x * 4, threadIdx.y, threadIdx.z);
        }
        const int W = 4, H = 3, D = 2;
        float held[D][H][W];
        float at(int x, int y, int z) {
            auto within = [](int i, int n) { return std::min(std::max(i, 0), n - 1); };
            return held[within(z, D)][within(y, H)][within(x, W)];
        }
        float between(float x, float y, float z) {
            x -= 0.5f, y -= 0.5f, z -= 0.5f;
            int i = (int)floorf(x), j = (int)floorf(y), k = (int)floorf(z);
            float sum = 0;
            for (int corner = 0; corner < 8; corner++) {
                int a = corner & 1, b = corner >> 1 & 1, c = corner >> 2;
                float weight = (a ? x - i : 1 - x + i) * (b ? y - j : 1 - y + j) * (c ? z - k : 1 - z + k);
                sum += weight * at(i + a, j + b, k + c);
            }
            return sum;
        }
        cudaTextureObject_t over(cudaArray_t array, cudaTextureFilterMode filter) {
            cudaResourceDesc what = {};
            what.resType = cudaResourceTypeArray;
            what.res.array.array = array;
            cudaTextureDesc how = {};
            for (auto &mode : how.addressMode) mode = cudaAddressModeClamp;
            how.filterMode = filter;
            how.normalizedCoords = filter == cudaFilterModeLinear;
            cudaTextureObject_t texture;
            CHECK(cudaCreateTextureObject(&texture, &what, &how, nullptr));
            return texture;
        }
        int main() {
            for (int i = 0; i < W * H * D; i++) (&held[0][0][0])[i] = i * i % 17;
            auto format = cudaCreateChannelDesc<float>();
            cudaArray_t volume, stack;
            cudaExtent whole = make_cudaExtent(W, H, D);
            CHECK(cudaMalloc3DArray(&volume, &format, whole, cudaArraySurfaceLoadStore));
            CHECK(cudaMalloc3DArray(&stack, &format, whole, cudaArrayLayered));
            cudaMemcpy3DParms how = {};
            how.srcPtr = make_cudaPitchedPtr(held, W * sizeof(float), W, H);
            how.dstArray = volume;
            how.extent = whole;
            how.kind = cudaMemcpyHostToDevice;
            CHECK(cudaMemcpy3D(&how));
            float3 places[] = {{2.25f, 1.5f, 1.0f}, {0.1f, 2.9f, 0.75f}, {9, -1, 0.5f}, {1.5f, 0.875f, 1.625f}};
            float3 *given;
            float *out, found[4], worst = 0;
            CHECK(cudaMalloc(&given, sizeof places));
            CHECK(cudaMalloc(&out, sizeof found));
            CHECK(cudaMemcpy(given, places, sizeof places, cudaMemcpyHostToDevice));
            cudaTextureObject_t smooth = over(volume, cudaFilterModeLinear);
            sample<<<1, 4>>>(smooth, given, out, make_float3(W, H, D));
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            for (int i = 0; i < 4; i++)
                worst = std::max(worst, std::abs(found[i] - between(places[i].x, places[i].y, places[i].z)));
            printf("%d ", worst < 0.1f);
            sample<<<1, 4>>>(over(volume, cudaFilterModePoint), given, out, make_float3(1, 1, 1));
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            for (int i = 0; i < 4; i++) {
                float3 p = places[i];
                printf("%d", found[i] == at((int)floorf(p.x), (int)floorf(p.y), (int)floorf(p.z)));
            }

            // From one array to the other, and a box home.
            cudaMemcpy3DParms across = {};
            across.srcArray = volume, across.dstArray = stack;
            across.extent = whole;
            across.kind = cudaMemcpyDeviceToDevice;
            CHECK(cudaMemcpy3D(&across));
            layers<<<1, 4>>>(over(stack, cudaFilterModeLinear), out);
            CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
            for (int i = 0; i < 4; i++) {
                int layer = std::min(std::max(i - 1, 0), D - 1);
                printf("%d", found[i] == (held[layer][0][0] + held[layer][0][1]) / 2);
            }
            cudaResourceDesc what = {};
            what.res.array.array = volume;
            cudaSurfaceObject_t surface;
            CHECK(cudaCreateSurfaceObject(&surface, &what));
            twice<<<1, dim3(W, H, D)>>>(surface);
            float box[2][2][5] = {};
            cudaMemcpy3DParms home = {};
            home.srcArray = volume, home.srcPos = make_cudaPos(1, 1, 0);
            home.dstPtr = make_cudaPitchedPtr(box, 5 * sizeof(float), 5, 2), home.dstPos = make_cudaPos(4, 0, 0);
            home.extent = make_cudaExtent(3, 2, 2), home.kind = cudaMemcpyDeviceToHost;
            CHECK(cudaMemcpy3D(&home));
            int wrong = 0;
            for (int z = 0; z < 2; z++)
                for (int y = 0; y < 2; y++)
                    for (int x = 0; x < 5; x++)
                        wrong += box[z][y][x] != (x < 1 || x > 3 ? 0 : 2 * held[z][y + 1][x]);
            cudaChannelFormatDesc asked;
            cudaExtent extent;
            unsigned flags;
            CHECK(cudaArrayGetInfo(&asked, &extent, &flags, stack));
            printf(" %d %d %d %zu %zu %zu %u", wrong, asked.x, asked.f == cudaChannelFormatKindFloat, extent.width,
                   extent.height, extent.depth, flags);
            home.extent.depth = 3;
            printf(" %s\\n", cudaGetErrorName(cudaMemcpy3D(&home)));
        }
        """
    )
    told = "1 11111111 0 32 1 4 3 2 1 cudaErrorInvalidValue\n"
    assert (ended.code, ended.stdout) == (0, told), ended.stderr
