// The upper half of a float, as a number.
#pragma once
#include <lockstep/floats/bfloat16.h>
