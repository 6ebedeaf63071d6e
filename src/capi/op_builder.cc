#include "capi/op_builder.h"

#include "base/stack.h"
#include "base/strings.h"
#include "capi/graph_builder.h"
#include "capi/region.h"

namespace kiln::capi {

void OpBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void OpBuilder::Operand(kiln_value value) {
  auto instruction = graph_.ValueOf(value);
  if (instruction.ok()) {
    operands_.push_back(*instruction);
    return;
  }
  std::vector<std::string_view> names = Split(InfoOf(opcode_).operands, ' ');
  std::string_view name = operands_.size() < names.size() ? names[operands_.size()] : "operand";
  Fail(instruction.status().WithContext(Cat("operand ", name)));
}

void OpBuilder::Operands(const char* name, const kiln_value* values, size_t count) {
  if (!values && count > 0) return Fail(InvalidArgument(name, " is NULL, with ", count, " values"));
  for (size_t i = 0; i < count; ++i) {
    auto instruction = graph_.ValueOf(values[i]);
    if (!instruction.ok()) return Fail(instruction.status().WithContext(Cat(name, "[", i, "]")));
    operands_.push_back(*instruction);
  }
}

void OpBuilder::Int(Attr key, bool optional, int64_t value) {
  if (!optional || value != 0) attributes_.Set(key, Plain(key, value));
}

void OpBuilder::Bool(Attr key, bool optional, int32_t value) {
  if (value != 0 && value != 1) {
    return Fail(InvalidArgument(InfoOf(key).name, " is ", value, "; expected 0 or 1"));
  }
  if (value != 0 || !optional) attributes_.Set(key, value != 0);
}

void OpBuilder::IntList(Attr key, bool optional, const int64_t* values, size_t count) {
  if (!values && count > 0) {
    return Fail(InvalidArgument(InfoOf(key).name, " is NULL, with ", count, " numbers"));
  }
  if (optional && count == 0) return;
  Ints list(values, values + count);
  const bool sizes = key == Attr::kSliceSizes || key == Attr::kDynamicSliceSizes;
  for (size_t i = 0; i < count; ++i) {
    list[i] = sizes ? Number(key, i, list[i]) : Plain(key, list[i]);
  }
  attributes_.Set(key, std::move(list));
}

int64_t OpBuilder::Number(Attr key, size_t position, int64_t number) {
  auto size = graph_.symbols().SizeOf(number);
  if (!size.ok()) {
    Fail(size.status().WithContext(InfoOf(key).name));
    return 0;
  }
  if (size->is_bounded()) {
    Fail(InvalidArgument(InfoOf(key).name, " has ", *size, ", a bound, which is no size there"));
    return 0;
  }
  if (!size->is_symbolic()) return number;
  SymbolicNumbers symbolic = attributes_.Symbolic();
  symbolic.push_back({key, static_cast<int64_t>(position), *std::move(size)});
  attributes_.Set(Attr::kSymbolic, std::move(symbolic));
  return -1;
}

int64_t OpBuilder::Plain(Attr key, int64_t number) {
  if (number >= 0) return number;
  auto size = graph_.symbols().SizeOf(number);
  if (size.ok() && size->is_bounded()) {
    Fail(InvalidArgument(InfoOf(key).name, " has ", *size, ", a bound, which is no size there"));
  } else if (size.ok() && size->is_symbolic()) {
    Fail(Unimplemented(InfoOf(key).name, " has ", *size, "; sizes of symbols are not implemented ",
                       "there"));
  }
  return number;
}

void OpBuilder::Order(Attr key, kiln_direction direction) {
  if (direction >= KILN_TOTAL_ORDER) {
    attributes_.Set(Attr::kOrderType, std::string("TOTALORDER"));
    direction -= KILN_TOTAL_ORDER;
  }
  if (direction < KILN_EQ || direction > KILN_LT) {
    return Fail(InvalidArgument(InfoOf(key).name, " is ", direction, ", which is no order"));
  }
  attributes_.Set(key, static_cast<Direction>(direction));
}

void OpBuilder::Text(Attr key, bool optional, const char* text, size_t length) {
  Result<std::string_view> given = TextOf(InfoOf(key).name, text, length);
  if (!given.ok()) return Fail(given.status());
  if (optional && given->empty()) return;
  if (InfoOf(key).kind == AttrKind::kQuoted) {
    attributes_.Set(key, QuotedText{std::string(*given)});
  } else {
    attributes_.Set(key, std::string(*given));
  }
}

void OpBuilder::Slices(Attr key, const int64_t* starts, const int64_t* limits,
                       const int64_t* strides, size_t count) {
  if (count > 0 && (!starts || !limits)) {
    return Fail(InvalidArgument(starts ? "limit" : "start", " is NULL, with ", count, " numbers"));
  }
  std::vector<SliceDimension> slices;
  for (size_t i = 0; i < count; ++i) {
    slices.push_back({Number(key, 3 * i, starts[i]), Number(key, 3 * i + 1, limits[i]),
                      strides ? Plain(key, strides[i]) : 1});
  }
  attributes_.Set(key, std::move(slices));
}

void OpBuilder::Paddings(Attr key, const int64_t* low, const int64_t* high, const int64_t* interior,
                         size_t count) {
  if (count > 0 && (!low || !high)) {
    return Fail(InvalidArgument(low ? "high" : "low", " is NULL, with ", count, " numbers"));
  }
  std::vector<PaddingDimension> paddings;
  for (size_t i = 0; i < count; ++i) {
    paddings.push_back({Number(key, 3 * i, low[i]), Number(key, 3 * i + 1, high[i]),
                        interior ? Plain(key, interior[i]) : 0});
  }
  attributes_.Set(key, std::move(paddings));
}

void OpBuilder::Aliases(Attr key, std::vector<OperandAlias> aliases) {
  if (!aliases.empty()) attributes_.Set(key, std::move(aliases));
}

void OpBuilder::Window(Attr key, const WindowLists& lists, size_t count) {
  if (count > 0 && !lists.size) {
    return Fail(InvalidArgument("window_dimensions is NULL, with ", count, " numbers"));
  }
  auto at = [&](const int64_t* list, size_t i, int64_t usual) {
    return list ? Plain(key, list[i]) : usual;
  };
  std::vector<WindowDimension> window;
  for (size_t i = 0; i < count; ++i) {
    window.push_back({.size = at(lists.size, i, 1),
                      .stride = at(lists.stride, i, 1),
                      .low = at(lists.low, i, 0),
                      .high = at(lists.high, i, 0),
                      .base_dilation = at(lists.base_dilation, i, 1),
                      .window_dilation = at(lists.window_dilation, i, 1),
                      .reversed = lists.reversed && lists.reversed[i] != 0});
  }
  attributes_.Set(key, std::move(window));
}

void OpBuilder::Labels(Attr key, const char* text, size_t length) {
  if (!text) return Fail(InvalidArgument(InfoOf(key).name, " is NULL"));
  auto dimensions = ParseConvolutionDimensions({text, length});
  if (!dimensions.ok()) return Fail(dimensions.status());
  attributes_.Set(key, *std::move(dimensions));
}

void OpBuilder::GroupList(Attr key, bool optional, const int64_t* numbers, const int64_t* sizes,
                          size_t count) {
  if (count > 0 && !sizes) {
    return Fail(InvalidArgument(InfoOf(key).name, "_sizes is NULL, with ", count, " lists"));
  }
  Groups groups;
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i] < 0 || (sizes[i] > 0 && !numbers)) {
      return Fail(InvalidArgument(InfoOf(key).name, " is ", numbers ? "a list" : "NULL",
                                  ", and list ", i, " is ", sizes[i], " long"));
    }
    groups.emplace_back(numbers, numbers + sizes[i]);
    numbers += sizes[i];
  }
  if (!optional || count > 0) attributes_.Set(key, std::move(groups));
}

void OpBuilder::Region(const char* name, const kiln_graph* graph) {
  if (!graph) return Fail(InvalidArgument(name, " is NULL"));
  regions_.emplace_back(name, graph);
}

void OpBuilder::Regions(const char* name, const kiln_graph* const* graphs, size_t count) {
  if (!graphs && count > 0) return Fail(InvalidArgument(name, " is NULL, with ", count, " graphs"));
  for (size_t i = 0; i < count; ++i) Region(name, graphs[i]);
}

void OpBuilder::Type(kiln_dtype dtype) {
  if (dtype == 0) return;
  if (!IsElementType(dtype)) {
    return Fail(InvalidArgument("dtype ", dtype, " is not an element type"));
  }
  type_ = static_cast<ElementType>(dtype);
}

void OpBuilder::Dims(const int64_t* dims, size_t rank) {
  auto dimensions = graph_.Dimensions(dims, rank);
  if (!dimensions.ok()) return Fail(dimensions.status());
  dims_ = *std::move(dimensions);
}

// As in XLA's builders, a scalar is broadcast to an array of any shape.
void OpBuilder::BroadcastScalar() {
  if (!IsElementwise(opcode_) || operands_.size() != 2) return;
  const Shape& lhs = operands_[0]->shape();
  const Shape& rhs = operands_[1]->shape();
  if (!lhs.is_array() || !rhs.is_array() || lhs.is_scalar() == rhs.is_scalar()) return;
  if (lhs.type() != rhs.type()) return;
  ir::Instruction*& scalar = operands_[lhs.is_scalar() ? 0 : 1];
  ir::Instruction* spread =
      GraphBuilder(graph_).BroadcastLike(operands_[lhs.is_scalar() ? 1 : 0], scalar, {});
  if (spread) scalar = spread;
}

Result<std::vector<ir::Computation*>> OpBuilder::CopyRegions() {
  std::vector<ir::Computation*> called;
  for (size_t i = 0; i < regions_.size(); ++i) {
    auto [name, region] = regions_[i];
    auto copy = graph_.CopyRegion(
        *region, opcode_ == Opcode::kCall ? kiln_graph::Rule::kWith : kiln_graph::Rule::kWithout);
    if (!copy.ok()) return copy.status().WithContext(name);
    // The region's argument as one value, possibly a tuple, as in HLO.
    const ir::Instruction* argument = nullptr;
    if (opcode_ == Opcode::kWhile && !operands_.empty()) argument = operands_[0];
    if (opcode_ == Opcode::kConditional && i + 1 < operands_.size()) argument = operands_[i + 1];
    bool gives_state = opcode_ == Opcode::kWhile && i == 1;
    if (argument) {
      KILN_ASSIGN_OR_RETURN(ir::Computation * adapted,
                            TakeTuple(**copy, argument->shape(), gives_state));
      called.push_back(adapted);
    } else {
      called.push_back(*copy);
    }
  }
  return called;
}

Result<ir::Instruction*> OpBuilder::Finish() {
  if (!status_.ok()) {
    return WithOperands(status_.WithContext(OpcodeName(opcode_)), opcode_, operands_);
  }
  BroadcastScalar();
  Result<std::vector<ir::Computation*>> called = std::vector<ir::Computation*>();
  // Regions are copied with their callees.
  if (!regions_.empty()) KILN_RETURN_IF_ERROR(OnOwnStack([&] { called = CopyRegions(); }));
  if (!called.ok()) {
    return WithOperands(called.status().WithContext(OpcodeName(opcode_)), opcode_, operands_);
  }
  std::optional<Shape> declared = std::move(declared_);
  if (dims_ || type_) {
    ElementType type = type_ ? *type_ : ElementType::kInvalid;
    if (!type_ && !operands_.empty() && operands_[0]->shape().is_array()) {
      type = operands_[0]->shape().type();
    }
    // Without a type the operands will be refused by inference.
    if (type != ElementType::kInvalid) {
      declared = Shape(type, dims_ ? *std::move(dims_) : std::vector<Dimension>());
    }
  }
  return graph_.Add({.opcode = opcode_,
                     .operands = std::move(operands_),
                     .attributes = std::move(attributes_),
                     .called = *std::move(called),
                     .shape = std::move(declared),
                     .literal = std::move(literal_),
                     .name = std::move(name_)});
}

}  // namespace kiln::capi
