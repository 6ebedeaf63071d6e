#include "tools/kiln_run/arguments.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "ir/sample.h"
#include "tensor/array_file.h"

namespace kiln::run {
namespace {

// The place of an argument: an array in a parameter's value.
struct Place {
  std::string name, parameter;  // of the argument, and of its parameter
  const Shape* shape;
  Literal* value;
};

struct Given {
  std::string file;
  FileArray array;
};

std::vector<Place> PlacesOf(const ir::Module& module, std::vector<Literal>& values) {
  std::vector<Place> places;
  for (size_t p = 0; p < values.size(); ++p) {
    const ir::Instruction& parameter = *module.entry()->parameter(static_cast<int64_t>(p));
    ForEachLeaf(parameter.shape(), [&](const Shape& shape, std::span<const int64_t> path) {
      if (!shape.is_array()) return;
      std::string index;
      Literal* value = &values[p];
      for (int64_t k : path) {
        index += Cat(".", k);
        value = &value->elements()[static_cast<size_t>(k)];
      }
      const std::string& name =
          parameter.op_name().empty() ? parameter.name() : parameter.op_name();
      places.push_back({name + index, parameter.name() + index, &shape, value});
    });
  }
  return places;
}

Literal Zeros(const Shape& shape) {
  if (!shape.is_tuple()) return Literal(shape);
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Zeros(element));
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

std::vector<Literal> MadeUp(const ir::Module& module, const ArgumentSource& source) {
  std::vector<Literal> values;
  if (source.zeros) {
    for (const ir::Instruction* p : module.entry()->parameters()) {
      values.push_back(Zeros(p->shape()));
    }
    return values;
  }
  values = ir::SampleArguments(module, source.seed);
  if (source.large_floats) std::ranges::for_each(values, Enlarge);
  return values;
}

// Fails if values of the parameters' shapes take more than half of the machine's memory.
Status CheckMemory(const ir::Module& module) {
  double bytes = 0;
  for (const ir::Instruction* p : module.entry()->parameters()) {
    ForEachLeaf(p->shape(), [&](const Shape& shape, auto) {
      double elements = shape.is_array() ? 1 : 0;
      for (int64_t size : shape.dims()) elements *= static_cast<double>(size);
      if (shape.is_array()) bytes += elements * static_cast<double>(ByteWidth(shape.type()));
    });
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (bytes <= memory / 2) return OkStatus();
  return ResourceExhausted("they take ", static_cast<int64_t>(bytes / 1e9), " GB, the machine has ",
                           static_cast<int64_t>(memory / 1e9));
}

Status Put(const Given& given, const Place& place, size_t number) {
  auto value = AsShape(given.array, *place.shape);
  if (!value.ok()) {
    return value.status().WithContext(Cat(given.file, given.array.name.empty() ? "" : ": ",
                                          given.array.name, ": argument ", number, " (", place.name,
                                          ")"));
  }
  *place.value = *std::move(value);
  return OkStatus();
}

}  // namespace

Result<Arguments> MakeArguments(const ir::Module& module, const ArgumentSource& source) {
  KILN_RETURN_IF_ERROR(CheckMemory(module));
  Arguments arguments;
  arguments.values = MadeUp(module, source);
  const std::vector<Place> places = PlacesOf(module, arguments.values);
  arguments.seeded = places.size();
  std::vector<Given> given;
  for (const std::string& file : source.files) {
    KILN_ASSIGN_OR_RETURN(std::vector<FileArray> arrays, ReadArrays(file));
    for (FileArray& array : arrays) given.push_back({file, std::move(array)});
  }
  std::map<std::string_view, size_t> by_name;
  for (size_t k = places.size(); k-- > 0;) by_name[places[k].parameter] = k;
  for (size_t k = places.size(); k-- > 0;) by_name[places[k].name] = k;
  const bool named =
      std::ranges::any_of(given, [&](const Given& g) { return by_name.contains(g.array.name); });
  if (!named && given.size() > places.size()) {
    return InvalidArgument(given[places.size()].file, ": there are ", given.size(),
                           " arrays in the files, and the program has ", places.size(),
                           " arguments");
  }
  std::vector<bool> is_given(places.size());
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
    KILN_RETURN_IF_ERROR(Put(given[k], places[number], number));
    is_given[number] = true;
  }
  arguments.seeded = static_cast<size_t>(std::ranges::count(is_given, false));
  return arguments;
}

}  // namespace kiln::run
