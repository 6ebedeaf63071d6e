#include "client/donation.h"

#include <algorithm>
#include <tuple>
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

// Marks the places that an alias names. They are in the order of parts and paths, and an alias of a
// tuple is one of all that it holds.
void Mark(const std::vector<Place>& places, int64_t part, const std::vector<int64_t>& prefix,
          std::vector<bool>& marks) {
  auto key = [](const Place& place) { return std::tie(place.part, place.path); };
  auto place = std::ranges::lower_bound(places, std::tie(part, prefix), {}, key);
  for (; place != places.end() && place->part == part; ++place) {
    const bool is_in = prefix.size() <= place->path.size() &&
                       std::equal(prefix.begin(), prefix.end(), place->path.begin());
    if (!is_in) break;
    marks[static_cast<size_t>(place - places.begin())] = true;
  }
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
    Mark(arguments, alias.parameter, alias.parameter_index, donatable);
  }
  if (donors.empty()) return donatable;
  AddPlaces(0, entry.root()->shape(), results);
  std::vector<bool> taken(results.size());
  for (const ir::InputOutputAlias& alias : module.aliases()) {
    Mark(results, 0, alias.output_index, taken);
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
