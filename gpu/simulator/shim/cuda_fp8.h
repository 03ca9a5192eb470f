// Numbers of 8 bits.
#pragma once
#include <lockstep/float8.h>
