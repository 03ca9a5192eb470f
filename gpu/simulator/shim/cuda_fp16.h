// Half precision.
#pragma once
#include <lockstep/floats/half.h>
