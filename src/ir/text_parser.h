// The reader of HLO text: a recursive descent over the scanner, one computation at a time. Private;
// users call ParseHloText.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "ir/ir.h"
#include "ir/text.h"
#include "ir/text_foreign.h"
#include "ir/text_scanner.h"
#include "ir/text_values.h"

namespace kiln::ir {

class TextParser {
 public:
  TextParser(std::string_view text, const ParseOptions& options)
      : scanner_(text), options_(options) {}

  Result<std::unique_ptr<Module>> Parse();

 private:
  // A computation while it is read.
  struct Scope {
    Computation* computation = nullptr;
    std::unordered_map<std::string_view, Instruction*> names;
    Instruction* root = nullptr;
    Instruction* last = nullptr;
    bool declares_parameters = false;  // by operands with shapes
  };
  // A call of a computation by a name that may be defined later.
  struct PendingCall {
    Instruction* caller;
    int64_t index;
    std::string_view name;
    size_t position;
  };
  // The parsed parts of an instruction.
  struct Pending {
    InstructionSpec spec;
    struct Callee {
      std::string_view attribute;
      std::string_view name;
      size_t position;
      Computation* computation;  // of one that is written in place
    };
    std::vector<Callee> callees;
    std::vector<Instruction*> control_predecessors;
    std::vector<Shape> operand_layouts;  // of a custom call that demands them
    // Of an op that the op table lacks.
    std::optional<ForeignOp> foreign;
    std::string_view op;
    std::vector<std::pair<std::string_view, std::string_view>> more;
  };
  // A constant of integers that the reader made up.
  struct Elided {
    Instruction* constant;
    std::shared_ptr<Literal> literal;
    uint64_t seed;
  };

  // text_parser.cc: the module and everything around instructions.
  Status ReadHeader();
  Status ReadHeaderAttribute(std::string_view name);
  Status ReadEntryLayout();
  Status ReadAliases();
  Result<std::vector<int64_t>> ReadIndex();
  Status SkipTables();
  bool LookingAtInstruction();
  Status ReadInstructionAlone();
  Status ReadComputation();
  Result<Shape> ReadSignature(size_t& result_position);
  Result<Computation*> ReadBody(std::string_view name, int64_t depth);
  Status SkipAttributes();
  Status Finish();
  void DropAliases();
  void MakeUpInfeeds();
  Instruction* MakeUp(Builder& b, const Shape& shape);
  Status ApplyEntryLayout();

  // text_instruction.cc: one instruction.
  Status ReadInstruction(Scope& scope, int64_t depth);
  Result<Instruction*> ReadExpression(Scope& scope, std::string_view name, int64_t depth);
  Status ReadOperands(Scope& scope, Pending& pending, int64_t depth);
  Result<Instruction*> ReadOperand(Scope& scope, int64_t depth);
  Status ReadContent(Scope& scope, Pending& pending);  // of parameter and constant
  Status ReadConstant(Scope& scope, Pending& pending);
  Status TakeElided(Pending& pending);
  Status ReadAttributes(const Scope& scope, Pending& pending, int64_t depth);
  Status ReadAttribute(const Scope& scope, std::string_view name, size_t position, Pending& pending,
                       int64_t depth);
  Status ReadOperandLayouts(Pending& pending);
  static void TakeOperandLayouts(Scope& scope, Pending& pending);
  Status ReadOrderType(Pending& pending);
  Status ReadCallees(std::string_view attribute, Pending& pending, int64_t depth);
  Status ReadCallee(std::string_view attribute, Pending& pending, int64_t depth);
  Status ReadMetadata(Pending& pending);
  Status ReadFrontendAttributes(Pending& pending);
  Status ReadControlPredecessors(const Scope& scope, Pending& pending);
  Status OrderCallees(Pending& pending, size_t position);
  Result<Shape> InferMissingShape(const Pending& pending, size_t position);
  static void TakeForeignOp(InstructionSpec& spec);
  void TakeLayouts(Scope& scope, InstructionSpec& spec);
  Result<Instruction*> Make(Scope& scope, Pending pending, size_t position);
  Computation* Find(const Pending::Callee& callee) const;
  Instruction* MakeKnownCall(Scope& scope, const Pending& pending) const;
  Result<Instruction*> MakeForeignOp(Scope& scope, Pending pending, size_t position);
  // Its text's place, for errors.
  void NotePosition(const Instruction& instruction, size_t position);

  Scanner scanner_;
  ParseOptions options_;
  std::unique_ptr<Module> module_;
  std::unordered_map<std::string_view, Computation*> computations_;
  // By their text, so that ops with equal ones share them.
  std::unordered_map<std::string_view, FrontendAttributesRef> frontend_attributes_;
  std::vector<PendingCall> calls_;
  std::vector<size_t> positions_;  // of instructions, by id
  std::vector<Elided> elided_;
  ElidedLiterals made_up_;
  int64_t replicas_ = 1, partitions_ = 1;
  std::optional<ProgramShape> entry_layout_;
  size_t entry_layout_position_ = 0;
  Computation* last_computation_ = nullptr;
};

}  // namespace kiln::ir
