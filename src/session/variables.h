// Variables: named arrays that runs of a session read and assign.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/device.h"
#include "ir/ir.h"
#include "tensor/shape.h"

namespace kiln::session {

// The values of variables. Any thread. While a value is on loan, whoever asks for it or sets it
// waits.
class Variables {
 public:
  // The variables of a graph: ops that read and assign it agree on its element type and rank.
  // INVALID_ARGUMENT if they do not, UNIMPLEMENTED for variables in loops and branches. Those of
  // called functions are the graph's, too, except in calls that must be compiled, which a session
  // refuses by itself.
  static Result<std::unique_ptr<Variables>> Create(const ir::Module& module);

  // By name. Reads declare a shape; the shape of an assigned value is only known by rank.
  struct Declaration {
    Shape shape;
    bool is_read = false;
  };
  const std::map<std::string, Declaration>& declared() const { return declared_; }

  // NOT_FOUND if the graph has no such variable; FAILED_PRECONDITION if it has no value yet.
  Result<Ref<client::Buffer>> Value(const std::string& name) const;
  // The values of several, all of one moment. The interrupt ends the wait for loans.
  Result<std::vector<Ref<client::Buffer>>> Values(std::span<const std::string> names,
                                                  const Interrupt& interrupt = {}) const;
  // INVALID_ARGUMENT if a value of the shape does not fit the variable's declaration.
  Status CheckFits(const std::string& name, const Shape& shape) const;

  class Loan;
  // Sets all of them at once, or none: CheckFits. The old values take the places of the new ones.
  // A run that ends sets its loan's variables, too, with the results in their memory.
  Status Set(std::span<std::pair<std::string, Ref<client::Buffer>>> values, Loan* loan = nullptr);

  // Exclusive rights to assign variables, for a run that also reads them. Runs that assign others
  // go on. The interrupt ends the wait.
  class Lock;
  Result<std::unique_ptr<Lock>> LockForAssignment(std::span<const std::string> names,
                                                  const Interrupt& interrupt);

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
    bool is_on_loan = false;    // then the value is null
    bool is_locked = false;     // for assignment
  };
  Variables() = default;
  Status Declare(const ir::Instruction& instruction);

  std::map<std::string, Declaration> declared_;
  mutable std::mutex mutex_;                 // of the variables
  mutable std::condition_variable changed_;  // a loan or a lock has ended
  std::map<std::string, Variable> variables_;
};

class Variables::Lock {
 public:
  // Under the mutex of the variables, which are not locked.
  Lock(Variables& variables, std::vector<Variable*> locked);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Variables& variables_;
  const std::vector<Variable*> locked_;
};

// The values that a run updates in their memory. Others wait for them, so the run must wait for
// nobody until it sets them. One thread.
class Variables::Loan {
 public:
  explicit Loan(Variables& variables) : variables_(variables) {}
  // Puts back what was not set, unless the program has begun to overwrite it: such a variable is
  // left without a value.
  ~Loan();
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // Takes the value out, if nothing but the variable and `snapshot` refers to it, and its memory
  // was allocated by the library; `snapshot` is then null. The run has locked the variable for
  // assignment. Whether it was taken; the caller may donate it.
  bool Take(const std::string& name, Ref<client::Buffer>& snapshot);
  bool empty() const { return taken_.empty(); }
  // ExecuteOptions::begun of the run.
  bool* begun() { return &has_begun_; }

 private:
  friend class Variables;
  // Under the mutex of the variables: ends the loan.
  void End();

  Variables& variables_;
  std::vector<std::pair<Variable*, Ref<client::Buffer>>> taken_;
  bool has_begun_ = false, has_ended_ = false;
};

// A variable that a unit may update in its memory, which the unit's module allows by an alias.
struct InPlaceUpdate {
  std::string name;
  size_t argument = 0, result = 0;  // of the unit
};

// The variables of a part of a graph, which ReplaceVariables has made parameters and results.
struct VariableUses {
  std::vector<std::string> reads;       // of the last parameters
  std::vector<std::string> writes;      // of the last results
  std::vector<InPlaceUpdate> in_place;  // of the last unit; FindInPlaceUpdates
};

// Makes the variables of a Subgraph's module parameters and results: a read is the last assigned
// value, or else a new parameter; the last assigned value of each variable is a new result. The
// order is that of the entry's instructions.
Result<VariableUses> ReplaceVariables(ir::Module& module);

}  // namespace kiln::session
