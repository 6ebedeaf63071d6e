#include "ir/verifier.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/instruction_map.h"
#include "tensor/leaves.h"

namespace kiln::ir {
namespace {

// The part of a shape that a path into tuples names, or null.
bool LayoutIsPermutation(const Shape& shape) {
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) {
      if (!LayoutIsPermutation(element)) return false;
    }
    return true;
  }
  const std::vector<int64_t>& order = shape.minor_to_major();
  if (order.empty()) return true;
  if (static_cast<int64_t>(order.size()) != shape.rank()) return false;
  std::vector<bool> seen(order.size());
  for (int64_t d : order) {
    if (d < 0 || d >= shape.rank() || seen[static_cast<size_t>(d)]) return false;
    seen[static_cast<size_t>(d)] = true;
  }
  return true;
}

// Whether the op's result, or its computations' parameters, share memory with the operands.
bool SharesMemory(Opcode opcode) {
  return opcode == Opcode::kTuple || opcode == Opcode::kGetTupleElement ||
         opcode == Opcode::kCall || opcode == Opcode::kFusion || opcode == Opcode::kWhile ||
         opcode == Opcode::kConditional;
}

class Checker {
 public:
  explicit Checker(const Module& module) : module_(module) {}

  // Structure and calls alone, without shapes.
  Status CheckGraph() {
    for (const auto& c : module_.computations()) computations_.insert(c.get());
    if (!computations_.contains(module_.entry())) {
      return InvalidArgument("module '", module_.name(), "' has no entry");
    }
    for (const auto& c : module_.computations()) KILN_RETURN_IF_ERROR(CheckStructure(*c));
    KILN_RETURN_IF_ERROR(CheckUsers());
    return CheckCalls();
  }
  Status Check() {
    KILN_RETURN_IF_ERROR(CheckGraph());
    for (const auto& c : module_.computations()) KILN_RETURN_IF_ERROR(CheckShapes(*c));
    return CheckAliases();
  }
  const Instruction* culprit() const { return culprit_; }

 private:
  template <typename... Args>
  Status Error(const Instruction& instruction, const Args&... args) {
    culprit_ = &instruction;
    return InvalidArgument("instruction '", instruction.name(), "' ", args...);
  }

  // The conditions checked before shapes are inferred.
  Status CheckStructure(const Computation& computation) {
    if (computation.parent() != &module_) {
      return InvalidArgument("computation '", computation.name(), "' is of another module");
    }
    if (!names_.insert(computation.name()).second) {
      return InvalidArgument("two computations are named '", computation.name(), "'");
    }
    InstructionSet seen(computation);
    bool has_root = false;
    int64_t parameters = 0;
    for (Instruction* owned : computation.instructions()) {
      const Instruction& i = *owned;
      if (i.parent() != &computation) return Error(i, "is of another computation");
      if (!instruction_names_.insert(i.name()).second)
        return Error(i, "has the name of another one");
      for (const Instruction* operand : i.operands()) {
        if (!operand) return Error(i, "has a null operand");
        if (!seen.contains(operand)) {
          return Error(i, "uses '", operand->name(), "', which does not come before it in ",
                       "computation '", computation.name(), "'");
        }
        edges_.emplace_back(operand, &i);
      }
      for (const Instruction* predecessor : i.control_predecessors()) {
        if (!seen.contains(predecessor)) {
          return Error(i, "waits for '", predecessor->name(),
                       "', which does not come before it in ", "computation '", computation.name(),
                       "'");
        }
      }
      seen.Insert(&i);
      has_root |= &i == computation.root();
      for (const Computation* callee : i.called()) {
        if (!computations_.contains(callee)) {
          return Error(i, "calls a computation that is not in the module");
        }
      }
      if (i.opcode() == Opcode::kParameter) {
        ++parameters;
        int64_t number = i.attributes().Int(Attr::kParameterNumber);
        auto all = computation.parameters();
        if (number < 0 || number >= static_cast<int64_t>(all.size()) || all[number] != &i) {
          return Error(i, "is not the parameter of its number, ", number);
        }
      }
    }
    if (!has_root) return InvalidArgument("computation '", computation.name(), "' has no root");
    if (parameters != static_cast<int64_t>(computation.parameters().size())) {
      return InvalidArgument("computation '", computation.name(),
                             "' lacks a parameter: the numbers have a gap");
    }
    return OkStatus();
  }

  // Users match operands, each once.
  Status CheckUsers() {
    std::vector<Edge> users;
    for (const auto& computation : module_.computations()) {
      for (Instruction* i : computation->instructions()) {
        for (const Instruction* user : i->users()) users.emplace_back(i, user);
      }
    }
    std::sort(users.begin(), users.end());
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    auto [user, edge] = std::mismatch(users.begin(), users.end(), edges_.begin(), edges_.end());
    bool extra = user != users.end() && (edge == edges_.end() || *user < *edge);
    if (extra) return Error(*user->first, "has a user that does not use it, or a user twice");
    if (edge == edges_.end()) return OkStatus();
    return Error(*edge->first, "does not know all its users");
  }

  // Calls form no cycle, and do not nest too deep. Goes from the callees up without recursion.
  Status CheckCalls() {
    std::unordered_map<const Computation*, int64_t> waiting, depth;
    std::unordered_map<const Computation*, std::vector<const Instruction*>> callers;
    std::vector<const Computation*> ready;
    for (const auto& c : module_.computations()) {
      int64_t calls = 0;
      for (Instruction* i : c->instructions()) {
        for (const Computation* callee : i->called()) {
          callers[callee].push_back(i);
          ++calls;
        }
      }
      waiting[c.get()] = calls;
      if (calls == 0) ready.push_back(c.get());
    }
    size_t done = 0;
    while (!ready.empty()) {
      const Computation* c = ready.back();
      ready.pop_back();
      ++done;
      for (const Instruction* caller : callers[c]) {
        const Computation* parent = caller->parent();
        depth[parent] = std::max(depth[parent], depth[c] + 1);
        if (depth[parent] > kMaxCallDepth) {
          return Error(*caller, "is the top of calls that nest deeper than ", kMaxCallDepth);
        }
        if (--waiting[parent] == 0) ready.push_back(parent);
      }
    }
    if (done == module_.computations().size()) return OkStatus();
    for (const auto& c : module_.computations()) {
      if (waiting[c.get()] == 0) continue;
      for (Instruction* i : c->instructions()) {
        for (const Computation* callee : i->called()) {
          if (waiting[callee] > 0) {
            return Error(*i, "calls '", callee->name(),
                         "', which leads back to its own computation");
          }
        }
      }
    }
    return InvalidArgument("computations call each other in a circle");
  }

  Status CheckShapes(const Computation& computation) {
    for (Instruction* i : computation.instructions()) {
      culprit_ = i;
      std::vector<const Shape*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(&operand->shape());
      std::vector<ProgramShape> called;
      for (const Computation* c : i->called()) called.push_back(c->program_shape());
      Result<Shape> shape =
          kiln::InferShape({i->opcode(), operands, i->attributes(), &i->shape(), called});
      if (!shape.ok()) return shape.status().WithContext(Cat("instruction '", i->name(), "'"));
      if (!shape->SameTypeAndDimensions(i->shape())) {
        return Error(*i, "has shape ", i->shape(), "; inference says ", *shape);
      }
      if (!LayoutIsPermutation(i->shape())) {
        return Error(*i, "has a layout that is no permutation of its dimensions");
      }
      if (SharesMemory(i->opcode())) KILN_RETURN_IF_ERROR(CheckLayouts(*i, *shape, called));
      KILN_RETURN_IF_ERROR(CheckLiteral(*i));
    }
    culprit_ = nullptr;
    return OkStatus();
  }

  // Values that are the same memory have the same layout.
  Status CheckLayouts(const Instruction& i, const Shape& inferred,
                      const std::vector<ProgramShape>& called) {
    if (inferred != i.shape()) {
      return Error(i, "has layout ", i.shape().ToString(true),
                   "; the layout of what it is made of is ", inferred.ToString(true));
    }
    bool one_each = i.opcode() == Opcode::kConditional;
    for (size_t c = 0; c < called.size(); ++c) {
      for (size_t p = 0; p < called[c].parameters.size(); ++p) {
        const Shape& operand = i.operand(static_cast<int64_t>(one_each ? c + 1 : p))->shape();
        if (operand != called[c].parameters[p]) {
          return Error(i, "passes ", operand.ToString(true), " to a parameter of layout ",
                       called[c].parameters[p].ToString(true));
        }
      }
      bool is_result = i.opcode() != Opcode::kWhile || c == 1;
      if (is_result && called[c].result != i.shape()) {
        return Error(i, "has layout ", i.shape().ToString(true), "; computation '",
                     i.called(static_cast<int64_t>(c))->name(), "' gives ",
                     called[c].result.ToString(true));
      }
    }
    return OkStatus();
  }

  Status CheckLiteral(const Instruction& i) {
    if (i.IsConstant() != (i.shared_literal() != nullptr)) {
      return Error(i, i.IsConstant() ? "has no literal" : "has a literal, and is no constant");
    }
    if (i.IsConstant() && !i.literal().shape().SameTypeAndDimensions(i.shape())) {
      return Error(i, "has shape ", i.shape(), " and a literal of shape ", i.literal().shape());
    }
    return OkStatus();
  }

  Status CheckAliases() {
    const Computation& entry = *module_.entry();
    std::unordered_set<std::string> outputs, inputs;
    for (const InputOutputAlias& alias : module_.aliases()) {
      auto parameters = entry.parameters();
      std::string output = Cat("{", Join(alias.output_index, ","), "}");
      std::string input = Cat(alias.parameter, " {", Join(alias.parameter_index, ","), "}");
      const Shape* to = PartAt(entry.root()->shape(), alias.output_index);
      const Shape* from = nullptr;
      if (alias.parameter >= 0 && alias.parameter < static_cast<int64_t>(parameters.size())) {
        from = PartAt(parameters[alias.parameter]->shape(), alias.parameter_index);
      }
      if (!to) return InvalidArgument("alias of output ", output, ": there is no such output");
      if (!from) return InvalidArgument("alias of parameter ", input, ": there is no such value");
      if (!to->SameTypeAndDimensions(*from)) {
        return InvalidArgument("output ", output, " of shape ", *to, " is an alias of parameter ",
                               input, " of shape ", *from, "; they must be equal");
      }
      if (!outputs.insert(output).second) {
        return InvalidArgument("output ", output, " is an alias of two parameters");
      }
      if (!inputs.insert(input).second) {
        return InvalidArgument("parameter ", input, " is an alias of two outputs");
      }
    }
    return OkStatus();
  }

  // An operand and its user.
  using Edge = std::pair<const Instruction*, const Instruction*>;

  const Module& module_;
  const Instruction* culprit_ = nullptr;
  std::unordered_set<const Computation*> computations_;
  std::unordered_set<std::string_view> names_, instruction_names_;
  std::vector<Edge> edges_;
};

}  // namespace

Status CheckModule(const Module& module, const Instruction** culprit) {
  Checker checker(module);
  Status status = checker.Check();
  if (culprit) *culprit = checker.culprit();
  return status;
}

Status CheckGraph(const Module& module) { return Checker(module).CheckGraph(); }

Status Verify(const Module& module) {
  Status status = CheckModule(module, nullptr);
  if (status.ok()) return status;
  return Internal("module '", module.name(), "' is not valid: ", status.message());
}

}  // namespace kiln::ir
