// The features of the processor.
#pragma once

#include <cstdint>

namespace kiln::rt {

// Those of kCpuFeatures that this processor and system have: bit n for number n.
uint64_t FeaturesOfMachine();

}  // namespace kiln::rt
