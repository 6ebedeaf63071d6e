// The names that a module has given out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace kiln::ir {

class Names {
 public:
  // A new name: `wanted`, made valid, if it is free, else with the first free number behind it.
  // "add.7" counts on from "add", so names do not grow by a number per copy.
  std::string Unique(std::string_view wanted);

 private:
  // Names that differ in the number behind the last dot alone. Most numbers are given out in order,
  // which takes no memory.
  struct Stem {
    bool is_taken = false;  // with no number
    int64_t next = 1;       // those from 1 to this one are taken
    std::unordered_set<int64_t> others;
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  Stem& StemOf(std::string_view name);

  std::unordered_map<std::string, Stem, Hash, std::equal_to<>> stems_;
};

}  // namespace kiln::ir
