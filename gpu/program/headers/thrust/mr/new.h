// Where Thrust's C++ back end takes its memory from, which is put in this header's place: kernels reach it too.
#pragma once
#include <thrust/mr/memory_resource.h>

THRUST_NAMESPACE_BEGIN
namespace mr {

class new_delete_resource_base : public memory_resource<> {
  public:
    void *do_allocate(std::size_t bytes, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override {
        void *made = nullptr;
        if (cudaMallocManaged(&made, bytes) != cudaSuccess) throw std::bad_alloc();
        return made;
    }
    void do_deallocate(void *made, std::size_t, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override { cudaFree(made); }
};
class new_delete_resource final : public new_delete_resource_base {};

} // namespace mr
THRUST_NAMESPACE_END
