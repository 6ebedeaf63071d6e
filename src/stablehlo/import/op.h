// One operation while it is imported, and the rows of the table that says how.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stablehlo/import/builder.h"
#include "stablehlo/import/importer.h"
#include "stablehlo/import/types.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

class Op {
 public:
  Op(Importer& importer, Body& body, const mlir::Operation& operation)
      : importer(importer),
        body(body),
        operation(operation),
        call_name(operation.name == "stablehlo.custom_call" && operation.source
                      ? operation.source->Describe()
                      : ""),
        b(body.computation(), !call_name.empty() ? std::string_view(call_name)
                              : operation.source ? std::string_view(operation.source->name)
                                                 : std::string_view()) {}

  Importer& importer;
  Body& body;
  const mlir::Operation& operation;
  // Of a call its name and its place in the user's program, which failures of runs tell.
  const std::string call_name;
  Builder b;
  // Quantised ones as floats where `expressed`, else as integers.
  Values operands;
  bool expressed = false;

  ir::Instruction* operand(size_t i) const { return operands[i]; }
  const Shape& shape(size_t i) const { return operands[i]->shape(); }
  ElementType type(size_t i) const { return shape(i).type(); }
  const mlir::Type& operand_type(size_t i) const { return *operation.operands[i]->type; }
  const mlir::Type& result_type(size_t i) const { return *operation.results[i]->type; }
  size_t result_count() const { return operation.results.size(); }

  // Attributes by name, in the kind asked for. An error for an attribute of another kind, and for
  // an absent one without a value for this case.
  const mlir::Attribute* Find(std::string_view name) const { return operation.attribute(name); }
  Result<int64_t> Int(std::string_view name, std::optional<int64_t> absent = std::nullopt) const;
  Result<Ints> IntList(std::string_view name, std::optional<Ints> absent = std::nullopt) const;
  Result<bool> Bool(std::string_view name, std::optional<bool> absent = false) const;
  Result<double> Float(std::string_view name, std::optional<double> absent = std::nullopt) const;
  // An enumerator's or string's text, or a symbol's name.
  Result<std::string> Word(std::string_view name,
                           std::optional<std::string_view> absent = std::nullopt) const;
  Result<const mlir::Attribute*> Record(std::string_view name) const;
  // Rows of a matrix of integers, without elements of -1.
  Result<Groups> IntRows(std::string_view name) const;

  // The declaration of a result: its element type; its shape if all sizes are known or bounded;
  // and, for inference, this shape, or else a scalar of the type.
  Result<ElementType> ResultElement(size_t i) const;
  bool HasShape(size_t i) const { return !HasUnknownSize(result_type(i)); }
  Result<Shape> ResultShape(size_t i) const { return ShapeOf(result_type(i), expressed); }
  Result<Shape> Declared(size_t i) const;

  // The value of an operand where it is known when importing, as integers in row-major order.
  Result<Ints> KnownInts(size_t i, std::string_view what);
  Result<Ints> KnownIntsOf(const ir::Instruction* value, std::string_view what);

  // The parts of a tuple with an element for each result; of a single result the value itself.
  Values Unpack(ir::Instruction* value);
  Values One(ir::Instruction* value) const { return {value}; }
};

// Fields of records, which both readers make complete.
Result<int64_t> IntField(const mlir::Attribute& record, std::string_view name);
Result<Ints> IntsField(const mlir::Attribute& record, std::string_view name);

// The treatment of quantised values by an operation.
enum class Quantised : uint8_t {
  kNever,      // it has none
  kExpressed,  // computes with the floats that they stand for
  kStorage,    // moves them, as integers
  kSame,       // as integers where all are of one quantised type, else as floats
  kOwn,        // is written for them
};

using Lowering = Result<Values> (*)(Op& op);

// How many there are: any number from `min` up where max is -1.
struct Count {
  int min = 0, max = 0;
  constexpr Count(int n) : min(n), max(n) {}  // NOLINT: a number is a count
  constexpr Count(int least, int most) : min(least), max(most) {}
};
inline constexpr Count kAnyNumber = {0, -1};
inline constexpr Count kSome = {1, -1};

struct Row {
  std::string_view name;
  Lowering lower;
  Count operands = 1, results = 1, regions = 0;
  Quantised quantised = Quantised::kNever;
  bool arrays = true;  // whether all operands must be arrays
};

// Operations that are one op of HLO with the same operands, in order. `attributes` are the
// operation's names, each "name=HLO's name" if they differ, with "?" behind it if it is optional.
struct PlainRow {
  std::string_view name;
  Opcode opcode;
  std::string_view attributes = "";
  Quantised quantised = Quantised::kExpressed;
};

std::span<const PlainRow> PlainRows();
std::span<const Row> ArithmeticRows();
std::span<const Row> CheckRows();
std::span<const Row> ChloRows();
std::span<const Row> CollectiveRows();
std::span<const Row> ControlRows();
std::span<const Row> DynamicRows();
std::span<const Row> FoldRows();
std::span<const Row> GatherScatterRows();
std::span<const Row> ProductRows();
std::span<const Row> QuantisedRows();
std::span<const Row> ScanRows();
std::span<const Row> ShapeRows();
std::span<const Row> TransferRows();
std::span<const Row> WindowRows();

// Lowers an operation by the table, and checks the values against the types of its results.
Result<Values> Lower(Importer& importer, Body& body, const mlir::Operation& operation);
// An operation's lowering under another one's name: "stablehlo.add" for chlo.broadcast_add.
Result<Values> LowerAs(Op& op, std::string_view name);
// stablehlo.rng_bit_generator of operand 0, with bits of such a shape.
Result<Values> RngBitGeneratorOf(Op& op, Shape bits);

// From quantised integers to the floats they represent, and back.
ir::Instruction* Dequantise(Builder& b, ir::Instruction* x, const mlir::Quantization& q);
ir::Instruction* Quantise(Builder& b, ir::Instruction* x, const mlir::Quantization& q);

}  // namespace kiln::stablehlo
