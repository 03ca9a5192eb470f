// Half precision, for storage.
#pragma once
#include <lockstep/half.h>
