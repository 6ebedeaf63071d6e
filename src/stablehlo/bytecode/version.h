// The supported versions of the dialect vhlo. Private to the bytecode reader.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::stablehlo {

// "1.20.0"
std::string NewestVersion();

// From a producer such as "StableHLO_v1.20.0": fails for an unsupported version. Other producers
// state none.
Status CheckVersion(std::string_view producer);

}  // namespace kiln::stablehlo
