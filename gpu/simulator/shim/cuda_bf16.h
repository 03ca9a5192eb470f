// The upper half of a float, as a number.
#pragma once
#include <lockstep/bfloat16.h>
