#include "codegen/move_functions.h"

#include <vector>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/ReplaceConstant.h"

namespace kiln::codegen {
namespace {

bool IsUsedIn(const llvm::Use& use, const llvm::Module& module) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(use.getUser());
  return instruction && instruction->getModule() == &module;
}

llvm::GlobalValue* Declare(llvm::GlobalValue& value, llvm::Module& module) {
  if (auto* f = llvm::dyn_cast<llvm::Function>(&value)) {
    auto* declared = llvm::Function::Create(
        f->getFunctionType(), llvm::GlobalValue::ExternalLinkage, f->getName(), module);
    declared->copyAttributesFrom(f);
    return declared;
  }
  auto& variable = llvm::cast<llvm::GlobalVariable>(value);
  auto* declared = new llvm::GlobalVariable(
      module, variable.getValueType(), variable.isConstant(), llvm::GlobalValue::ExternalLinkage,
      nullptr, variable.getName(), nullptr, variable.getThreadLocalMode());
  declared->setAlignment(variable.getAlign());
  return declared;
}

// The value as the other module sees it.
llvm::GlobalValue* Seen(llvm::GlobalValue& value, llvm::Module& owner, llvm::Module& user) {
  if (value.hasLocalLinkage()) {
    value.setName(owner.getModuleIdentifier() + "." + value.getName().str());
    value.setLinkage(llvm::GlobalValue::ExternalLinkage);
  }
  llvm::GlobalValue* known = user.getNamedValue(value.getName());
  return known ? known : Declare(value, user);
}

// Uses in `user` of what is in `owner` become uses of declarations.
void Bridge(llvm::Module& owner, llvm::Module& user) {
  std::vector<llvm::GlobalValue*> values;
  std::vector<llvm::Constant*> variables;
  for (llvm::Function& f : owner) values.push_back(&f);
  for (llvm::GlobalVariable& v : owner.globals()) {
    values.push_back(&v);
    variables.push_back(&v);
  }
  // Addresses within a variable are constants, which belong to no module.
  llvm::convertUsersOfConstantsToInstructions(variables);
  for (llvm::GlobalValue* value : values) {
    bool used = false;
    for (const llvm::Use& use : value->uses()) used = used || IsUsedIn(use, user);
    if (!used) continue;
    llvm::GlobalValue* seen = Seen(*value, owner, user);
    value->replaceUsesWithIf(seen, [&](llvm::Use& use) { return IsUsedIn(use, user); });
  }
  // Tables of functions are constants, too.
  for (llvm::GlobalVariable& table : user.globals()) {
    auto* array = table.hasInitializer()
                      ? llvm::dyn_cast<llvm::ConstantArray>(table.getInitializer())
                      : nullptr;
    if (!array) continue;
    std::vector<llvm::Constant*> elements;
    for (llvm::Use& use : array->operands()) {
      auto* value = llvm::dyn_cast<llvm::GlobalValue>(use.get());
      bool elsewhere = value && value->getParent() == &owner;
      elements.push_back(elsewhere ? Seen(*value, owner, user)
                                   : llvm::cast<llvm::Constant>(use.get()));
    }
    table.setInitializer(llvm::ConstantArray::get(array->getType(), elements));
  }
}

}  // namespace

std::unique_ptr<llvm::Module> MoveFunctions(
    llvm::Module& module, const std::function<bool(const llvm::Function&)>& chosen,
    std::string_view suffix) {
  auto moved = std::make_unique<llvm::Module>(module.getModuleIdentifier() + std::string(suffix),
                                              module.getContext());
  moved->setTargetTriple(module.getTargetTriple());
  moved->setDataLayout(module.getDataLayout());
  std::vector<llvm::Function*> functions;
  for (llvm::Function& f : module) {
    if (!f.isDeclaration() && chosen(f)) functions.push_back(&f);
  }
  for (llvm::Function* f : functions) {
    f->removeFromParent();
    moved->getFunctionList().push_back(f);
  }
  Bridge(module, *moved);
  Bridge(*moved, module);
  return moved;
}

}  // namespace kiln::codegen
