// The attributes of a program's entry function that have no place in HLO.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::stablehlo {

// Of each argument and result, by name. Values are texts: strings as they are, integers in decimal,
// booleans and names without value as "true" and "false". Others are left out.
struct EntryAttributes {
  using Map = std::map<std::string, std::string, std::less<>>;
  std::vector<Map> arguments, results;
};

// Marks an argument that may be donated without a result in its memory.
inline constexpr std::string_view kBufferDonor = "jax.buffer_donor";
// The same for arguments that are bound once for many executions.
inline constexpr std::string_view kFrozen = "kiln.frozen";

}  // namespace kiln::stablehlo
