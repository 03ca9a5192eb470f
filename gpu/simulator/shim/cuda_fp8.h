// Numbers of 8 bits.
#pragma once
#include <lockstep/floats/float8.h>
