// CUB's own header for its collectives; programs that include it need these.
#pragma once
#include <cub/cub.cuh>
