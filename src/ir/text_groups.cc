// Groups of processes in HLO text: lists, numbers in order, and axes of a mesh of devices.
#include <algorithm>
#include <numeric>

#include "ir/text_values.h"
#include "tensor/layouts.h"

namespace kiln::ir {
namespace {

constexpr int64_t kMostDevices = 1 << 16;  // as the header's counts allow

// The product; above kMostDevices, or with a factor below 1, some number above it.
int64_t CountOf(const Ints& factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (factor < 1 || factor > kMostDevices / product) return kMostDevices + 1;
    product *= factor;
  }
  return product;
}

// The numbers from 0 on as an array of these sizes, transposed, in order.
Ints Transposed(const Ints& sizes, const Ints& order) {
  Ints dims, strides;
  const Ints plain = RowMajorStrides(sizes);
  for (int64_t d : order) {
    dims.push_back(sizes[static_cast<size_t>(d)]);
    strides.push_back(plain[static_cast<size_t>(d)]);
  }
  Ints numbers(static_cast<size_t>(CountOf(sizes)));
  Ints index(dims.size(), 0);
  for (int64_t& number : numbers) {
    number = std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
    NextIndex(dims, index);
  }
  return numbers;
}

Groups Cut(const Ints& numbers, int64_t groups) {
  Groups all(static_cast<size_t>(groups));
  for (size_t k = 0; k < numbers.size(); ++k) {
    all[k * all.size() / numbers.size()].push_back(numbers[k]);
  }
  return all;
}

// "[4,2]T(1,0)": the numbers from 0 on as an array of these sizes, transposed.
Result<Ints> ReadIota(Scanner& scanner) {
  const size_t at = scanner.position();
  KILN_ASSIGN_OR_RETURN(const Ints sizes, ReadInts(scanner));
  Ints order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (scanner.Take("T")) {
    KILN_RETURN_IF_ERROR(scanner.Expect("("));
    for (size_t d = 0; d < order.size(); ++d) {
      if (d > 0) KILN_RETURN_IF_ERROR(scanner.Expect(","));
      KILN_ASSIGN_OR_RETURN(order[d], scanner.Integer());
    }
    KILN_RETURN_IF_ERROR(scanner.Expect(")"));
  }
  const int64_t count = CountOf(sizes);
  if (count > kMostDevices || !IsPermutation(order, std::ssize(sizes))) {
    return scanner.FailAt(at, Cat("at most ", kMostDevices, " numbers, as \"[4,2]T(1,0)\""));
  }
  if (!scanner.AffordNumbers(count)) return scanner.FailAt(at, "fewer groups in all");
  return Transposed(sizes, order);
}

// "[2,4]<=[4,2]T(1,0)": numbers in order as groups, as many as the first size says, of as many
// members as the second.
Result<Groups> ReadIotaGroups(Scanner& scanner) {
  const size_t at = scanner.position();
  KILN_ASSIGN_OR_RETURN(const Ints sizes, ReadInts(scanner));
  KILN_RETURN_IF_ERROR(scanner.Expect("<="));
  KILN_ASSIGN_OR_RETURN(const Ints numbers, ReadIota(scanner));
  if (sizes.empty() || CountOf(sizes) != std::ssize(numbers)) {
    return scanner.FailAt(at, Cat("groups of ", numbers.size(), " numbers in all"));
  }
  return Cut(numbers, sizes[0]);
}

// "'a'", or a word.
Result<std::string_view> ReadAxisName(Scanner& scanner) {
  const std::string_view quote = scanner.Take("'") ? "'" : scanner.Take("\"") ? "\"" : "";
  const std::string_view name = scanner.TakeWord();
  if (name.empty()) return scanner.Fail("the name of an axis");
  KILN_RETURN_IF_ERROR(scanner.Expect(quote));
  return name;
}

// A part of an axis of a mesh, behind parts of `before` indices in all.
struct SubAxis {
  size_t axis;
  int64_t before, size;
};

// "{'b','a':(1)2}", of which ":(1)2" is the part of size 2 behind parts of 1 in all.
Result<std::vector<SubAxis>> ReadAxes(Scanner& scanner, const std::vector<std::string_view>& names,
                                      const Ints& sizes) {
  std::vector<SubAxis> axes;
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  if (scanner.Take("}")) return axes;
  do {
    const size_t at = scanner.position();
    KILN_ASSIGN_OR_RETURN(const std::string_view name, ReadAxisName(scanner));
    const auto axis = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
    if (axis == names.size()) return scanner.FailAt(at, "an axis of the mesh");
    SubAxis& sub = axes.emplace_back(axis, 1, sizes[axis]);
    if (!scanner.Take(":")) continue;
    KILN_RETURN_IF_ERROR(scanner.Expect("("));
    KILN_ASSIGN_OR_RETURN(sub.before, scanner.Integer());
    KILN_RETURN_IF_ERROR(scanner.Expect(")"));
    KILN_ASSIGN_OR_RETURN(sub.size, scanner.Integer());
  } while (scanner.Take(","));
  KILN_RETURN_IF_ERROR(scanner.Expect("}"));
  return axes;
}

// The devices of a mesh in groups along axes; nothing if the axes overlap or do not divide the
// mesh.
std::optional<Groups> GroupsAlong(const std::vector<SubAxis>& axes, const Ints& sizes,
                                  const Ints& devices) {
  Ints parts;  // of all axes
  Ints along(axes.size());
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    std::vector<size_t> subs;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (axes[k].axis == axis) subs.push_back(k);
    }
    std::ranges::sort(subs, {}, [&](size_t k) { return axes[k].before; });
    int64_t before = 1;
    for (size_t k : subs) {
      const SubAxis& sub = axes[k];
      if (sub.before < before || sub.before % before != 0 || sub.size < 1 ||
          sub.before > sizes[axis] || sub.size > sizes[axis] / sub.before) {
        return std::nullopt;
      }
      parts.push_back(sub.before / before);
      along[k] = std::ssize(parts);
      parts.push_back(sub.size);
      before = sub.before * sub.size;
    }
    if (sizes[axis] % before != 0) return std::nullopt;
    parts.push_back(sizes[axis] / before);
  }
  Ints order;
  for (int64_t d = 0; d < std::ssize(parts); ++d) {
    if (std::ranges::find(along, d) == along.end()) order.push_back(d);
  }
  order.insert(order.end(), along.begin(), along.end());
  int64_t members = 1;
  for (const SubAxis& sub : axes) members *= sub.size;
  Ints numbers = Transposed(parts, order);
  for (int64_t& number : numbers) number = devices[static_cast<size_t>(number)];
  return Cut(numbers, std::ssize(numbers) / members);
}

// "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}": a group has the devices that differ along
// the named axes alone.
Result<Groups> ReadMeshGroups(Scanner& scanner) {
  const size_t at = scanner.position();
  std::vector<std::string_view> names;
  Ints sizes, devices;
  KILN_RETURN_IF_ERROR(scanner.ExpectKeyword("mesh"));
  KILN_RETURN_IF_ERROR(scanner.Expect("["));
  do {
    KILN_ASSIGN_OR_RETURN(names.emplace_back(), ReadAxisName(scanner));
    KILN_RETURN_IF_ERROR(scanner.Expect("="));
    KILN_ASSIGN_OR_RETURN(sizes.emplace_back(), scanner.Integer());
  } while (scanner.Take(","));
  KILN_RETURN_IF_ERROR(scanner.Expect("]"));
  const int64_t count = CountOf(sizes);
  if (count > kMostDevices) return scanner.FailAt(at, Cat("at most ", kMostDevices, " devices"));
  if (scanner.Take(",")) {
    KILN_RETURN_IF_ERROR(scanner.ExpectKeyword("device_ids"));
    KILN_RETURN_IF_ERROR(scanner.Expect("="));
    KILN_RETURN_IF_ERROR(scanner.Expect("("));
    if (scanner.Looking("[")) {
      KILN_ASSIGN_OR_RETURN(devices, ReadIota(scanner));
    } else {
      do {
        KILN_ASSIGN_OR_RETURN(devices.emplace_back(), scanner.Integer());
      } while (scanner.Take(","));
    }
    KILN_RETURN_IF_ERROR(scanner.Expect(")"));
  } else {
    if (!scanner.AffordNumbers(count)) return scanner.FailAt(at, "fewer groups in all");
    devices = Transposed({count}, {0});
  }
  if (std::ssize(devices) != count) return scanner.FailAt(at, Cat(count, " numbers of devices"));
  KILN_ASSIGN_OR_RETURN(const std::vector<SubAxis> axes, ReadAxes(scanner, names, sizes));
  std::optional<Groups> groups = GroupsAlong(axes, sizes, devices);
  if (!groups) return scanner.FailAt(at, "axes that divide the mesh");
  return *std::move(groups);
}

}  // namespace

Result<Groups> ReadGroups(Scanner& scanner) {
  if (scanner.Looking("[")) return ReadIotaGroups(scanner);
  if (scanner.PeekWord() == "mesh") return ReadMeshGroups(scanner);
  Groups groups;
  KILN_RETURN_IF_ERROR(scanner.Expect("{"));
  if (scanner.Take("}")) return groups;
  do {
    KILN_ASSIGN_OR_RETURN(Ints group, ReadInts(scanner));
    groups.push_back(std::move(group));
  } while (scanner.Take(","));
  KILN_RETURN_IF_ERROR(scanner.Expect("}"));
  return groups;
}

}  // namespace kiln::ir
