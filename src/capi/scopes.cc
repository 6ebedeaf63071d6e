#include "capi/scopes.h"

#include <algorithm>

#include "base/characters.h"
#include "base/strings.h"
#include "capi/options.h"
#include "client/device_name.h"

namespace kiln::capi {
namespace {

using ir::FrontendAttributesRef;
using ir::Instruction;

template <typename T>
Status Pop(std::vector<T>& scopes, std::string_view kind) {
  if (scopes.empty()) {
    return FailedPrecondition("there is no ", kind, " to leave; each must have been entered");
  }
  scopes.pop_back();
  return OkStatus();
}

// TensorFlow's rule for the names of scopes.
bool IsScopeName(std::string_view name, bool is_outermost) {
  constexpr std::string_view kOthers = ".-/\\>";
  if (is_outermost && name[0] != '.' && !IsDigit(name[0]) &&
      (!IsLetter(name[0]) || name[0] == '_')) {
    return false;
  }
  return std::ranges::all_of(name, [&](char c) {
    return IsLetter(c) || IsDigit(c) || kOthers.find(c) != std::string_view::npos;
  });
}

// Parameters and constants do nothing that could wait.
bool CanWait(Opcode opcode) { return opcode != Opcode::kParameter && opcode != Opcode::kConstant; }

}  // namespace

FrontendAttributesRef AttributesPool::Share(const FrontendAttributesRef& attributes) {
  if (!attributes) return {};
  std::string text;
  for (const auto& [key, value] : attributes->entries()) {
    for (const std::string& part : {key, value}) {
      AppendTo(text, part.size());
      text += ':';
      text += part;
    }
  }
  return known_.try_emplace(std::move(text), attributes).first->second;
}

Status Scopes::PushDevice(std::string_view name) {
  if (!name.empty()) KILN_RETURN_IF_ERROR(client::ParseDeviceName(name).status());
  devices_.emplace_back(name);
  attributes_.reset();
  return OkStatus();
}

Status Scopes::PopDevice() {
  attributes_.reset();
  return Pop(devices_, "device scope");
}

Status Scopes::PushJit(int32_t compile) {
  KILN_RETURN_IF_ERROR(CheckSwitch("compile", compile));
  jits_.push_back({compile != 0, jits_.empty() ? next_jit_++ : jits_.back().number});
  attributes_.reset();
  return OkStatus();
}

Status Scopes::PopJit() {
  attributes_.reset();
  return Pop(jits_, "jit scope");
}

Status Scopes::PushName(std::string_view name) {
  gives_names_ = true;
  if (name.empty()) {
    names_.emplace_back();
    return OkStatus();
  }
  const std::string outer = names_.empty() ? std::string() : names_.back();
  if (!IsScopeName(name, outer.empty())) {
    return InvalidArgument("'", name,
                           "' is no name of a scope; expected letters, digits, '.', '_', ",
                           "'-', '/', '\\' and '>', the first one a letter, a digit or '.'");
  }
  if (name.ends_with('/')) {
    names_.emplace_back(name);
  } else {
    names_.push_back(UniqueName(outer + std::string(name)) + '/');
  }
  return OkStatus();
}

Status Scopes::PopName() { return Pop(names_, "name scope"); }

void Scopes::PushControl(std::vector<Instruction*> values, size_t made) {
  controls_.push_back({std::move(values), made});
}

Status Scopes::PopControl(size_t made) {
  const bool was_apart = !controls_.empty() && controls_.back().values.empty();
  KILN_RETURN_IF_ERROR(Pop(controls_, "scope of control dependencies"));
  // Ops made in the meantime do not wait for what the outer scopes have.
  if (was_apart) {
    for (Control& outer : controls_) outer.begin = made;
  }
  return OkStatus();
}

void Scopes::Replace(const ir::Instruction* from, ir::Instruction* to) {
  for (Control& control : controls_) {
    for (ir::Instruction*& value : control.values) {
      if (value == from) value = to;
    }
  }
}

std::string Scopes::UniqueName(std::string name) {
  const std::string key = ToLower(name);
  int64_t& count = names_in_use_[key];
  int64_t suffix = count++;
  if (suffix == 0) return name;
  std::string other = Cat(key, "_", suffix);
  while (names_in_use_.contains(other)) other = Cat(key, "_", ++suffix);
  count = suffix + 1;
  names_in_use_.emplace(std::move(other), 1);
  return Cat(name, "_", suffix);
}

void Scopes::NoteName(std::string_view name) {
  if (!name.empty()) names_in_use_.try_emplace(ToLower(name), 1);
}

void Scopes::Mark(ir::InstructionSpec& spec) {
  if (!attributes_) {
    std::vector<ir::FrontendAttributes::Entry> entries;
    if (!devices_.empty() && !devices_.back().empty()) {
      entries.emplace_back(ir::kDeviceAttribute, devices_.back());
    }
    if (!jits_.empty()) {
      entries.emplace_back(ir::kCompileAttribute, jits_.back().compiles ? "true" : "false");
      entries.emplace_back(ir::kScopeAttribute, Cat("jit_scope_", jits_.back().number));
    }
    attributes_ = pool_.Share(ir::MakeFrontendAttributes(std::move(entries)));
  }
  if (!spec.frontend_attributes) spec.frontend_attributes = *attributes_;
  if (!names_.empty() && !names_.back().empty() && spec.op_name.empty()) {
    const std::string_view own = spec.name.empty() ? OpcodeName(spec.opcode) : spec.name;
    spec.op_name = UniqueName(Cat(names_.back(), own));
  }
}

std::vector<Instruction*> Scopes::PredecessorsOf(
    const ir::InstructionSpec& spec, const std::function<size_t(const Instruction*)>& index) const {
  std::vector<Instruction*> predecessors;
  if (!CanWait(spec.opcode)) return predecessors;
  for (auto scope = controls_.rbegin(); scope != controls_.rend(); ++scope) {
    if (scope->values.empty()) break;
    const bool waits = std::ranges::any_of(spec.operands, [&](const Instruction* operand) {
      return CanWait(operand->opcode()) && index(operand) >= scope->begin;
    });
    if (waits) continue;
    for (Instruction* value : scope->values) {
      const bool is_operand = std::ranges::find(spec.operands, value) != spec.operands.end();
      if (!is_operand) predecessors.push_back(value);
    }
  }
  return predecessors;
}

}  // namespace kiln::capi
