#include "support/kernel_jit.h"

#include <chrono>
#include <cstdlib>
#include <mutex>

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::testing {

namespace orc = llvm::orc;

namespace {

Status FromLlvm(llvm::Error error) { return Internal(llvm::toString(std::move(error))); }

void Initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    // Emitted code is already in the shape that these two would look for.
    auto& options = llvm::cl::getRegisteredOptions();
    for (auto [name, value] : {std::pair("disable-lsr", "true"), {"enable-misched", "false"}}) {
      auto option = options.find(name);
      if (option != options.end()) option->second->addOccurrence(0, name, value);
    }
  });
}

}  // namespace

struct KernelJit::State {
  target::Cpu cpu;
  std::unique_ptr<orc::LLJIT> jit;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::vector<std::string> names;
  double milliseconds = 0;
};

KernelJit::KernelJit(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelJit::~KernelJit() = default;

Result<std::unique_ptr<KernelJit>> KernelJit::Create(const target::Cpu& cpu) {
  Initialise();
  auto state = std::make_unique<State>();
  state->cpu = cpu;
  orc::JITTargetMachineBuilder builder{llvm::Triple(cpu.triple)};
  builder.setCPU("x86-64");
  for (const std::string& feature : cpu.features) builder.addFeatures({"+" + feature});
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(builder)).create();
  if (!jit) return FromLlvm(jit.takeError());
  state->jit = std::move(*jit);
  state->context = std::make_unique<llvm::LLVMContext>();
  state->module = std::make_unique<llvm::Module>("kernels", *state->context);
  state->module->setDataLayout(state->jit->getDataLayout());
  state->module->setTargetTriple(cpu.triple);
  return std::unique_ptr<KernelJit>(new KernelJit(std::move(state)));
}

Status KernelJit::Add(const std::string& name, const std::function<Status(llvm::Function*)>& emit) {
  llvm::LLVMContext& context = *state_->context;
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, i64, i64}, false);
  auto* function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *state_->module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("prefer-vector-width", Cat(state_->cpu.vector_bytes * 8));
  state_->names.push_back(name);
  return emit(function);
}

Status KernelJit::Compile() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(*state_->module, &stream)) return Internal(stream.str());
  if (std::getenv("KILN_DUMP_KERNELS") != nullptr) state_->module->print(llvm::errs(), nullptr);
  const auto start = std::chrono::steady_clock::now();
  if (llvm::Error error = state_->jit->addIRModule(orc::ThreadSafeModule(
          std::move(state_->module), orc::ThreadSafeContext(std::move(state_->context))))) {
    return FromLlvm(std::move(error));
  }
  for (const std::string& name : state_->names) {
    auto address = state_->jit->lookup(name);
    if (!address) return FromLlvm(address.takeError());
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  state_->milliseconds = took.count();
  return OkStatus();
}

double KernelJit::compile_milliseconds() const { return state_->milliseconds; }

kiln_kernel_fn KernelJit::Find(const std::string& name) const {
  auto address = state_->jit->lookup(name);
  if (!address) {
    llvm::consumeError(address.takeError());
    return nullptr;
  }
  return address->toPtr<kiln_kernel_fn>();
}

}  // namespace kiln::testing
