// Variables: named arrays that runs of a session read and assign.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/device.h"
#include "ir/ir.h"
#include "tensor/shape.h"

namespace kiln::session {

// The values of variables. Any thread.
class Variables {
 public:
  // The variables of a graph: ops that read and assign it agree on its element type and rank.
  // INVALID_ARGUMENT if they do not, UNIMPLEMENTED for variables in loops, branches and calls.
  static Result<std::unique_ptr<Variables>> Create(const ir::Module& module);

  // By name. Reads declare a shape; the shape of an assigned value is only known by rank.
  struct Declaration {
    Shape shape;
    bool is_read = false;
  };
  const std::map<std::string, Declaration>& declared() const { return declared_; }

  // NOT_FOUND if the graph has no such variable; FAILED_PRECONDITION if it has no value yet.
  Result<Ref<client::Buffer>> Value(const std::string& name) const;
  // The values of several, all of one moment.
  Result<std::vector<Ref<client::Buffer>>> Values(std::span<const std::string> names) const;
  // Sets all of them at once, or none. INVALID_ARGUMENT if a value does not fit its declaration.
  Status Set(std::span<const std::pair<std::string, Ref<client::Buffer>>> values);

  // Exclusive rights to assign variables, for a run that also reads them. Runs that assign others
  // go on.
  class Lock;
  std::unique_ptr<Lock> LockForAssignment(std::span<const std::string> names);

  // Writes all values to a safetensors file, which replaces an old one once it is complete.
  // FAILED_PRECONDITION if a variable has no value.
  Status Save(const std::string& path) const;
  // Sets all variables from a file, on a device: none if a variable is missing there, or is of
  // another type or shape than declared (INVALID_ARGUMENT, with all mistakes). Other arrays in the
  // file are ignored.
  Status Restore(const std::string& path, client::Device& device);

 private:
  struct Variable {
    Ref<client::Buffer> value;  // null before the first assignment
    std::mutex assignment;
  };
  Variables() = default;
  Status Declare(const ir::Instruction& instruction);
  Status CheckFits(const std::string& name, const Shape& shape) const;

  std::map<std::string, Declaration> declared_;
  mutable std::mutex mutex_;  // of the values
  std::map<std::string, Variable> variables_;
};

class Variables::Lock {
 public:
  explicit Lock(std::vector<std::unique_lock<std::mutex>> locks) : locks_(std::move(locks)) {}

 private:
  std::vector<std::unique_lock<std::mutex>> locks_;
};

// The variables of a part of a graph, which ReplaceVariables has made parameters and results.
struct VariableUses {
  std::vector<std::string> reads;   // of the last parameters
  std::vector<std::string> writes;  // of the last results
};

// Makes the variables of a Subgraph's module parameters and results: a read is the last assigned
// value, or else a new parameter; the last assigned value of each variable is a new result. The
// order is that of the entry's instructions.
Result<VariableUses> ReplaceVariables(ir::Module& module);

}  // namespace kiln::session
