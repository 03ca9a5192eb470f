// thrust::complex.
#pragma once
#include <lockstep/complex.h>

namespace thrust {
LOCKSTEP_COMPLEX_NAMES
}
