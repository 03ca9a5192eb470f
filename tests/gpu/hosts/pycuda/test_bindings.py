"""Texture and surface objects, which scripts make with cuda-bindings in PyCUDA's context."""

from __future__ import annotations


def test_objects_over_arrays_and_linear_memory(script):
    ended = script(
        '''
        import numpy as np
        import pycuda.autoinit
        import pycuda.driver as drv
        from cuda.bindings import driver as cu
        from pycuda.compiler import SourceModule

        module = SourceModule("""
        __global__ void twice(cudaSurfaceObject_t to, cudaTextureObject_t from) {
            int x = threadIdx.x, y = threadIdx.y;
            surf2Dwrite(2 * tex2D<float>(from, x + 0.5f, y + 0.5f), to, x * sizeof(float), y);
        }
        __global__ void fetch(cudaTextureObject_t from, float *out) {
            out[threadIdx.x] = tex1Dfetch<float>(from, 7 - threadIdx.x);
        }
        """)
        values = np.arange(12, dtype=np.float32).reshape(3, 4)

        def array(flags):
            wanted = drv.ArrayDescriptor3D()
            wanted.width, wanted.height, wanted.depth, wanted.flags = 4, 3, 0, flags
            wanted.num_channels, wanted.format = 1, drv.array_format.FLOAT
            return drv.Array(wanted)

        def over(array):
            resource = cu.CUDA_RESOURCE_DESC()
            resource.resType = cu.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = cu.CUarray(array.handle)
            return resource

        kept, plain = array(drv.array3d_flags.SURFACE_LDST), array(0)
        copy = drv.Memcpy2D()
        copy.width_in_bytes, copy.height, copy.src_pitch = 16, 3, 16
        copy.set_src_host(values)
        copy.set_dst_array(kept)
        copy(aligned=True)
        done, surface = cu.cuSurfObjectCreate(over(kept))
        assert done == cu.CUresult.CUDA_SUCCESS
        how = cu.CUDA_TEXTURE_DESC()
        how.addressMode[0] = cu.CUaddress_mode.CU_TR_ADDRESS_MODE_BORDER
        done, texture = cu.cuTexObjectCreate(over(kept), how, None)
        assert done == cu.CUresult.CUDA_SUCCESS
        module.get_function("twice")(np.uint64(int(surface)), np.uint64(int(texture)), block=(4, 3, 1))
        found = np.empty_like(values)
        copy = drv.Memcpy2D()
        copy.width_in_bytes, copy.height, copy.dst_pitch = 16, 3, 16
        copy.set_src_array(kept)
        copy.set_dst_host(found)
        copy(aligned=True)
        assert (found == 2 * values).all(), found

        line = drv.to_device(np.arange(8, dtype=np.float32))
        resource = cu.CUDA_RESOURCE_DESC()
        resource.resType = cu.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        linear = resource.res.linear
        linear.devPtr, linear.format = int(line), cu.CUarray_format.CU_AD_FORMAT_FLOAT
        linear.numChannels, linear.sizeInBytes = 1, 32
        done, texture = cu.cuTexObjectCreate(resource, cu.CUDA_TEXTURE_DESC(), None)
        assert done == cu.CUresult.CUDA_SUCCESS
        turned = np.zeros(8, np.float32)
        module.get_function("fetch")(np.uint64(int(texture)), drv.Out(turned), block=(8, 1, 1))
        assert (turned == np.arange(7, -1, -1)).all(), turned

        invalid = (cu.CUresult.CUDA_ERROR_INVALID_VALUE,)
        assert cu.cuSurfObjectCreate(over(plain)) == (*invalid, None), "no SURFACE_LDST"
        assert cu.cuSurfObjectCreate(resource) == (*invalid, None), "linear memory"
        linear.format = cu.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
        refused = cu.cuTexObjectCreate(resource, how, None)
        assert refused == (cu.CUresult.CUDA_ERROR_NOT_SUPPORTED, None), "bytes as fractions"
        handle = plain.handle
        del plain
        resource.resType, resource.res.array.hArray = cu.CUresourcetype.CU_RESOURCE_TYPE_ARRAY, handle
        assert cu.cuSurfObjectCreate(resource) == (*invalid, None), "no such array"
        assert cu.cuSurfObjectDestroy(surface) == (cu.CUresult.CUDA_SUCCESS,)
        assert cu.cuSurfObjectDestroy(surface) == invalid
        assert cu.cuTexObjectDestroy(texture) == (cu.CUresult.CUDA_SUCCESS,)
        print("done")
        '''
    )
    assert (ended.code, ended.stdout) == (0, "done\n"), ended.stderr


def test_surfaces_of_three_dimensions_and_what_is_no_place_of_one(script):
    ended = script(
        '''
        import numpy as np
        import pycuda.autoinit
        import pycuda.driver as drv
        from cuda.bindings import driver as cu
        from pycuda.compiler import SourceModule

        module = SourceModule("""
        __global__ void fill(cudaSurfaceObject_t to) {
            short2 value = make_short2(threadIdx.x + 10 * threadIdx.y, -(int)threadIdx.z);
            surf3Dwrite(value, to, threadIdx.x * sizeof(short2), threadIdx.y, threadIdx.z);
        }
        __global__ void read(cudaSurfaceObject_t from, short2 *out, int x, int y, int z) {
            *out = surf3Dread<short2>(from, x, y, z, cudaBoundaryModeClamp);
        }
        __global__ void plane(cudaSurfaceObject_t from) { surf2Dwrite(1, from, 0, 0); }
        """)
        wanted = drv.ArrayDescriptor3D()
        wanted.width, wanted.height, wanted.depth, wanted.flags = 4, 3, 2, drv.array3d_flags.SURFACE_LDST
        wanted.num_channels, wanted.format = 2, drv.array_format.SIGNED_INT16
        array = drv.Array(wanted)
        resource = cu.CUDA_RESOURCE_DESC()
        resource.res.array.hArray = array.handle
        _, surface = cu.cuSurfObjectCreate(resource)
        module.get_function("fill")(np.uint64(surface), block=(4, 3, 2))
        found, copy = np.zeros((2, 3, 4, 2), np.int16), drv.Memcpy3D()
        copy.set_src_array(array)
        copy.set_dst_host(found)
        copy.width_in_bytes, copy.height, copy.depth, copy.dst_pitch, copy.dst_height = 16, 3, 2, 16, 3
        copy()
        z, y, x = np.mgrid[:2, :3, :4]
        assert (found[..., 0] == x + 10 * y).all() and (found[..., 1] == -z).all(), found

        out, read = np.zeros(2, np.int16), module.get_function("read")
        read(np.uint64(surface), drv.Out(out), np.int32(400), np.int32(-7), np.int32(1), block=(1, 1, 1))
        assert out.tolist() == [3, -1], out
        memory = drv.mem_alloc(64)
        none = np.int32(0)
        for kernel, arguments, words in (
            (read, (np.uint64(surface), drv.Out(out), np.int32(2), none, none), "misaligned"),
            (read, (memory, drv.Out(out), none, none, none), "is not a surface"),
            (module.get_function("plane"), (np.uint64(surface),), "is 3-dimensional, not 2-dimensional"),
        ):
            try:
                kernel(*arguments, block=(1, 1, 1))
            except (drv.LaunchError, drv.LogicError) as error:
                assert words in str(error), error
            else:
                raise AssertionError(words)
        print("done")
        '''
    )
    assert (ended.code, ended.stdout) == (0, "done\n"), ended.stderr
