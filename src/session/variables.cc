#include "session/variables.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <ranges>
#include <unordered_map>

#include "base/strings.h"
#include "client/transfer.h"
#include "session/call_expansion.h"
#include "session/marks.h"
#include "session/values.h"
#include "tensor/safetensors.h"

namespace kiln::session {
namespace {

using client::Buffer;
using ir::Instruction;

bool IsVariableOp(const Instruction& i) {
  return i.opcode() == Opcode::kVariable || i.opcode() == Opcode::kAssign ||
         i.opcode() == Opcode::kAssignAdd;
}

const std::string& NameOf(const Instruction& i) { return i.attributes().Text(Attr::kVariable); }

// Whether a value of the shape may be one of a variable declared so.
bool FitsDeclaration(const Shape& actual, const Variables::Declaration& declared) {
  if (declared.is_read) return Fits(actual, declared.shape);
  return actual.type() == declared.shape.type() && actual.rank() == declared.shape.rank();
}

// Waits for a condition of the variables. The interrupt's flag is polled.
template <typename Condition>
Status Wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
            const Interrupt& interrupt, const Condition& holds) {
  while (!holds()) {
    KILN_RETURN_IF_ERROR(interrupt.Check());
    changed.wait_for(lock, std::chrono::milliseconds(5));
  }
  return OkStatus();
}

// How the instructions of a computation are run.
struct Role {
  bool is_inlined = false;  // the entry, and functions that it calls
  bool is_in_op = false;    // as a part of an op: a loop, or a conditional
};

// Of the computations that the entry reaches, other than by calls that must be compiled.
std::unordered_map<const ir::Computation*, Role> RolesIn(const ir::Module& module) {
  std::unordered_map<const ir::Computation*, Role> roles;
  roles[module.entry()].is_inlined = true;
  const std::vector<ir::Computation*> callees_first = module.CalleesFirst();
  for (const ir::Computation* computation : std::views::reverse(callees_first)) {
    auto it = roles.find(computation);
    if (it == roles.end() || !computation->MayCall()) continue;
    const Role role = it->second;
    for (const Instruction* i : computation->instructions()) {
      const bool is_plain = IsPlainCall(*i), must_compile = JitMarkOf(*i).must_compile;
      for (const ir::Computation* callee : i->called()) {
        if (role.is_inlined && is_plain) roles[callee].is_inlined = true;
        if (role.is_in_op || (!is_plain && !must_compile)) roles[callee].is_in_op = true;
      }
    }
  }
  return roles;
}

}  // namespace

Result<std::unique_ptr<Variables>> Variables::Create(const ir::Module& module) {
  std::unique_ptr<Variables> variables(new Variables());
  const auto roles = RolesIn(module);
  for (const auto& computation : module.computations()) {
    auto role = roles.find(computation.get());
    if (role == roles.end()) continue;
    for (const Instruction* i : computation->instructions()) {
      if (!IsVariableOp(*i)) continue;
      if (role->second.is_in_op) {
        return Unimplemented("the variable '", NameOf(*i), "' in the computation '",
                             computation->name(), "' ('", i->name(),
                             "'); loops and branches cannot read or assign variables");
      }
      KILN_RETURN_IF_ERROR(variables->Declare(*i));
    }
  }
  for (const auto& [name, declaration] : variables->declared_) variables->variables_[name];
  return variables;
}

Status Variables::Declare(const Instruction& instruction) {
  const bool is_read = instruction.opcode() == Opcode::kVariable;
  auto [it, is_new] = declared_.try_emplace(NameOf(instruction), instruction.shape(), is_read);
  if (is_new) return OkStatus();
  Declaration& declared = it->second;
  const Shape& shape = instruction.shape();
  const bool same_kind =
      shape.type() == declared.shape.type() && shape.rank() == declared.shape.rank();
  if (!same_kind || (is_read && declared.is_read && !shape.SameTypeAndDimensions(declared.shape))) {
    return InvalidArgument("the variable '", it->first, "' is ", declared.shape, ", and '",
                           instruction.name(), "' takes it for ", shape);
  }
  if (is_read) declared = {shape, true};
  return OkStatus();
}

Result<Ref<Buffer>> Variables::Value(const std::string& name) const {
  KILN_ASSIGN_OR_RETURN(std::vector<Ref<Buffer>> values, Values({&name, 1}));
  return values.front();
}

Result<std::vector<Ref<Buffer>>> Variables::Values(std::span<const std::string> names,
                                                   const Interrupt& interrupt) const {
  std::vector<Ref<Buffer>> values;
  auto is_here = [&](const std::string& name) {
    auto it = variables_.find(name);
    return it == variables_.end() || !it->second.is_on_loan;
  };
  std::unique_lock lock(mutex_);
  KILN_RETURN_IF_ERROR(
      Wait(lock, changed_, interrupt, [&] { return std::ranges::all_of(names, is_here); }));
  for (const std::string& name : names) {
    auto it = variables_.find(name);
    if (it == variables_.end()) return NotFound("the graph has no variable '", name, "'");
    if (!it->second.value) return FailedPrecondition("the variable '", name, "' has no value yet");
    values.push_back(it->second.value);
  }
  return values;
}

Status Variables::CheckFits(const std::string& name, const Shape& shape) const {
  auto it = declared_.find(name);
  if (it == declared_.end()) return NotFound("the graph has no variable '", name, "'");
  if (FitsDeclaration(shape, it->second)) return OkStatus();
  return InvalidArgument("the variable '", name, "' is ", it->second.shape, "; a value of ", shape,
                         " cannot be assigned");
}

Status Variables::Set(std::span<std::pair<std::string, Ref<Buffer>>> values, Loan* loan) {
  for (const auto& [name, value] : values) KILN_RETURN_IF_ERROR(CheckFits(name, value->shape()));
  auto is_here = [&](const auto& named) { return !variables_.at(named.first).is_on_loan; };
  std::unique_lock lock(mutex_);
  if (loan) {
    // What a run assigns, nobody else can have borrowed.
    loan->End();
  } else {
    changed_.wait(lock, [&] { return std::ranges::all_of(values, is_here); });
  }
  // A run that has overwritten values gets here, so from here on nothing is allocated.
  for (auto& [name, value] : values) {
    // Whoever asks for the value may keep it, and must not write it.
    value->storage().set_read_only();
    // Old values are released behind the lock.
    std::swap(variables_.at(name).value, value);
  }
  return OkStatus();
}

bool Variables::Loan::Take(const std::string& name, Ref<Buffer>& snapshot) {
  taken_.reserve(taken_.size() + 1);
  std::lock_guard lock(variables_.mutex_);
  Variable& variable = variables_.variables_.at(name);
  // The user may have set another one since.
  if (variable.value != snapshot) return false;
  variable.value = {};
  // Only with the variable's reference could others get one.
  if (!snapshot->has_one_reference() || !snapshot->storage().has_one_reference() ||
      !snapshot->storage().is_owned()) {
    variable.value = snapshot;
    return false;
  }
  variable.is_on_loan = true;
  snapshot->storage().set_read_only(false);
  taken_.emplace_back(&variable, std::move(snapshot));
  return true;
}

void Variables::Loan::End() {
  has_ended_ = true;
  for (auto& [variable, value] : taken_) variable->is_on_loan = false;
  variables_.changed_.notify_all();
}

Variables::Loan::~Loan() {
  if (has_ended_ || taken_.empty()) return;
  std::lock_guard lock(variables_.mutex_);
  for (auto& [variable, value] : taken_) {
    if (has_begun_) continue;
    value->Undonate();
    value->storage().set_read_only();
    variable->value = std::move(value);
  }
  End();
}

Variables::Lock::Lock(Variables& variables, std::vector<Variable*> locked)
    : variables_(variables), locked_(std::move(locked)) {
  for (Variable* variable : locked_) variable->is_locked = true;
}

Variables::Lock::~Lock() {
  std::lock_guard lock(variables_.mutex_);
  for (Variable* variable : locked_) variable->is_locked = false;
  variables_.changed_.notify_all();
}

Result<std::unique_ptr<Variables::Lock>> Variables::LockForAssignment(
    std::span<const std::string> names, const Interrupt& interrupt) {
  if (names.empty()) return std::unique_ptr<Lock>();
  std::vector<Variable*> variables;
  for (const std::string& name : names) variables.push_back(&variables_.at(name));
  // All at once, so that runs do not wait for each other in a circle.
  std::unique_lock lock(mutex_);
  KILN_RETURN_IF_ERROR(Wait(lock, changed_, interrupt, [&] {
    return std::ranges::none_of(variables, [](const Variable* v) { return v->is_locked; });
  }));
  return std::make_unique<Lock>(*this, std::move(variables));
}

Status Variables::Save(const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& [name, declaration] : declared_) names.push_back(name);
  KILN_ASSIGN_OR_RETURN(std::vector<Ref<Buffer>> values, Values(names));
  std::vector<std::byte> copy;
  std::vector<safetensors::NewArray> arrays;
  for (size_t i = 0; i < names.size(); ++i) {
    Buffer* value = values[i].get();
    arrays.push_back({names[i], value->shape(), [value, &copy]() -> Result<const std::byte*> {
                        copy.resize(static_cast<size_t>(value->bytes()));
                        KILN_RETURN_IF_ERROR(client::CopyToHost(*value, copy.data()));
                        return static_cast<const std::byte*>(copy.data());
                      }});
  }
  return safetensors::Write(path, arrays, {});
}

Status Variables::Restore(const std::string& path, client::Device& device) {
  KILN_ASSIGN_OR_RETURN(Ref<safetensors::File> file, safetensors::File::Open(path));
  std::vector<std::string> mistakes;
  std::vector<std::pair<const safetensors::Entry*, Shape>> found;
  for (const auto& [name, declared] : declared_) {
    const safetensors::Entry* entry = file->header().Find(name);
    if (!entry) {
      mistakes.push_back(Cat("'", name, "' is missing"));
      continue;
    }
    KILN_ASSIGN_OR_RETURN(Shape shape, entry->shape());
    if (!FitsDeclaration(shape, declared)) {
      mistakes.push_back(Cat("'", name, "' is ", shape, "; expected ", declared.shape));
    }
    found.emplace_back(entry, std::move(shape));
  }
  if (!mistakes.empty()) return InvalidArgument(path, ": ", Join(mistakes, "; "));
  std::vector<std::pair<std::string, Ref<Buffer>>> values;
  for (const auto& [entry, shape] : found) {
    const std::span<const std::byte> data = file->data(*entry);
    std::string unpacked;
    const void* elements = data.data();
    if (!safetensors::IsPlain(shape.type())) {
      unpacked = safetensors::Unpacked(shape.type(), data, shape.num_elements());
      elements = unpacked.data();
    }
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> value, client::CopyFromHost(device, shape, elements));
    values.emplace_back(entry->name, std::move(value));
  }
  return Set(values);
}

namespace {

class Replacer {
 public:
  explicit Replacer(ir::Computation& entry) : entry_(entry) {}

  Result<VariableUses> Run() {
    std::vector<Instruction*> instructions;
    for (Instruction* i : entry_.instructions()) {
      if (IsVariableOp(*i)) instructions.push_back(i);
    }
    for (Instruction* i : instructions) KILN_RETURN_IF_ERROR(Replace(i));
    AddResults();
    return std::move(uses_);
  }

 private:
  Status Replace(Instruction* i) {
    const std::string& name = NameOf(*i);
    Instruction* value = nullptr;
    if (i->opcode() == Opcode::kAssign) {
      value = i->operand(0);
    } else {
      KILN_ASSIGN_OR_RETURN(value, Current(*i));
    }
    if (i->opcode() == Opcode::kAssignAdd) {
      value = entry_.Create({.opcode = Opcode::kAdd,
                             .operands = {value, i->operand(0)},
                             .shape = i->shape(),
                             .op_name = i->op_name(),
                             .frontend_attributes = i->frontend_attributes()},
                            i);
    }
    if (i->opcode() != Opcode::kVariable) {
      if (assigned_.insert(name).second) uses_.writes.push_back(name);
      current_[name] = value;
    }
    entry_.ReplaceAllUses(i, value);
    entry_.Remove(i);
    return OkStatus();
  }

  // The value before an instruction, which reads it.
  Result<Instruction*> Current(const Instruction& i) {
    const std::string& name = NameOf(i);
    Instruction*& value = current_[name];
    if (!value) {
      const auto number = static_cast<int64_t>(entry_.parameters().size());
      value = entry_.Create({.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, number}},
                             .shape = i.shape(),
                             .name = name,
                             .op_name = i.op_name()},
                            entry_.instructions().front());
      uses_.reads.push_back(name);
    }
    if (!value->shape().SameTypeAndDimensions(i.shape())) {
      return InvalidArgument("'", i.name(), "' takes the variable '", name, "' for ", i.shape(),
                             "; it is assigned ", value->shape(), " by '", value->name(), "'");
    }
    return value;
  }

  // A value that is fetched, too, or of several variables, is copied: each has its own memory.
  void AddResults() {
    if (uses_.writes.empty()) return;
    Instruction* root = entry_.root();
    std::vector<Instruction*> results(root->operands().begin(), root->operands().end());
    for (const std::string& name : uses_.writes) {
      Instruction* value = current_.at(name);
      if (std::ranges::find(results, value) != results.end()) {
        value = CopyOf(value, root);
      }
      results.push_back(value);
    }
    std::vector<Shape> shapes;
    for (const Instruction* result : results) shapes.push_back(result->shape());
    entry_.SetOperands(root, results);
    root->set_shape(Shape::Tuple(std::move(shapes)));
  }

  ir::Computation& entry_;
  VariableUses uses_;
  std::map<std::string, Instruction*> current_;
  std::set<std::string> assigned_;
};

}  // namespace

Result<VariableUses> ReplaceVariables(ir::Module& module) {
  return Replacer(*module.entry()).Run();
}

}  // namespace kiln::session
