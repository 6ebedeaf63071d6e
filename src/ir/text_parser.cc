#include "ir/text_parser.h"

#include <algorithm>

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

// The value in the wanted layout: itself, or copies of the arrays in it that have another one.
Instruction* WithLayout(Builder& b, Instruction* value, const Shape& wanted) {
  if (value->shape() == wanted) return value;
  if (!wanted.is_tuple()) return b.AddShaped(wanted, Opcode::kCopy, {value});
  std::vector<Instruction*> elements;
  for (size_t i = 0; i < wanted.elements().size(); ++i) {
    Instruction* element = b.Element(value, static_cast<int64_t>(i));
    elements.push_back(WithLayout(b, element, wanted.elements()[i]));
  }
  return b.AddShaped(wanted, Opcode::kTuple, std::move(elements));
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
    } while (scanner_.Take(",") && !scanner_.Looking(")"));
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
  } while (scanner_.Take(",") && !scanner_.Looking("}"));
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
  DropAliases();
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
  MakeUpInfeeds();
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

// An array that may share memory with one of another shape does not.
void TextParser::DropAliases() {
  const auto part = [](const Shape* shape, const std::vector<int64_t>& index) -> const Shape* {
    for (int64_t i : index) {
      if (!shape->is_tuple() || i < 0 || i >= std::ssize(shape->elements())) return nullptr;
      shape = &shape->elements()[static_cast<size_t>(i)];
    }
    return shape;
  };
  const ProgramShape entry = module_->entry()->program_shape();
  std::erase_if(module_->aliases(), [&](const InputOutputAlias& alias) {
    if (alias.must_alias || alias.parameter < 0 ||
        alias.parameter >= std::ssize(entry.parameters)) {
      return false;
    }
    const Shape* parameter =
        part(&entry.parameters[static_cast<size_t>(alias.parameter)], alias.parameter_index);
    const Shape* result = part(&entry.result, alias.output_index);
    return parameter && result && !parameter->SameTypeAndDimensions(*result);
  });
}

namespace {

// Whether a value consists of arrays that memory could hold.
bool CanMakeUp(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (shape.is_tuple()) return std::ranges::all_of(shape.elements(), CanMakeUp);
  return shape.is_array() && shape.is_static() && shape.num_elements() <= kMost;
}

}  // namespace

// An infeed has the value of the next outfeed above it. Where there is none, the value comes from
// nobody, and is made up like a constant that was left out.
void TextParser::MakeUpInfeeds() {
  const auto& all = module_->computations();
  if (std::ranges::none_of(all, [](const auto& c) { return c->MayHold(Opcode::kInfeed); })) return;
  // Functions that are called have queues of their own.
  for (const auto& c : all) {
    if (std::ranges::any_of(c->instructions(), [](const Instruction* i) {
          return i->opcode() == Opcode::kCustomCall && !i->called().empty();
        })) {
      return;
    }
  }
  for (const auto& c : all) {
    const std::vector<Instruction*> instructions(c->instructions().begin(),
                                                 c->instructions().end());
    std::vector<const Instruction*> outfeeds;
    size_t next = 0;
    for (Instruction* i : instructions) {
      if (i->opcode() == Opcode::kOutfeed) outfeeds.push_back(i);
      if (i->opcode() != Opcode::kInfeed) continue;
      const Shape value = i->shape().elements()[0];
      if (next < outfeeds.size() &&
          outfeeds[next]->operand(0)->shape().SameTypeAndDimensions(value)) {
        ++next;
        continue;
      }
      if (!CanMakeUp(value)) continue;
      Builder b(i);
      c->ReplaceAllUses(i, b.Tuple({MakeUp(b, value), i->operand(0)}));
      c->Remove(i);
    }
  }
}

// A scalar pred is false, so that loops that read one end.
Instruction* TextParser::MakeUp(Builder& b, const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Instruction*> elements;
    for (const Shape& element : shape.elements()) elements.push_back(MakeUp(b, element));
    return b.AddShaped(shape, Opcode::kTuple, std::move(elements));
  }
  // Large arrays repeat a line.
  constexpr int64_t kLine = 1021;
  const auto seed = static_cast<uint64_t>(made_up_.count++);
  const int64_t count = shape.num_elements();
  const bool is_large = count > 4 * kLine;
  auto literal = std::make_shared<Literal>(is_large ? Shape(shape.type(), {Dimension(kLine)})
                                                    : Shape(shape.type(), shape.dimensions()));
  if (!shape.is_scalar() || !IsPred(shape.type())) FillSeeded(*literal, seed);
  Instruction* value = is_large ? b.Constant(literal) : b.Constant(shape, literal);
  if (IsInteger(shape.type())) elided_.push_back({value, std::move(literal), seed});
  if (!is_large) return value;
  const int64_t lines = (count + kLine - 1) / kLine;
  value = b.Broadcast(value, {Dimension(lines), Dimension(kLine)}, {1});
  value = b.Slice(b.Reshape(value, {Dimension(lines * kLine)}), {{0, count, 1}});
  value = b.Reshape(value, shape.dimensions());
  return value->shape() == shape ? value : b.AddShaped(shape, Opcode::kCopy, {value});
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
    Instruction* parameter = entry->parameter(static_cast<int64_t>(i));
    parameter->set_shape(wanted.parameters[i]);
    if (!parameter->shape().is_tuple()) continue;
    // Its elements go on in the layouts of the instructions that read them.
    const std::vector<Instruction*> users(parameter->users().begin(), parameter->users().end());
    const bool is_root = entry->root() == parameter;
    const auto next = ++std::ranges::find(entry->instructions(), parameter);
    Builder b(entry, next == entry->instructions().end() ? nullptr : *next);
    Instruction* as_before = WithLayout(b, parameter, actual.parameters[i]);
    for (Instruction* user : users) {
      for (int64_t k = 0; k < user->operand_count(); ++k) {
        if (user->operand(k) == parameter) entry->ReplaceOperand(user, k, as_before);
      }
    }
    if (is_root) entry->set_root(as_before);
  }
  Instruction* root = entry->root();
  Builder end(entry);
  Instruction* result = WithLayout(end, root, wanted.result);
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
