// The scopes in which the ops of a graph are made: what ops made inside get from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::capi {

// Frontend attributes, equal ones once. What it gives stays as long as the pool.
class AttributesPool {
 public:
  ir::FrontendAttributesRef Share(const ir::FrontendAttributesRef& attributes);

 private:
  std::unordered_map<std::string, ir::FrontendAttributesRef> known_;
};

// Kinds of scopes nest independently of each other. Entering and leaving a scope, and marking an
// op, take constant time.
class Scopes {
 public:
  explicit Scopes(AttributesPool& pool) : pool_(pool) {}

  // The innermost one counts; an empty name is none.
  Status PushDevice(std::string_view name);
  Status PopDevice();
  // Outermost scopes have different numbers, inner ones that of the outermost.
  Status PushJit(int32_t compile);
  Status PopJit();
  // Below the outer scopes' names, made unique; an empty name is outside of all, and a name that
  // ends with '/' is taken as it is.
  Status PushName(std::string_view name);
  Status PopName();
  // `made` is the number of values in the graph. An empty list leaves the outer scopes.
  void PushControl(std::vector<ir::Instruction*> values, size_t made);
  Status PopControl(size_t made);
  // That a value has been replaced.
  void Replace(const ir::Instruction* from, ir::Instruction* to);

  // Whether names are given out; from now on if `begins`, when present ones must be noted.
  bool gives_names() const { return gives_names_; }
  // That a value has the name.
  void NoteName(std::string_view name);

  // Gives a new op its attributes and its name.
  void Mark(ir::InstructionSpec& spec);
  bool has_control() const { return !controls_.empty(); }
  // What a new op waits for, beside its operands. `index` gives the position of a value of the
  // graph. An operand made inside a scope waits already.
  std::vector<ir::Instruction*> PredecessorsOf(
      const ir::InstructionSpec& spec,
      const std::function<size_t(const ir::Instruction*)>& index) const;

 private:
  struct Jit {
    bool compiles;
    int64_t number;
  };
  struct Control {
    std::vector<ir::Instruction*> values;  // empty: outer scopes do not count
    size_t begin;                          // values from this position on wait for `values`
  };

  // TensorFlow's: "add", "add_1". Case does not matter.
  std::string UniqueName(std::string name);

  AttributesPool& pool_;
  std::vector<std::string> devices_;
  std::vector<Jit> jits_;
  int64_t next_jit_ = 0;
  std::vector<std::string> names_;  // with a '/' at the end, or empty
  bool gives_names_ = false;
  std::unordered_map<std::string, int64_t> names_in_use_;
  std::vector<Control> controls_;
  // Those of the scopes; made anew for the first op after a change.
  std::optional<ir::FrontendAttributesRef> attributes_ = ir::FrontendAttributesRef();
};

}  // namespace kiln::capi
