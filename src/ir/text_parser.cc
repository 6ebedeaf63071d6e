#include "ir/text_parser.h"

#include "ir/accommodate.h"
#include "ir/elided.h"
#include "ir/process_groups.h"
#include "ir/sample.h"
#include "ir/text_values.h"
#include "ir/verifier.h"

namespace kiln::ir {
namespace {

constexpr int64_t kMaxNesting = 200;
constexpr int64_t kMostProcesses = int64_t{1} << 16;

// The value in the wanted layout: itself, or copies of the arrays in it that have another one. They
// are made at the computation's end, where `value` is its root.
Instruction* WithLayout(Instruction* value, const Shape& wanted) {
  if (value->shape() == wanted) return value;
  Computation* computation = value->parent();
  if (!wanted.is_tuple()) {
    return computation->Create({.opcode = Opcode::kCopy, .operands = {value}, .shape = wanted});
  }
  std::vector<Instruction*> elements;
  for (size_t i = 0; i < wanted.elements().size(); ++i) {
    Instruction* element = ElementOf(value, static_cast<int64_t>(i));
    elements.push_back(WithLayout(element, wanted.elements()[i]));
  }
  return computation->Create(
      {.opcode = Opcode::kTuple, .operands = std::move(elements), .shape = wanted});
}

}  // namespace

Result<std::unique_ptr<Module>> TextParser::Parse() {
  module_ = std::make_unique<Module>("module");
  if (LookingAtInstruction()) {
    KILN_RETURN_IF_ERROR(ReadInstructionAlone());
  } else {
    KILN_RETURN_IF_ERROR(ReadHeader());
    KILN_RETURN_IF_ERROR(SkipTables());
    while (!scanner_.AtEnd()) KILN_RETURN_IF_ERROR(ReadComputation());
  }
  KILN_RETURN_IF_ERROR(Finish());
  return std::move(module_);
}

// "HloModule name, key=value, ..."; a text without it has a module without a name.
Status TextParser::ReadHeader() {
  if (!scanner_.TakeKeyword("HloModule")) return OkStatus();
  KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name("a name"));
  module_->set_name(std::string(name));
  scanner_.Take(":");
  while (scanner_.Take(",")) {
    std::string_view attribute = scanner_.TakeWord();
    if (attribute.empty()) return scanner_.Fail("an attribute");
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    KILN_RETURN_IF_ERROR(ReadHeaderAttribute(attribute));
  }
  return OkStatus();
}

Status TextParser::ReadHeaderAttribute(std::string_view name) {
  if (name == "is_scheduled") {
    bool scheduled = scanner_.TakeKeyword("true");
    module_->set_is_scheduled(scheduled);
    if (scheduled || scanner_.TakeKeyword("false")) return OkStatus();
    return scanner_.Fail("true or false");
  }
  if (name == "num_partitions" || name == "replica_count") {
    const size_t at = scanner_.position();
    KILN_ASSIGN_OR_RETURN(const int64_t count, scanner_.Integer());
    const int64_t others = name == "replica_count" ? partitions_ : replicas_;
    if (count < 1 || count > kMostProcesses / others) {
      return scanner_.FailAt(at,
                             Cat("at least 1, and at most ", kMostProcesses, " processes in all"));
    }
    (name == "replica_count" ? replicas_ : partitions_) = count;
    return OkStatus();
  }
  if (name == "entry_computation_layout") return ReadEntryLayout();
  if (name == "input_output_alias") return ReadAliases();
  return scanner_.SkipValue();
}

// "{(f32[2]{0}, s32[])->f32[2]{0}}"
Status TextParser::ReadEntryLayout() {
  ProgramShape layout;
  entry_layout_position_ = scanner_.position();
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  KILN_RETURN_IF_ERROR(scanner_.Expect("("));
  if (!scanner_.Take(")")) {
    do {
      KILN_ASSIGN_OR_RETURN(Shape shape, ReadShape(scanner_));
      layout.parameters.push_back(std::move(shape));
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect("->"));
  KILN_ASSIGN_OR_RETURN(layout.result, ReadShape(scanner_));
  entry_layout_ = std::move(layout);
  return scanner_.Expect("}");
}

// "{ {0}: (0, {}, may-alias), {1}: (2, {1}) }"
Status TextParser::ReadAliases() {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  if (scanner_.Take("}")) return OkStatus();
  do {
    InputOutputAlias alias;
    KILN_ASSIGN_OR_RETURN(alias.output_index, ReadIndex());
    KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    KILN_RETURN_IF_ERROR(scanner_.Expect("("));
    KILN_ASSIGN_OR_RETURN(alias.parameter, scanner_.Integer());
    KILN_RETURN_IF_ERROR(scanner_.Expect(","));
    KILN_ASSIGN_OR_RETURN(alias.parameter_index, ReadIndex());
    if (scanner_.Take(",")) {
      alias.must_alias = scanner_.TakeKeyword("must-alias");
      if (!alias.must_alias && !scanner_.TakeKeyword("may-alias")) {
        return scanner_.Fail("may-alias or must-alias");
      }
    }
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
    module_->aliases().push_back(std::move(alias));
  } while (scanner_.Take(","));
  return scanner_.Expect("}");
}

Result<std::vector<int64_t>> TextParser::ReadIndex() { return ReadInts(scanner_); }

// "FileNames", then lines of a number and a string; "StackFrames", then lines of a number and
// fields in braces; and so on. They tell where ops came from.
Status TextParser::SkipTables() {
  while (scanner_.TakeKeyword("FileNames") || scanner_.TakeKeyword("FunctionNames") ||
         scanner_.TakeKeyword("FileLocations") || scanner_.TakeKeyword("StackFrames")) {
    while (scanner_.Peek() >= '0' && scanner_.Peek() <= '9') {
      KILN_ASSIGN_OR_RETURN(int64_t number, scanner_.Integer());
      (void)number;
      KILN_RETURN_IF_ERROR(scanner_.SkipValue());
    }
  }
  return OkStatus();
}

// "name = f32[2] negate(...)", or the same without a name: a text of one instruction begins so, and
// no computation does.
bool TextParser::LookingAtInstruction() {
  // A computation may be called b, too.
  if (scanner_.PeekWord() != "b" && LookingAtShape(scanner_)) return true;
  const size_t at = scanner_.position();
  scanner_.TakeKeyword("ROOT");
  const bool found = scanner_.Name("a name").ok() && scanner_.Looking("=");
  scanner_.Rewind(at);
  return found;
}

// "f32[2] add(f32[2] %a, f32[2] %b)" is a module, with parameters in the order of its operands.
Status TextParser::ReadInstructionAlone() {
  Scope scope;
  scope.computation = last_computation_ = module_->AddComputation("entry");
  scope.declares_parameters = true;
  if (LookingAtShape(scanner_)) {
    KILN_RETURN_IF_ERROR(ReadExpression(scope, "root", 0).status());
  } else {
    KILN_RETURN_IF_ERROR(ReadInstruction(scope, 0));
  }
  scope.computation->set_root(scope.last);
  return scanner_.AtEnd() ? OkStatus() : scanner_.Fail("the end of the text");
}

// "[ENTRY] name [(p: shape, ...) -> shape] { instructions }[, attributes]"
Status TextParser::ReadComputation() {
  size_t at = scanner_.position();
  bool entry = scanner_.TakeKeyword("ENTRY");
  if (entry && module_->entry()) {
    return scanner_.FailAt(at, "a computation without ENTRY, as there is an entry already");
  }
  at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name("the name of a computation"));
  if (computations_.contains(name)) {
    return scanner_.FailAt(at, "a name that no computation above has");
  }
  std::optional<Shape> result;
  size_t result_at = 0;
  if (scanner_.Looking("(")) {
    KILN_ASSIGN_OR_RETURN(result, ReadSignature(result_at));
  }
  KILN_ASSIGN_OR_RETURN(Computation * computation, ReadBody(name, 0));
  computations_.emplace(name, computation);
  last_computation_ = computation;
  if (entry) module_->set_entry(computation);
  if (const Shape& actual = computation->root()->shape();
      result && !result->SameTypeAndDimensions(actual)) {
    return scanner_.FailAt(result_at, Cat("the shape of the root, ", actual));
  }
  return SkipAttributes();
}

// The result's shape. As in XLA, parameters count by their instructions alone.
Result<Shape> TextParser::ReadSignature(size_t& result_position) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("("));
  if (!scanner_.Take(")")) {
    do {
      KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name("the name of a parameter"));
      (void)name;
      scanner_.Take(":");
      KILN_ASSIGN_OR_RETURN(Shape shape, ReadShape(scanner_));
      (void)shape;
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect("->"));
  result_position = scanner_.position();
  return ReadShape(scanner_);
}

Result<Computation*> TextParser::ReadBody(std::string_view name, int64_t depth) {
  if (depth > kMaxNesting) return scanner_.Fail(Cat("at most ", kMaxNesting, " levels"));
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  Scope scope;
  scope.computation = module_->AddComputation(name);
  while (!scanner_.Take("}")) KILN_RETURN_IF_ERROR(ReadInstruction(scope, depth));
  if (!scope.last) return scanner_.Fail("an instruction in the computation above");
  scope.computation->set_root(scope.root ? scope.root : scope.last);
  auto parameters = scope.computation->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i]) {
      return scanner_.Fail(
          Cat("parameter ", i, " in the computation above, which has a later one"));
    }
  }
  return scope.computation;
}

Status TextParser::SkipAttributes() {
  while (scanner_.Take(",")) {
    if (scanner_.TakeWord().empty()) return scanner_.Fail("an attribute");
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    KILN_RETURN_IF_ERROR(scanner_.SkipValue());
  }
  return OkStatus();
}

Status TextParser::Finish() {
  if (!last_computation_) return scanner_.Fail("a computation");
  if (!module_->entry()) module_->set_entry(last_computation_);
  for (const PendingCall& call : calls_) {
    auto callee = computations_.find(call.name);
    if (callee == computations_.end()) {
      return scanner_.FailAt(call.position, "the name of a computation");
    }
    call.caller->set_called(call.index, callee->second);
  }
  if (replicas_ * partitions_ > 1) {
    KILN_RETURN_IF_ERROR(StateGroups(*module_, replicas_, partitions_));
  }
  if (entry_layout_) KILN_RETURN_IF_ERROR(ApplyEntryLayout());
  const Instruction* culprit = nullptr;
  Status status = CheckModule(*module_, &culprit);
  if (!status.ok() && CheckGraph(*module_).ok() && Accommodate(*module_)) {
    status = CheckModule(*module_, &culprit);
  }
  if (!status.ok()) {
    bool known = culprit && culprit->id() < static_cast<int64_t>(positions_.size());
    return status.WithContext(
        scanner_.Where(known ? positions_[static_cast<size_t>(culprit->id())] : 0));
  }
  if (!elided_.empty()) {
    const Sampler sampler(*module_);
    for (const Elided& elided : elided_) {
      const int64_t bound = sampler.RangeOf(*elided.constant).high + 1;
      if (bound < kSeededIntegers) FillSeeded(*elided.literal, elided.seed, bound);
    }
  }
  if (options_.made_up) *options_.made_up = made_up_.count;
  module_->SortComputations();
  return OkStatus();
}

Status TextParser::ApplyEntryLayout() {
  Computation* entry = module_->entry();
  ProgramShape actual = entry->program_shape();
  const ProgramShape& wanted = *entry_layout_;
  bool same = wanted.parameters.size() == actual.parameters.size() &&
              wanted.result.SameTypeAndDimensions(actual.result);
  for (size_t i = 0; same && i < actual.parameters.size(); ++i) {
    same = wanted.parameters[i].SameTypeAndDimensions(actual.parameters[i]);
  }
  if (!same) {
    return scanner_.FailAt(entry_layout_position_, "the shapes of the entry computation");
  }
  for (size_t i = 0; i < actual.parameters.size(); ++i) {
    if (wanted.parameters[i] == actual.parameters[i]) continue;
    if (actual.parameters[i].is_tuple()) {
      return Unimplemented(scanner_.Where(entry_layout_position_), ": parameter ", i,
                           " is a tuple; a layout other than its instruction's is not implemented");
    }
    entry->parameter(static_cast<int64_t>(i))->set_shape(wanted.parameters[i]);
  }
  Instruction* root = entry->root();
  Instruction* result = WithLayout(root, wanted.result);
  entry->set_root(result);
  if (result != root && root->opcode() == Opcode::kTuple && root->users().empty()) {
    entry->Remove(root);
  }
  return OkStatus();
}

Result<std::unique_ptr<Module>> ParseHloText(std::string_view text, const ParseOptions& options) {
  return TextParser(text, options).Parse();
}

}  // namespace kiln::ir
