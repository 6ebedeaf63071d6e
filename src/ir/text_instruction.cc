// One instruction of HLO text: "[ROOT] name = [shape] opcode(operands), attributes".
#include "ir/builder.h"
#include "ir/host_call.h"
#include "ir/known_calls.h"
#include "ir/text_parser.h"
#include "ir/text_values.h"

namespace kiln::ir {
namespace {

constexpr int64_t kMaxNesting = 200;
constexpr int64_t kMaxParameters = int64_t{1} << 20;

// Whether ops.def lists the attribute for the op, optional or not.
bool TakesAttribute(Opcode opcode, std::string_view name) {
  std::string_view list = InfoOf(opcode).attributes;
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    std::string_view item = list.substr(0, end);
    if (item.ends_with("?")) item.remove_suffix(1);
    if (item == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// The op of the table that a custom call stands for where HLO lacks it, by the target that was
// read; otherwise the custom call.
Opcode TargetOf(const InstructionSpec& spec) {
  const auto opcode = OpcodeByName(spec.attributes.Text(Attr::kCustomCallTarget));
  return opcode && !IsHloOp(*opcode) ? *opcode : Opcode::kCustomCall;
}

bool IsList(std::string_view attribute) {
  return attribute == "branch_computations" || attribute == "called_computations";
}

// HLO names the two branches of a pred one by one.
bool IsBranch(std::string_view attribute) {
  return attribute == "true_computation" || attribute == "false_computation";
}

// As the op table names it: one of a custom-call's may stand alone.
std::string_view CalleeName(Opcode opcode, std::string_view attribute) {
  if (opcode == Opcode::kCustomCall && (attribute == "to_apply" || attribute == "calls")) {
    return "called_computations";
  }
  // As asynchronous calls name it.
  if (opcode == Opcode::kCall && attribute == "calls") return "to_apply";
  return attribute;
}

bool TakesCallee(Opcode opcode, std::string_view attribute) {
  if (IsBranch(attribute)) attribute = "branch_computations";
  attribute = CalleeName(opcode, attribute);
  return IsComputationAttribute(attribute) && TakesAttribute(opcode, attribute);
}

bool IsTransfer(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendDone || opcode == Opcode::kRecv ||
         opcode == Opcode::kRecvDone || opcode == Opcode::kInfeed || opcode == Opcode::kOutfeed;
}

}  // namespace

Status TextParser::ReadInstruction(Scope& scope, int64_t depth) {
  size_t at = scanner_.position();
  bool root = scanner_.TakeKeyword("ROOT");
  if (root && scope.root) {
    return scanner_.FailAt(at, "an instruction without ROOT, as there is a root already");
  }
  at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name("the name of an instruction or '}'"));
  KILN_RETURN_IF_ERROR(scanner_.Expect("="));
  KILN_ASSIGN_OR_RETURN(Instruction * instruction, ReadExpression(scope, name, depth));
  if (!scope.names.emplace(name, instruction).second) {
    return scanner_.FailAt(at, "a name that no instruction above has");
  }
  scope.last = instruction;
  if (root) scope.root = instruction;
  return OkStatus();
}

// An instruction's right side; as an operand it has no attributes, and no name of its own.
Result<Instruction*> TextParser::ReadExpression(Scope& scope, std::string_view name,
                                                int64_t depth) {
  Pending pending;
  pending.spec.name = std::string(name);
  if (LookingAtShape(scanner_)) {
    KILN_ASSIGN_OR_RETURN(pending.spec.shape, ReadShape(scanner_));
  }
  size_t at = scanner_.position();
  std::string_view word = scanner_.TakeWord();
  if (word.empty()) return scanner_.Fail("a shape or an op");
  if (!scanner_.Looking("(")) return scanner_.Fail("'(' after the op");
  std::optional<Opcode> opcode = OpcodeByName(word);
  if (!opcode) {
    pending.foreign = ForeignOpByName(word);
    if (!pending.foreign) {
      return Unimplemented(scanner_.Where(at), ": op '", word, "' is not implemented");
    }
    opcode = pending.foreign->opcode;
    pending.op = word;
  }
  pending.spec.opcode = *opcode;
  scanner_.Take("(");
  if (!pending.foreign && (*opcode == Opcode::kParameter || *opcode == Opcode::kConstant)) {
    if (!pending.spec.shape) return scanner_.FailAt(at, "a shape before the op");
    KILN_RETURN_IF_ERROR(ReadContent(scope, pending));
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  } else {
    KILN_RETURN_IF_ERROR(ReadOperands(scope, pending, depth));
  }
  if (!name.empty()) KILN_RETURN_IF_ERROR(ReadAttributes(scope, pending, depth));
  if (pending.foreign) return MakeForeignOp(scope, std::move(pending), at);
  return Make(scope, std::move(pending), at);
}

Status TextParser::ReadContent(Scope& scope, Pending& pending) {
  if (pending.spec.opcode == Opcode::kConstant) return ReadConstant(scope, pending);
  size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(int64_t number, scanner_.Integer());
  if (number < 0 || number >= kMaxParameters) {
    return scanner_.FailAt(at, Cat("a parameter's number, from 0 to below ", kMaxParameters));
  }
  pending.spec.attributes.Set(Attr::kParameterNumber, number);
  return OkStatus();
}

Status TextParser::ReadConstant(Scope& scope, Pending& pending) {
  if (!options_.elided.empty() && scanner_.Looking("{...}")) return TakeElided(pending);
  const Shape& shape = *pending.spec.shape;
  // One element in the place of nested braces is all of them.
  const bool splat =
      shape.is_array() && shape.rank() > 0 && shape.is_static() && scanner_.Peek() != '{';
  const int64_t made_up = made_up_.count;
  KILN_ASSIGN_OR_RETURN(
      Literal literal,
      ReadLiteral(scanner_, splat ? Shape::Scalar(shape.type()) : shape, made_up_));
  auto shared = std::make_shared<Literal>(std::move(literal));
  if (splat) {
    Instruction* scalar = scope.computation->Create(
        {.opcode = Opcode::kConstant, .shape = shared->shape(), .literal = std::move(shared)});
    pending.spec.opcode = Opcode::kBroadcast;
    pending.spec.operands = {scalar};
    pending.spec.attributes.Set(Attr::kDimensions, Ints());
    return OkStatus();
  }
  if (made_up_.count > made_up && shape.is_array() && IsInteger(shape.type())) {
    elided_.push_back({nullptr, shared, static_cast<uint64_t>(made_up)});
  }
  pending.spec.literal = std::move(shared);
  return OkStatus();
}

// A constant with elements from the reader's caller.
Status TextParser::TakeElided(Pending& pending) {
  const std::shared_ptr<const Literal>& literal = options_.elided.front();
  if (!literal || !literal->shape().SameTypeAndDimensions(*pending.spec.shape)) {
    return scanner_.Fail(Cat("a constant of ", literal ? Cat(literal->shape()) : "elements"));
  }
  scanner_.Take("{...}");
  pending.spec.literal = literal;
  options_.elided = options_.elided.subspan(1);
  return OkStatus();
}

// Up to and with the closing parenthesis.
Status TextParser::ReadOperands(Scope& scope, Pending& pending, int64_t depth) {
  if (scanner_.Take(")")) return OkStatus();
  do {
    KILN_ASSIGN_OR_RETURN(Instruction * operand, ReadOperand(scope, depth));
    if (operand) pending.spec.operands.push_back(operand);
  } while (scanner_.Take(","));
  if (scanner_.Take(")")) return OkStatus();
  return scanner_.Fail("',' or ')'");
}

// "%name", "f32[2]{0} %name", or an instruction in place: "f32[] add(%a, %b)". A shape alone is no
// operand, as in XLA, and is null. For an instruction alone shapes declare parameters.
Result<Instruction*> TextParser::ReadOperand(Scope& scope, int64_t depth) {
  size_t at = scanner_.position();
  std::optional<Shape> shape;
  if (LookingAtShape(scanner_)) {
    KILN_ASSIGN_OR_RETURN(shape, ReadShape(scanner_));
  }
  std::string_view word = scanner_.PeekWord();
  if (!word.empty() && scanner_.Raw(word.size()) == '(') {
    if (depth == kMaxNesting) return scanner_.Fail(Cat("at most ", kMaxNesting, " levels"));
    scanner_.Rewind(at);
    return ReadExpression(scope, {}, depth + 1);
  }
  size_t name_at = scanner_.position();
  std::string_view name;
  if (!shape || (!scanner_.Looking(",") && !scanner_.Looking(")"))) {
    KILN_ASSIGN_OR_RETURN(name, scanner_.Name("an operand"));
  } else if (!scope.declares_parameters) {
    return nullptr;
  }
  auto found = scope.names.find(name);
  if (found == scope.names.end() && shape && scope.declares_parameters) {
    const int64_t number = std::ssize(scope.computation->parameters());
    Instruction* parameter =
        scope.computation->Create({.opcode = Opcode::kParameter,
                                   .attributes = {{Attr::kParameterNumber, number}},
                                   .shape = *shape,
                                   .name = std::string(name)});
    NotePosition(*parameter, at);
    if (!name.empty()) scope.names.emplace(name, parameter);
    return parameter;
  }
  if (found == scope.names.end()) {
    return scanner_.FailAt(name_at, "the name of an instruction above in this computation");
  }
  if (shape && !shape->SameTypeAndDimensions(found->second->shape())) {
    return scanner_.FailAt(at, Cat("the shape of ", name, ", ", found->second->shape()));
  }
  return found->second;
}

Status TextParser::ReadAttributes(const Scope& scope, Pending& pending, int64_t depth) {
  while (scanner_.Take(",")) {
    size_t at = scanner_.position();
    std::string_view name = scanner_.TakeWord();
    if (name.empty()) return scanner_.Fail("an attribute");
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    KILN_RETURN_IF_ERROR(ReadAttribute(scope, name, at, pending, depth));
  }
  return OkStatus();
}

Status TextParser::ReadAttribute(const Scope& scope, std::string_view name, size_t position,
                                 Pending& pending, int64_t depth) {
  const Opcode opcode = pending.spec.opcode;
  const AttrInfo* info = AttrByName(name);
  const bool is_order_type = opcode == Opcode::kCompare && name == "type";
  if (is_order_type) return ReadOrderType(pending);
  if (opcode == Opcode::kCustomCall && name == "operand_layout_constraints") {
    return ReadOperandLayouts(pending);
  }
  const bool takes = TakesAttribute(opcode, name) || (opcode == Opcode::kCustomCall &&
                                                      TakesAttribute(TargetOf(pending.spec), name));
  if (info && takes && opcode != Opcode::kParameter) {
    Attributes& attributes = pending.spec.attributes;
    if (attributes.Has(info->key)) return scanner_.FailAt(position, "each attribute once");
    SymbolicNumbers symbolic = attributes.Symbolic();
    const size_t before = symbolic.size();
    KILN_ASSIGN_OR_RETURN(AttrValue value, ir::ReadAttribute(scanner_, *info, symbolic));
    if (symbolic.size() > before) attributes.Set(Attr::kSymbolic, std::move(symbolic));
    // Optional flags that are false are absent, except topk's, whose absence is true.
    if (value != AttrValue(false) || info->key == Attr::kLargest) {
      attributes.Set(info->key, std::move(value));
    }
    return OkStatus();
  }
  if (TakesCallee(opcode, name)) return ReadCallees(name, pending, depth);
  if (name == "metadata") return ReadMetadata(pending);
  if (name == "frontend_attributes") return ReadFrontendAttributes(pending);
  if (name == "control-predecessors") return ReadControlPredecessors(scope, pending);
  if (opcode == Opcode::kAllToAll && name == "dimensions") {  // for Accommodate
    KILN_ASSIGN_OR_RETURN(Ints dimensions, ReadInts(scanner_));
    pending.spec.attributes.Set(Attr::kDimensions, std::move(dimensions));
    return OkStatus();
  }
  if (opcode == Opcode::kDot && name == "sparsity") {
    return Unimplemented(scanner_.Where(position), ": dot with sparsity is not implemented");
  }
  if (name == "literal") {  // of a custom call, a value with its type in front
    KILN_RETURN_IF_ERROR(scanner_.SkipValue());
    return scanner_.SkipValue();
  }
  if (!pending.foreign && opcode != Opcode::kCustomCall) return scanner_.SkipValue();
  KILN_ASSIGN_OR_RETURN(const std::string_view text, scanner_.TakeValue());
  pending.more.emplace_back(name, text);
  return OkStatus();
}

// "{f32[2,3]{0,1}, s32[]}".
Status TextParser::ReadOperandLayouts(Pending& pending) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  const std::vector<Instruction*>& operands = pending.spec.operands;
  for (size_t o = 0; o < operands.size(); ++o) {
    if (o > 0) KILN_RETURN_IF_ERROR(scanner_.Expect(","));
    const size_t at = scanner_.position();
    KILN_ASSIGN_OR_RETURN(Shape shape, ReadShape(scanner_));
    if (!shape.SameTypeAndDimensions(operands[o]->shape())) {
      return scanner_.FailAt(at, Cat("the shape of operand ", o, ", ", operands[o]->shape()));
    }
    pending.operand_layouts.push_back(std::move(shape));
  }
  return scanner_.Expect("}");
}

// The operands of a typed call in the layouts that it demands.
void TextParser::TakeOperandLayouts(Scope& scope, Pending& pending) {
  InstructionSpec& spec = pending.spec;
  if (ApiVersionByName(spec.attributes.Text(Attr::kApiVersion)) != kTypedApiVersion) return;
  for (size_t o = 0; o < pending.operand_layouts.size(); ++o) {
    const Shape& wanted = pending.operand_layouts[o];
    if (wanted == spec.operands[o]->shape() || !wanted.is_array()) continue;
    spec.operands[o] = scope.computation->Create(
        {.opcode = Opcode::kCopy, .operands = {spec.operands[o]}, .shape = wanted});
  }
}

// Of a compare. The order is that of the operands' type, as in XLA, whatever other type is named.
Status TextParser::ReadOrderType(Pending& pending) {
  const size_t at = scanner_.position();
  const std::string_view type = scanner_.TakeWord();
  const InstructionSpec& spec = pending.spec;
  const ElementType operand =
      spec.operands.empty() ? ElementType::kInvalid : spec.operands[0]->shape().type();
  if (type == "TOTALORDER") {
    if (IsFloat(operand)) pending.spec.attributes.Set(Attr::kOrderType, std::string(type));
  } else if (type != "SIGNED" && type != "UNSIGNED" && type != "FLOAT") {
    return scanner_.FailAt(at, "SIGNED, UNSIGNED, FLOAT or TOTALORDER");
  }
  return OkStatus();
}

// "%name", "{%a, %b}", or computations in place: "{ %x = ... }".
Status TextParser::ReadCallees(std::string_view attribute, Pending& pending, int64_t depth) {
  if (!IsList(attribute)) {
    return ReadCallee(CalleeName(pending.spec.opcode, attribute), pending, depth);
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  if (scanner_.Take("}")) return OkStatus();
  do {
    KILN_RETURN_IF_ERROR(ReadCallee(attribute, pending, depth));
  } while (scanner_.Take(","));
  return scanner_.Expect("}");
}

Status TextParser::ReadCallee(std::string_view attribute, Pending& pending, int64_t depth) {
  Pending::Callee callee{attribute, {}, scanner_.position(), nullptr};
  if (scanner_.Looking("{")) {
    std::string name = Cat(pending.spec.name, ".", attribute);
    KILN_ASSIGN_OR_RETURN(callee.computation, ReadBody(std::move(name), depth + 1));
  } else {
    KILN_ASSIGN_OR_RETURN(callee.name, scanner_.Name("the name of a computation"));
  }
  pending.callees.push_back(callee);
  return OkStatus();
}

// "{op_name="..." source_line=3, ...}": the op's name is kept.
Status TextParser::ReadMetadata(Pending& pending) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  while (!scanner_.Take("}")) {
    std::string_view key = scanner_.TakeWord();
    if (key.empty()) return scanner_.Fail("a key or '}'");
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    if (key == "op_name") {
      KILN_ASSIGN_OR_RETURN(pending.spec.op_name, scanner_.String());
    } else {
      KILN_RETURN_IF_ERROR(scanner_.SkipValue());
    }
    scanner_.Take(",");
  }
  return OkStatus();
}

// "{key="text",key={...}}": a text, or what is in brackets as it is written. Keys that are no words
// are in quotes.
Status TextParser::ReadFrontendAttributes(Pending& pending) {
  const size_t begin = scanner_.position();
  KILN_RETURN_IF_ERROR(scanner_.SkipValue());
  const std::string_view text = scanner_.Text(begin, scanner_.end());
  FrontendAttributesRef& attributes = pending.spec.frontend_attributes;
  if (auto known = frontend_attributes_.find(text); known != frontend_attributes_.end()) {
    attributes = known->second;
    return OkStatus();
  }
  scanner_.Rewind(begin);
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  std::vector<FrontendAttributes::Entry> entries;
  while (!scanner_.Take("}")) {
    if (!entries.empty()) KILN_RETURN_IF_ERROR(scanner_.Expect(","));
    auto& [key, value] = entries.emplace_back();
    if (scanner_.Peek() == '"') {
      KILN_ASSIGN_OR_RETURN(key, scanner_.String());
    } else {
      key = scanner_.TakeWord();
      if (key.empty()) return scanner_.Fail("a key or '}'");
    }
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    if (scanner_.Peek() == '"') {
      KILN_ASSIGN_OR_RETURN(value, scanner_.String());
    } else {
      KILN_ASSIGN_OR_RETURN(value, scanner_.TakeValue());
    }
  }
  attributes = MakeFrontendAttributes(std::move(entries));
  frontend_attributes_.emplace(text, attributes);
  return OkStatus();
}

// "{%a, %b}", of instructions above, as XLA requires; so there is no cycle.
Status TextParser::ReadControlPredecessors(const Scope& scope, Pending& pending) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  if (scanner_.Take("}")) return OkStatus();
  do {
    const size_t at = scanner_.position();
    KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name("a control predecessor"));
    auto found = scope.names.find(name);
    if (found == scope.names.end()) {
      return scanner_.FailAt(at, "the name of an instruction above in this computation");
    }
    pending.control_predecessors.push_back(found->second);
  } while (scanner_.Take(","));
  return scanner_.Expect("}");
}

// Puts the callees in the order of ops.def.
Status TextParser::OrderCallees(Pending& pending, size_t position) {
  auto rank = [](std::string_view attribute) {
    bool second = attribute == "body" || attribute == "scatter" || attribute == "false_computation";
    return second ? 1 : 0;
  };
  std::stable_sort(pending.callees.begin(), pending.callees.end(),
                   [&](const Pending::Callee& a, const Pending::Callee& b) {
                     return rank(a.attribute) < rank(b.attribute);
                   });
  for (size_t i = 1; i < pending.callees.size(); ++i) {
    const Pending::Callee& a = pending.callees[i - 1];
    const Pending::Callee& b = pending.callees[i];
    bool repeated = a.attribute == b.attribute && !IsList(a.attribute);
    if (repeated || IsBranch(a.attribute) != IsBranch(b.attribute)) {
      return scanner_.FailAt(position,
                             Cat("each computation of ", OpcodeName(pending.spec.opcode), " once"));
    }
  }
  if (pending.spec.opcode == Opcode::kWhile &&
      (pending.callees.size() != 2 || pending.callees[0].attribute != "condition" ||
       pending.callees[1].attribute != "body")) {
    return scanner_.FailAt(position, "a while with condition and body");
  }
  if (!pending.callees.empty() && IsBranch(pending.callees[0].attribute) &&
      (pending.callees.size() != 2 || pending.callees[0].attribute != "true_computation")) {
    return scanner_.FailAt(position, "a conditional with true_computation and false_computation");
  }
  return OkStatus();
}

Result<Shape> TextParser::InferMissingShape(const Pending& pending, size_t position) {
  std::vector<const Shape*> operands;
  for (const Instruction* operand : pending.spec.operands) operands.push_back(&operand->shape());
  std::vector<ProgramShape> called;
  for (const Pending::Callee& callee : pending.callees) {
    const Computation* computation = callee.computation;
    if (!computation) {
      auto found = computations_.find(callee.name);
      if (found == computations_.end()) {
        return scanner_.FailAt(callee.position,
                               "a computation above, as the instruction has no shape");
      }
      computation = found->second;
    }
    called.push_back(computation->program_shape());
  }
  Result<Shape> shape =
      kiln::InferShape({pending.spec.opcode, operands, pending.spec.attributes, nullptr, called});
  if (!shape.ok()) return shape.status().WithContext(scanner_.Where(position));
  return shape;
}

namespace {

// The dimensions, the most major in memory first.
Ints MajorToMinor(const Shape& shape) {
  Ints order(shape.minor_to_major().rbegin(), shape.minor_to_major().rend());
  for (int64_t d = std::ssize(order); d < shape.rank(); ++d) order.push_back(d);
  return order;
}

Shape Permuted(const Shape& shape, const Ints& order) {
  std::vector<Dimension> dimensions;
  for (int64_t d : order) dimensions.push_back(shape.dimension(d));
  return Shape(shape.type(), std::move(dimensions));
}

}  // namespace

// HLO text's bitcast is of elements in the order of memory. It becomes one of elements in row-major
// order, between transposes, whose value does not depend on layouts.
void TextParser::TakeLayouts(Scope& scope, InstructionSpec& spec) {
  Instruction* operand = spec.operands[0];
  if (!operand->shape().is_row_major()) {
    Ints order = MajorToMinor(operand->shape());
    spec.operands[0] = scope.computation->Create({.opcode = Opcode::kTranspose,
                                                  .operands = {operand},
                                                  .attributes = {{Attr::kDimensions, order}},
                                                  .shape = Permuted(operand->shape(), order),
                                                  .frontend_attributes = spec.frontend_attributes});
  }
  if (spec.shape->is_row_major()) return;
  Shape result = *spec.shape;
  Ints order = MajorToMinor(result);
  spec.shape = Permuted(result, order);
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  std::string name = std::move(spec.name);
  spec.name.clear();
  FrontendAttributesRef attributes = spec.frontend_attributes;
  Instruction* bitcast = scope.computation->Create(std::move(spec));
  spec = {.opcode = Opcode::kTranspose,
          .operands = {bitcast},
          .attributes = {{Attr::kDimensions, back}},
          .shape = result,
          .name = std::move(name),
          .frontend_attributes = std::move(attributes)};
}

// A custom call whose target is an op of the table, but none of HLO, becomes that op. Its text
// attribute, if it has one, is the call's backend_config: an attribute that HLO knows.
void TextParser::TakeForeignOp(InstructionSpec& spec) {
  const Opcode opcode = TargetOf(spec);
  if (opcode == Opcode::kCustomCall) return;
  spec.opcode = opcode;
  std::optional<Attr> text = TextAttributeOf(opcode);
  if (text && spec.attributes.Has(Attr::kBackendConfig)) {
    spec.attributes.Set(*text, QuotedText{spec.attributes.Text(Attr::kBackendConfig)});
  }
  for (Attr key : {Attr::kCustomCallTarget, Attr::kCustomCallHasSideEffect, Attr::kBackendConfig,
                   Attr::kApiVersion}) {
    if (!TakesAttribute(opcode, InfoOf(key).name)) spec.attributes.Erase(key);
  }
}

void TextParser::NotePosition(const Instruction& instruction, size_t position) {
  const auto id = static_cast<size_t>(instruction.id());
  // Instructions that were made on the way stand at the same place.
  positions_.resize(std::max(positions_.size(), id + 1), position);
}

// The computation, if it is above.
Computation* TextParser::Find(const Pending::Callee& callee) const {
  if (callee.computation) return callee.computation;
  auto found = computations_.find(callee.name);
  return found == computations_.end() ? nullptr : found->second;
}

// What stands for ops that the table has, or null.
Instruction* TextParser::MakeKnownCall(Scope& scope, const Pending& pending) const {
  const InstructionSpec& spec = pending.spec;
  if (spec.opcode != Opcode::kCustomCall) return nullptr;
  return KnownCall({{},
                    spec.attributes.Text(Attr::kCustomCallTarget),
                    scope.computation,
                    spec.operands,
                    spec.attributes,
                    pending.callees.empty() ? nullptr : Find(pending.callees[0]),
                    pending.more,
                    spec.shape,
                    spec.op_name});
}

Result<Instruction*> TextParser::MakeForeignOp(Scope& scope, Pending pending, size_t position) {
  const ForeignOp op = *pending.foreign;
  std::optional<Shape> declared = pending.spec.shape;
  Instruction* value = nullptr;
  if (op.kind == ForeignOp::kStart) {
    if (!declared ||
        (op.result >= 0 && (!declared->is_tuple() || declared->elements().size() < 2))) {
      return scanner_.FailAt(position, "a tuple of operands and results in front of a pair's op");
    }
    if (op.result >= 0) {
      pending.spec.shape = declared->elements()[static_cast<size_t>(op.result)];
    }
    const std::vector<Instruction*> operands = pending.spec.operands;
    pending.op.remove_suffix(std::string_view("-start").size());
    pending.foreign = ForeignOpByName(pending.op);
    KILN_ASSIGN_OR_RETURN(Instruction * result,
                          pending.foreign ? MakeForeignOp(scope, std::move(pending), position)
                                          : Make(scope, std::move(pending), position));
    value = PairOf(result, operands, op, *declared);
  } else {
    ForeignInstruction foreign{op,
                               pending.op,
                               scope.computation,
                               std::move(pending.spec.operands),
                               std::move(pending.spec.attributes),
                               nullptr,
                               std::move(pending.more),
                               declared,
                               std::move(pending.spec.op_name)};
    const Groups& groups = foreign.attributes.GroupsOf(Attr::kReplicaGroups);
    const bool channel = foreign.attributes.Int(Attr::kChannelId) > 0;
    foreign.alone = groups.empty() ? (channel ? partitions_ : replicas_) == 1
                                   : std::ranges::find(groups, Ints{0}) != groups.end();
    if (!pending.callees.empty()) {
      foreign.to_apply = Find(pending.callees[0]);
      if (!foreign.to_apply) {
        return scanner_.FailAt(pending.callees[0].position, "a computation above");
      }
    }
    Result<Instruction*> made = MakeForeign(foreign);
    if (!made.ok()) return made.status().WithContext(scanner_.Where(position));
    value = *made;
    if (op.kind != ForeignOp::kSame && declared &&
        !value->shape().SameTypeAndDimensions(*declared)) {
      return scanner_.FailAt(position, Cat("a result of ", value->shape()));
    }
  }
  NotePosition(*value, position);
  scope.last = value;
  return value;
}

Result<Instruction*> TextParser::Make(Scope& scope, Pending pending, size_t position) {
  KILN_RETURN_IF_ERROR(OrderCallees(pending, position));
  InstructionSpec& spec = pending.spec;
  if (spec.opcode == Opcode::kCustomCall) {
    TakeForeignOp(spec);
    if (Instruction* value = MakeKnownCall(scope, pending)) {
      NotePosition(*value, position);
      return scope.last = value;
    }
    TakeOperandLayouts(scope, pending);
  }
  if (!spec.shape) {
    KILN_ASSIGN_OR_RETURN(spec.shape, InferMissingShape(pending, position));
  } else if (IsTransfer(spec.opcode)) {
    // As in XLA, the shape is that of what is transferred, whatever stands there.
    if (TakesAttribute(spec.opcode, "channel_id") && !spec.attributes.Has(Attr::kChannelId)) {
      spec.attributes.Set(Attr::kChannelId, int64_t{0});
    }
    Result<Shape> shape = InferShape(spec);
    if (shape.ok() && !shape->SameTypeAndDimensions(*spec.shape)) spec.shape = *std::move(shape);
  }
  if (spec.opcode == Opcode::kParameter) {
    size_t number = static_cast<size_t>(spec.attributes.Int(Attr::kParameterNumber));
    auto parameters = scope.computation->parameters();
    if (number < parameters.size() && parameters[number]) {
      return scanner_.FailAt(position, Cat("one parameter of number ", number));
    }
  }
  for (const Pending::Callee& callee : pending.callees) spec.called.push_back(callee.computation);
  if (spec.opcode == Opcode::kTopK && !spec.attributes.Has(Attr::kLargest)) {
    spec.attributes.Set(Attr::kLargest, true);
  }
  if (spec.opcode == Opcode::kBitcast && spec.operands.size() == 1 &&
      spec.operands[0]->shape().is_array() && spec.shape->is_array()) {
    TakeLayouts(scope, spec);
  }
  Instruction* instruction = scope.computation->Create(std::move(spec));
  for (Instruction* predecessor : pending.control_predecessors) {
    KILN_RETURN_IF_ERROR(scope.computation->AddControlDependency(predecessor, instruction));
  }
  NotePosition(*instruction, position);
  if (!elided_.empty() && !elided_.back().constant) elided_.back().constant = instruction;
  for (size_t i = 0; i < pending.callees.size(); ++i) {
    const Pending::Callee& callee = pending.callees[i];
    if (callee.computation) continue;
    calls_.push_back({instruction, static_cast<int64_t>(i), callee.name, callee.position});
  }
  scope.last = instruction;
  return instruction;
}

}  // namespace kiln::ir
