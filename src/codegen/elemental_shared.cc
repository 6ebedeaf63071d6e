// Functions shared by all kernels of a module. Elementary functions are long. LLVM's fast
// instruction selector, used for unoptimised kernels, supports vectors only in plain arithmetic,
// and leaves everything else, with the preceding part of the block, to a selector ten times as
// slow. It does support calls.
#include "base/strings.h"
#include "codegen/elemental_internal.h"
#include "codegen/llvm_session.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

constexpr const char* kSharesFunctions = "kiln.shares_functions";

llvm::Function* CallerOf(Builder& b) {
  return b.GetInsertBlock() ? b.GetInsertBlock()->getParent() : nullptr;
}

bool SharesFunctions(Builder& b) {
  llvm::Function* caller = CallerOf(b);
  return caller && caller->getParent() && caller->getParent()->getModuleFlag(kSharesFunctions);
}

bool IsQuick(Builder& b) { return CallerOf(b)->hasOptNone(); }

// Whether the fast selector has the op on vectors of the type.
bool IsPlain(Opcode opcode, ElementType type) {
  bool sums = opcode == Opcode::kAdd || opcode == Opcode::kSubtract;
  if (type == ElementType::kF32 || type == ElementType::kF64) {
    return sums || opcode == Opcode::kMultiply || opcode == Opcode::kDivide;
  }
  return sums && IsInteger(type) && ByteWidth(type) >= 4;
}

// The function of a name, which is made once.
Result<llvm::Function*> SharedFunction(
    Builder& b, const std::string& name, llvm::Type* result, std::span<Value* const> operands,
    const std::function<Result<Value*>(Builder&, std::span<Value* const>)>& body) {
  llvm::Function* caller = CallerOf(b);
  if (llvm::Function* known = caller->getParent()->getFunction(name)) return known;
  std::vector<llvm::Type*> types;
  for (Value* operand : operands) types.push_back(operand->getType());
  llvm::Function* f =
      llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                             llvm::Function::InternalLinkage, name, caller->getParent());
  f->copyAttributesFrom(caller);
  f->setLinkage(llvm::Function::InternalLinkage);
  MakeOptimised(f);
  Builder inside(llvm::BasicBlock::Create(b.getContext(), "entry", f));
  std::vector<Value*> arguments;
  for (llvm::Argument& a : f->args()) arguments.push_back(&a);
  KILN_ASSIGN_OR_RETURN(Value * value, body(inside, arguments));
  inside.CreateRet(value);
  return f;
}

std::string NameOf(const kernel::Node& node, std::span<const ElementType> types, unsigned lanes) {
  std::string name = Cat("kiln.", OpcodeName(node.opcode));
  if (node.opcode == Opcode::kCompare) {
    name += Cat(".", DirectionName(node.direction), node.total_order ? ".total" : "");
  }
  if (node.opcode == Opcode::kReducePrecision) {
    name += Cat(".", node.exponent_bits, ".", node.mantissa_bits);
  }
  if (node.at_most_zero) name += ".at_most_zero";
  for (ElementType type : types) name += Cat(".", TypeName(type));
  return name + Cat(".", TypeName(node.type), ".", lanes);
}

// A number in memory: the fast selector has no vectors of constants.
Value* LoadConstant(Builder& b, llvm::Constant* vector) {
  llvm::Module* module = CallerOf(b)->getParent();
  std::string name;
  llvm::raw_string_ostream(name) << "kiln.constant." << *vector->getType() << "."
                                 << *vector->getSplatValue();
  llvm::GlobalVariable* global = module->getNamedGlobal(name);
  if (!global) {
    global = new llvm::GlobalVariable(*module, vector->getType(), true,
                                      llvm::GlobalValue::InternalLinkage, vector, name);
  }
  return b.CreateLoad(vector->getType(), global);
}

}  // namespace

void ShareFunctions(llvm::Module& module) {
  module.addModuleFlag(llvm::Module::Warning, kSharesFunctions, 1);
}

Value* elemental::SplatShared(Builder& b, Value* scalar, unsigned width) {
  bool constant = llvm::isa<llvm::Constant>(scalar);
  if (constant || scalar->getType()->isIntegerTy(1) || !SharesFunctions(b) || !IsQuick(b)) {
    return b.CreateVectorSplat(width, scalar);
  }
  std::string name;
  llvm::raw_string_ostream(name) << "kiln.splat." << *scalar->getType() << "." << width;
  auto* type = llvm::FixedVectorType::get(scalar->getType(), width);
  Result<llvm::Function*> f =
      SharedFunction(b, name, type, {&scalar, 1}, [&](Builder& at, std::span<Value* const> values) {
        return Result<Value*>(at.CreateVectorSplat(width, values[0]));
      });
  return b.CreateCall(*f, {scalar});
}

Result<Value*> elemental::EmitShared(
    Builder& b, const kernel::Node& node, std::span<Value* const> operands,
    std::span<const ElementType> types, ElementType data,
    const std::function<Result<Value*>(Builder&, std::span<Value* const>)>& body) {
  bool elementary = IsTranscendental(node.opcode);
  auto* vector =
      operands.empty() ? nullptr : llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  if (!SharesFunctions(b) || !(elementary || (vector && IsQuick(b)))) return body(b, operands);
  std::vector<Value*> values(operands.begin(), operands.end());
  if (!elementary && IsPlain(node.opcode, data)) {
    for (Value*& v : values) {
      if (auto* constant = llvm::dyn_cast<llvm::Constant>(v);
          constant && constant->getSplatValue()) {
        v = LoadConstant(b, constant);
      }
    }
    return body(b, values);
  }
  unsigned lanes = vector ? vector->getNumElements() : 1;
  llvm::Type* result = RegisterType(b.getContext(), node.type);
  if (vector) result = llvm::FixedVectorType::get(result, lanes);
  KILN_ASSIGN_OR_RETURN(llvm::Function * f,
                        SharedFunction(b, NameOf(node, types, lanes), result, operands, body));
  return b.CreateCall(f, values);
}

}  // namespace kiln::codegen
