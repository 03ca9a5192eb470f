// The OPERATOR of reductions and scans: SUM, PRODUCT, MIN or MAX, associative and commutative. COMBINE applies it to
// two elements; IDENTITY leaves every element unchanged.

#include "values.cuh"

#define SUM 0
#define PRODUCT 1
#define MIN 2
#define MAX 3

#ifndef OPERATOR
#define OPERATOR SUM
#endif

#define LARGEST_int 2147483647
#define LARGEST_float 3.402823466e+38f
#define SMALLEST_int (-2147483647 - 1)
#define SMALLEST_float (-3.402823466e+38f)

#if OPERATOR == SUM
#define COMBINE(a, b) ((a) + (b))
#define IDENTITY ((VALUE)0)
#elif OPERATOR == PRODUCT
#define COMBINE(a, b) ((a) * (b))
#define IDENTITY ((VALUE)1)
#elif OPERATOR == MIN
#define COMBINE(a, b) min(a, b)
#define IDENTITY OF_VALUE(LARGEST_, VALUE)
#else
#define COMBINE(a, b) max(a, b)
#define IDENTITY OF_VALUE(SMALLEST_, VALUE)
#endif
