// The helpers of the builder functions generated from the op table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "kiln/builder.h"
#include "kiln/graph.h"
#include "ops/attributes.h"
#include "ops/op.h"

namespace kiln::capi {

// Collects the parts of an op. The first error (a foreign value, a NULL list) is kept, and returned
// by Finish with the op's name.
class OpBuilder {
 public:
  OpBuilder(kiln_graph& graph, Opcode opcode) : graph_(graph), opcode_(opcode) {}

  // Operands in the order of the op table.
  void Operand(kiln_value value);
  void Operands(const char* name, const kiln_value* values, size_t count);
  // Optional arguments that are 0 or false count as absent, and so do optional empty lists.
  void Int(Attr key, bool optional, int64_t value);
  void Bool(Attr key, bool optional, int32_t value);
  void IntList(Attr key, bool optional, const int64_t* values, size_t count);
  void Order(Attr key, kiln_direction direction);
  void Slices(Attr key, const int64_t* starts, const int64_t* limits, const int64_t* strides,
              size_t count);
  void Paddings(Attr key, const int64_t* low, const int64_t* high, const int64_t* interior,
                size_t count);
  void Aliases(Attr key, std::vector<OperandAlias> aliases);
  // Each a number per dimension; NULL, except for the size, means the default.
  struct WindowLists {
    const int64_t *size, *stride, *base_dilation, *window_dilation, *low, *high;
    const int32_t* reversed = nullptr;
  };
  void Window(Attr key, const WindowLists& lists, size_t count);
  void Float(Attr key, double value) { attributes_.Set(key, value); }
  void Text(Attr key, bool optional, const char* text, size_t length);
  void Labels(Attr key, const char* text, size_t length);
  void GroupList(Attr key, bool optional, const int64_t* numbers, const int64_t* sizes,
                 size_t count);
  void Region(const char* name, const kiln_graph* graph);
  void Regions(const char* name, const kiln_graph* const* graphs, size_t count);
  // The parts of the result's shape not determined by operands. The type 0 counts as omitted.
  void Type(kiln_dtype dtype);
  void Dims(const int64_t* dims, size_t rank);
  void Dims(std::vector<Dimension> dims) { dims_ = std::move(dims); }
  // All of the result's shape.
  void Declared(Shape shape) { declared_ = std::move(shape); }
  void Name(std::string_view name) { name_ = name; }
  void Value(std::shared_ptr<const Literal> literal) { literal_ = std::move(literal); }

  // Infers and adds.
  Result<ir::Instruction*> Finish();

 private:
  void Fail(Status status);
  void BroadcastScalar();
  // A number of an attribute, possibly of a symbolic size, for which it returns the placeholder.
  int64_t Number(Attr key, size_t position, int64_t number);
  // A number that must not be symbolic.
  int64_t Plain(Attr key, int64_t number);
  Result<std::vector<ir::Computation*>> CopyRegions();

  kiln_graph& graph_;
  Opcode opcode_;
  Status status_;
  std::vector<ir::Instruction*> operands_;
  Attributes attributes_;
  std::vector<std::pair<const char*, const kiln_graph*>> regions_;
  std::optional<ElementType> type_;
  std::optional<std::vector<Dimension>> dims_;
  std::optional<Shape> declared_;
  std::shared_ptr<const Literal> literal_;
  std::string name_;
};

// build() -> Result<ir::Instruction*> as a builder function: does nothing for a NULL graph or after
// an error; errors and exceptions become the graph's.
template <typename Build>
kiln_value Built(kiln_graph* graph, Build&& build) noexcept {
  if (!graph || !graph->status().ok() || graph->client().is_before_fork()) return 0;
  try {
    Result<ir::Instruction*> built = build();
    if (built.ok()) return graph->IdOf(*built);
    graph->Fail(built.status());
  } catch (...) {
    graph->Fail(StatusOfException());
  }
  return 0;
}

// The same for one op, described by fill(OpBuilder&).
template <typename Fill>
kiln_value AddOp(kiln_graph* graph, Opcode opcode, Fill&& fill) noexcept {
  return Built(graph, [&] {
    OpBuilder op(*graph, opcode);
    fill(op);
    return op.Finish();
  });
}

}  // namespace kiln::capi
