// Shared macros of kernels with elements of type VALUE, int or float, which expand VALUE as a part of a name.

#ifndef VALUE
#define VALUE float
#endif

#define JOINED(prefix, suffix) prefix##suffix
#define OF_VALUE(prefix, type) JOINED(prefix, type)

// Four elements, 16 bytes, for the widest loads.
#define VECTOR_int int4
#define VECTOR_float float4
#define VECTOR OF_VALUE(VECTOR_, VALUE)
#define MAKE_VECTOR OF_VALUE(make_, VECTOR)

// The bits of an element, for operations on 32-bit words.
#define TO_BITS_int(value) ((unsigned int)(value))
#define TO_BITS_float(value) __float_as_uint(value)
#define TO_BITS OF_VALUE(TO_BITS_, VALUE)
#define FROM_BITS_int(bits) ((int)(bits))
#define FROM_BITS_float(bits) __uint_as_float(bits)
#define FROM_BITS OF_VALUE(FROM_BITS_, VALUE)
