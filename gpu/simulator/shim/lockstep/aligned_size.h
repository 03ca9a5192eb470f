// A number of bytes whose alignment is known, for copies.
#pragma once

namespace cuda {
template <size_t Alignment>
struct aligned_size_t {
    size_t value;
    LOCKSTEP_API explicit aligned_size_t(size_t size) : value(size) {}
    LOCKSTEP_API operator size_t() const { return value; }
    static const size_t align = Alignment;
};
template <typename Size>
struct lockstep_alignment_of {
    static const size_t value = 1;
};
template <size_t Alignment>
struct lockstep_alignment_of<aligned_size_t<Alignment>> {
    static const size_t value = Alignment;
};
} // namespace cuda
