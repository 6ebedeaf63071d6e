#include <utility>

#include "base/status.h"
#include "base/strings.h"
#include "kiln/builder.h"
#include "kiln/context.h"
#include "kiln/types.h"
#include "ops/attributes.h"
#include "tensor/element_type.h"
#include "tools/kiln_gen/tables.h"

namespace kiln::gen {
namespace {

// "INVALID_ARGUMENT" as an enumerator: "kInvalidArgument".
std::string Enumerator(std::string_view name) {
  std::string out = "k";
  bool first = true;
  for (char c : name) {
    bool letter = c >= 'A' && c <= 'Z';
    if (c != '_') out += letter && !first ? static_cast<char>(c + 'a' - 'A') : c;
    first = c == '_';
  }
  return out;
}

ConstantGroup Types() {
  ConstantGroup group{"DTYPES", {}};
  auto add = [&](std::string_view enumerator, std::string_view name, int64_t number) {
    group.constants.push_back({std::string(name), Cat("KILN_", ToUpper(name)),
                               Cat("ElementType::k", enumerator), number});
  };
#define KILN_ELEMENT_TYPE(Name, text, number, bits, category) add(#Name, text, number);
#include "tensor/element_types.def"
#undef KILN_ELEMENT_TYPE
  // No types of elements, and so none of the library's inside.
  group.constants.push_back({"tuple", "KILN_TUPLE", "", KILN_TUPLE});
  group.constants.push_back({"token", "KILN_TOKEN", "", KILN_TOKEN});
  return group;
}

ConstantGroup Codes() {
  ConstantGroup group{"CODES", {}};
  constexpr int kBeyondAll = 64;
  for (int i = 0; i < kBeyondAll; ++i) {
    std::string name(CodeName(static_cast<Code>(i)));
    // A number that is no code has the name of kUnknown.
    if (name == CodeName(Code::kUnknown) && i != static_cast<int>(Code::kUnknown)) continue;
    group.constants.push_back({name, Cat("KILN_", name), Cat("Code::", Enumerator(name)), i});
  }
  return group;
}

ConstantGroup Directions() {
  ConstantGroup group{"DIRECTIONS", {}};
  for (int i = 0; i <= static_cast<int>(Direction::kLt); ++i) {
    std::string name(DirectionName(static_cast<Direction>(i)));
    group.constants.push_back({name, Cat("KILN_", name), Cat("Direction::", Enumerator(name)), i});
  }
  return group;
}

// Constants that the headers alone know.
ConstantGroup Named(std::string name, std::string_view prefix,
                    const std::vector<std::pair<std::string_view, int64_t>>& rows) {
  ConstantGroup group{std::move(name), {}};
  for (const auto& [row, value] : rows) {
    group.constants.push_back({std::string(row), Cat(prefix, row), "", value});
  }
  return group;
}

}  // namespace

std::vector<ConstantGroup> ConstantGroups() {
  return {Types(),
          Codes(),
          Directions(),
          Named("REDUCERS", "KILN_REDUCER_",
                {{"SUM", KILN_REDUCER_SUM},
                 {"PRODUCT", KILN_REDUCER_PRODUCT},
                 {"MAX", KILN_REDUCER_MAX},
                 {"MIN", KILN_REDUCER_MIN},
                 {"AND", KILN_REDUCER_AND},
                 {"OR", KILN_REDUCER_OR},
                 {"XOR", KILN_REDUCER_XOR}}),
          Named("JIT_MODES", "KILN_JIT_",
                {{"DEFAULT", KILN_JIT_DEFAULT}, {"ON", KILN_JIT_ON}, {"OFF", KILN_JIT_OFF}}),
          Named("LOG_LEVELS", "KILN_LOG_",
                {{"DEFAULT", KILN_LOG_DEFAULT},
                 {"INFO", KILN_LOG_INFO},
                 {"WARNING", KILN_LOG_WARNING},
                 {"ERROR", KILN_LOG_ERROR},
                 {"OFF", KILN_LOG_OFF}}),
          Named("GPU_MODES", "KILN_GPU_",
                {{"AUTO", KILN_GPU_AUTO}, {"EMULATED", KILN_GPU_EMULATED}, {"OFF", KILN_GPU_OFF}}),
          Named("GPU_LIBRARIES", "KILN_GPU_LIBRARY_",
                {{"DEFAULT", KILN_GPU_LIBRARY_DEFAULT},
                 {"AUTO", KILN_GPU_LIBRARY_AUTO},
                 {"NEVER", KILN_GPU_LIBRARY_NEVER},
                 {"ALWAYS", KILN_GPU_LIBRARY_ALWAYS}})};
}

}  // namespace kiln::gen
