#include "client/donation.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace kiln::client {
namespace {

// An array or token of an argument or result.
struct Place {
  int64_t part;  // the parameter
  std::vector<int64_t> path;
  Shape shape;
};

void AddPlaces(int64_t part, const Shape& whole, std::vector<Place>& places) {
  ForEachLeaf(whole, [&](const Shape& leaf, std::span<const int64_t> path) {
    places.push_back({part, {path.begin(), path.end()}, leaf});
  });
}

}  // namespace

Result<std::vector<bool>> AliasDonors(const std::vector<size_t>& donors, ir::Module& module) {
  const ir::Computation& entry = *module.entry();
  std::vector<Place> arguments, results;
  for (size_t p = 0; p < entry.parameters().size(); ++p) {
    AddPlaces(static_cast<int64_t>(p), entry.parameters()[p]->shape(), arguments);
  }
  std::vector<bool> donatable(arguments.size());
  for (const ir::InputOutputAlias& alias : module.aliases()) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Place& argument = arguments[i];
      // An alias of a tuple is one of all that it holds.
      const std::vector<int64_t>& prefix = alias.parameter_index;
      const bool is_in = argument.part == alias.parameter &&
                         prefix.size() <= argument.path.size() &&
                         std::equal(prefix.begin(), prefix.end(), argument.path.begin());
      if (is_in) donatable[i] = true;
    }
  }
  if (donors.empty()) return donatable;
  AddPlaces(0, entry.root()->shape(), results);
  std::vector<bool> taken(results.size());
  for (const ir::InputOutputAlias& alias : module.aliases()) {
    for (size_t r = 0; r < results.size(); ++r) {
      const std::vector<int64_t>& prefix = alias.output_index;
      const std::vector<int64_t>& path = results[r].path;
      if (prefix.size() <= path.size() && std::equal(prefix.begin(), prefix.end(), path.begin())) {
        taken[r] = true;
      }
    }
  }
  for (size_t donor : donors) {
    if (donor >= arguments.size()) {
      return InvalidArgument("donor ", donor, ": there are ", arguments.size(), " arguments");
    }
    if (donatable[donor]) continue;
    donatable[donor] = true;
    const Place& argument = arguments[donor];
    for (size_t r = 0; r < results.size(); ++r) {
      if (taken[r] || !argument.shape.is_array() ||
          !results[r].shape.SameTypeAndDimensions(argument.shape)) {
        continue;
      }
      taken[r] = true;
      module.aliases().push_back({.output_index = results[r].path,
                                  .parameter = argument.part,
                                  .parameter_index = argument.path});
      break;
    }
  }
  return donatable;
}

}  // namespace kiln::client
