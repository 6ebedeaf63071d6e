#include "tools/kiln_run/arguments.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "ir/sample.h"
#include "tensor/array_file.h"

namespace kiln::run {
namespace {

// The place of an argument: an array in a parameter's value.
struct Place {
  std::string name, parameter_name;  // of the argument, and of its parameter
  size_t parameter;                  // its number
  std::vector<int64_t> path;         // in tuples
  const Shape* shape;
  std::optional<Literal> given;
};

struct Given {
  std::string file;
  FileArray array;
};

std::vector<Place> PlacesOf(const ir::Module& module) {
  std::vector<Place> places;
  const std::span<ir::Instruction* const> parameters = module.entry()->parameters();
  for (size_t number = 0; number < parameters.size(); ++number) {
    const ir::Instruction* p = parameters[number];
    ForEachLeaf(p->shape(), [&](const Shape& shape, std::span<const int64_t> path) {
      if (!shape.is_array()) return;
      std::string index;
      for (int64_t k : path) index += Cat(".", k);
      const std::string& name = p->op_name().empty() ? p->name() : p->op_name();
      places.push_back({name + index,
                        p->name() + index,
                        number,
                        {path.begin(), path.end()},
                        &shape,
                        std::nullopt});
    });
  }
  return places;
}

// A value of a shape with array(shape) for arrays and tokens.
template <typename F>
Literal Filled(const Shape& shape, const F& array) {
  if (!shape.is_tuple()) return array(shape);
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Filled(element, array));
  return Literal::Tuple(std::move(elements));
}

// Floats as they are times a power of ten, up to 10^6 for numbers of enough range.
void Enlarge(Literal& value) {
  for (Literal& element : value.elements()) Enlarge(element);
  const Shape& shape = value.shape();
  if (!shape.is_array() ||
      (shape.type() != ElementType::kF32 && shape.type() != ElementType::kF64)) {
    return;
  }
  double factor = 1;
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    factor = factor >= 5e5 ? 1 : factor * 10;
    if (shape.type() == ElementType::kF32) {
      value.values<float>()[static_cast<size_t>(k)] *= static_cast<float>(factor);
    } else {
      value.values<double>()[static_cast<size_t>(k)] *= factor;
    }
  }
}

// Makes values of parameters up.
class Maker {
 public:
  Maker(const ir::Module& module, const ArgumentSource& source)
      : module_(module), source_(source), sampler_(module) {}

  Literal Make(size_t number) const {
    const ir::Instruction& parameter = *module_.entry()->parameter(static_cast<int64_t>(number));
    if (source_.zeros) {
      return Filled(parameter.shape(), [](const Shape& shape) { return Literal(shape); });
    }
    // As ir::SampleArguments does for all of them.
    Literal value = sampler_.Sample(parameter, source_.seed + number);
    if (source_.large_floats) Enlarge(value);
    return value;
  }

 private:
  const ir::Module& module_;
  const ArgumentSource& source_;
  const ir::Sampler sampler_;
};

// Fails if the values of the parameters to be made up take more than half of the machine's memory.
Status CheckMemory(const ir::Module& module, const std::vector<bool>& is_made_up) {
  double bytes = 0;
  for (size_t p = 0; p < is_made_up.size(); ++p) {
    if (!is_made_up[p]) continue;
    ForEachLeaf(module.entry()->parameter(static_cast<int64_t>(p))->shape(),
                [&](const Shape& shape, auto) {
                  double elements = shape.is_array() ? 1 : 0;
                  for (int64_t size : shape.dims()) elements *= static_cast<double>(size);
                  if (shape.is_array()) {
                    bytes += elements * static_cast<double>(ByteWidth(shape.type()));
                  }
                });
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (bytes <= memory / 2) return OkStatus();
  return ResourceExhausted("they take ", static_cast<int64_t>(bytes / 1e9), " GB, the machine has ",
                           static_cast<int64_t>(memory / 1e9));
}

// The parameters' values: what is given as it is, the others made up.
Result<std::vector<Literal>> ValuesOf(const ir::Module& module, const ArgumentSource& source,
                                      std::vector<Place>& places) {
  std::vector<bool> is_made_up(module.entry()->parameters().size(), false);
  for (const Place& place : places) {
    if (!place.given) is_made_up[place.parameter] = true;
  }
  KILN_RETURN_IF_ERROR(CheckMemory(module, is_made_up));
  const Maker maker(module, source);
  std::vector<Literal> values;
  for (size_t p = 0; p < is_made_up.size(); ++p) {
    // Without memory where arrays will be put.
    values.push_back(is_made_up[p]
                         ? maker.Make(p)
                         : Filled(module.entry()->parameter(static_cast<int64_t>(p))->shape(),
                                  [](const Shape& shape) {
                                    return shape.is_array() ? Literal() : Literal(shape);
                                  }));
  }
  for (Place& place : places) {
    if (!place.given) continue;
    Literal* value = &values[place.parameter];
    for (int64_t k : place.path) value = &value->elements()[static_cast<size_t>(k)];
    *value = *std::move(place.given);
  }
  return values;
}

Status Put(const Given& given, size_t number, Place& place) {
  auto value = AsShape(given.array, *place.shape);
  if (!value.ok()) {
    return value.status().WithContext(Cat(given.file, given.array.name.empty() ? "" : ": ",
                                          given.array.name, ": argument ", number, " (", place.name,
                                          ")"));
  }
  place.given = *std::move(value);
  return OkStatus();
}

}  // namespace

Result<Arguments> MakeArguments(const ir::Module& module, const ArgumentSource& source) {
  Arguments arguments;
  std::vector<Place> places = PlacesOf(module);
  std::vector<Given> given;
  for (const std::string& file : source.files) {
    KILN_ASSIGN_OR_RETURN(std::vector<FileArray> arrays, ReadArrays(file));
    for (FileArray& array : arrays) given.push_back({file, std::move(array)});
  }
  std::map<std::string_view, size_t> by_name;
  for (size_t k = places.size(); k-- > 0;) by_name[places[k].parameter_name] = k;
  for (size_t k = places.size(); k-- > 0;) by_name[places[k].name] = k;
  const bool named =
      std::ranges::any_of(given, [&](const Given& g) { return by_name.contains(g.array.name); });
  if (!named && given.size() > places.size()) {
    return InvalidArgument(given[places.size()].file, ": there are ", given.size(),
                           " arrays in the files, and the program has ", places.size(),
                           " arguments");
  }
  for (size_t k = 0; k < given.size(); ++k) {
    size_t number = k;
    if (named) {
      const auto found = by_name.find(given[k].array.name);
      if (found == by_name.end()) {
        arguments.unused.push_back(given[k].array.name);
        continue;
      }
      number = found->second;
    }
    KILN_RETURN_IF_ERROR(Put(given[k], number, places[number]));
  }
  arguments.seeded = static_cast<size_t>(
      std::ranges::count_if(places, [](const Place& place) { return !place.given; }));
  KILN_ASSIGN_OR_RETURN(arguments.values, ValuesOf(module, source, places));
  return arguments;
}

}  // namespace kiln::run
