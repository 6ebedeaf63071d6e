// The versions of the dialect vhlo that are read. Private to the bytecode reader.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::stablehlo {

// "1.20.0"
std::string NewestVersion();

// Of a producer, as "StableHLO_v1.20.0" is one: fails where its version is not read. Others do not
// tell one.
Status CheckVersion(std::string_view producer);

}  // namespace kiln::stablehlo
