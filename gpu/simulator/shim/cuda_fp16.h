// Half precision.
#pragma once
#include <lockstep/half.h>
