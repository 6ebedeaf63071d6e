// The functions of the C ABI, as the tables list them, and how each is called with arguments that
// are made at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kiln::fuzz {

class World;

// An argument, whatever its type is.
struct Argument {
  int64_t number = 0;
  double real = 0;
  const void* pointer = nullptr;
};

struct Parameter {
  std::string type, name;
};

struct Function {
  std::string name;
  // Of a builder function: what it takes, and a call of it. Parameter 0 is the graph.
  std::vector<Parameter> parameters;
  uint64_t (*build)(const Argument* arguments) = nullptr;
  // Of the others: makes arguments and calls it.
  void (*call)(World& world) = nullptr;
};

const std::vector<Function>& Functions();
// The function's place in that list.
size_t FunctionByName(std::string_view name);

}  // namespace kiln::fuzz
