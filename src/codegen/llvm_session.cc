#include "codegen/llvm_session.h"

#include <pthread.h>

#include <mutex>
#include <utility>

#include "backend/guard.h"
#include "base/stack.h"
#include "base/strings.h"
#include "codegen/llvm_passes.h"
#include "codegen/move_functions.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils.h"

namespace kiln::codegen {
namespace {

// Switches of LLVM's back end that are no target options. Emitted code has good addressing and
// order already: strength reduction and machine scheduling take a third of the time without gain.
// The pass against blocked store forwarding ends the process where a masked load has become a plain
// one and its value is stored (LLVM 19).
void SetBackEndSwitches() {
  const char* switches[] = {"kiln", "-disable-lsr", "-enable-misched=false",
                            "-x86-disable-avoid-SFB"};
  std::string text;
  llvm::raw_string_ostream errors(text);
  llvm::cl::ParseCommandLineOptions(std::size(switches), switches, "", &errors);
}

// A child of fork() could not finish what another thread has begun: forking waits for its end.
std::mutex initialising;
[[maybe_unused]] const int forks_wait = pthread_atfork(
    [] { initialising.lock(); }, [] { initialising.unlock(); }, [] { initialising.unlock(); });

// All passes of a target, which do nothing.
void MakePasses(const char* triple, llvm::CodeGenOptLevel level, llvm::CodeGenFileType type) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "", "", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, level, true));
  if (!machine) return;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  passes.add(llvm::createPromoteMemoryToRegisterPass());
  machine->addPassesToEmitFile(passes, stream, nullptr, type);
}

void RegisterAll() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  SetBackEndSwitches();
  // Passes register themselves where they are made first, under locks of the whole process: a run
  // that is abandoned there would leave them locked.
  const auto assembly = llvm::CodeGenFileType::AssemblyFile;
  const auto object = llvm::CodeGenFileType::ObjectFile;
  MakePasses("x86_64-unknown-linux-gnu", llvm::CodeGenOptLevel::Default, object);
  MakePasses("x86_64-unknown-linux-gnu", llvm::CodeGenOptLevel::None, object);
  MakePasses("nvptx64-nvidia-cuda", llvm::CodeGenOptLevel::Default, assembly);
}

// Once in a process. Where that was given up for lack of memory, nothing is left to begin with.
Status InitialiseLlvm() {
  enum class State { kNotBegun, kDone, kFailed };
  static State state = State::kNotBegun;
  std::lock_guard lock(initialising);
  if (state == State::kNotBegun) {
    // On a stack of its own, so that the lock is not given up with it.
    bool has_begun = false;
    Status status = RunAbandonable([&] {
      has_begun = true;
      RegisterAll();
    });
    if (!has_begun) return status;
    state = status.ok() ? State::kDone : State::kFailed;
  }
  if (state == State::kDone) return OkStatus();
  return ResourceExhausted(
      "there was no memory to set up LLVM, which cannot be tried again in this process");
}

// Without a handler of its own a context prints errors and calls exit.
class Collector : public llvm::DiagnosticHandler {
 public:
  explicit Collector(std::string& errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(errors_);
      if (!errors_.empty()) stream << "; ";
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

 private:
  std::string& errors_;
};

size_t InstructionsOf(const llvm::Function& function) {
  size_t instructions = 0;
  for (const llvm::BasicBlock& block : function) instructions += block.size();
  return instructions;
}

}  // namespace

LlvmSession::LlvmSession() = default;
LlvmSession::~LlvmSession() = default;

Status LlvmSession::Create(std::string_view module_name, const std::string& triple,
                           const std::string& cpu, const std::string& features) {
  KILN_RETURN_IF_ERROR(InitialiseLlvm());
  context_ = std::make_unique<llvm::LLVMContext>();
  context_->setDiagnosticHandler(std::make_unique<Collector>(errors_));
  context_->setDiscardValueNames(false);
  backend::EndBetweenPasses(*context_);
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return Unimplemented("no code generator for ", triple, ": ", error);
  llvm::TargetOptions options;
  machine_.reset(target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_,
                                             std::nullopt, llvm::CodeGenOptLevel::Default, true));
  if (!machine_) return Internal("no target machine for ", triple);
  module_ = std::make_unique<llvm::Module>(llvm::StringRef(module_name.data(), module_name.size()),
                                           *context_);
  module_->setTargetTriple(triple);
  module_->setDataLayout(machine_->createDataLayout());
  return OkStatus();
}

Result<std::unique_ptr<LlvmSession>> LlvmSession::ForCpu(std::string_view module_name,
                                                         const target::Cpu& cpu) {
  std::unique_ptr<LlvmSession> session(new LlvmSession());
  // Older CPUs round by library calls, unavailable to generated code.
  if (StartsWith(cpu.triple, "x86_64") && !cpu.Has("sse4.1")) {
    return Unimplemented("code for x86-64 without SSE4.1");
  }
  std::string features;
  for (const std::string& f : cpu.features) features += Cat(features.empty() ? "+" : ",+", f);
  session->prefer_vector_bits_ = cpu.vector_bytes * 8;
  KILN_RETURN_IF_ERROR(session->Create(module_name, cpu.triple,
                                       StartsWith(cpu.triple, "x86_64") ? "x86-64" : "", features));
  session->machine_->Options.EmitStackSizeSection = true;
  return session;
}

Result<std::unique_ptr<LlvmSession>> LlvmSession::ForGpu(std::string_view module_name,
                                                         const target::Gpu& gpu) {
  std::unique_ptr<LlvmSession> session(new LlvmSession());
  session->assembly_ = true;
  KILN_RETURN_IF_ERROR(session->Create(module_name, "nvptx64-nvidia-cuda", Cat("sm_", gpu.sm),
                                       Cat("+ptx", gpu.ptx_version)));
  return session;
}

llvm::FunctionType* LlvmSession::KernelType() {
  llvm::Type* pointer = llvm::PointerType::getUnqual(*context_);
  llvm::Type* i64 = llvm::Type::getInt64Ty(*context_);
  return llvm::FunctionType::get(llvm::Type::getVoidTy(*context_), {pointer, pointer, i64, i64},
                                 false);
}

llvm::FunctionType* LlvmSession::EntryType() {
  return llvm::FunctionType::get(llvm::Type::getInt32Ty(*context_),
                                 {llvm::PointerType::getUnqual(*context_)}, false);
}

llvm::Function* LlvmSession::AddFunction(llvm::FunctionType* type, std::string_view name,
                                         bool external) {
  llvm::StringRef symbol(name.data(), name.size());
  // A caller may have declared it first.
  llvm::Function* function = external ? module_->getFunction(symbol) : nullptr;
  if (!function || !function->isDeclaration()) {
    function = llvm::Function::Create(
        type, external ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage, symbol,
        module_.get());
  }
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // The named CPUs tune for vectors of half the width.
  if (prefer_vector_bits_ > 0) {
    function->addFnAttr("prefer-vector-width", Cat(prefer_vector_bits_));
  }
  return function;
}

Status LlvmSession::Verify() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!llvm::verifyModule(*module_, &stream)) return OkStatus();
  std::string where = module_->getName().str();
  for (const llvm::Function& f : *module_) {
    if (!llvm::verifyFunction(f)) continue;
    where += Cat(", function ", f.getName().str());
    break;
  }
  return Internal("malformed code in ", where, ": ", stream.str());
}

std::string LlvmSession::Text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module_->print(stream, nullptr);
  return stream.str();
}

Result<std::string> LlvmSession::EmitModule(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  {
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager all;
    NeededPasses needed;
    llvm::legacy::PassManager& passes = assembly_ ? all : needed;
    if (machine.addPassesToEmitFile(
            passes, stream, nullptr,
            assembly_ ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile)) {
      return Internal("the target cannot emit this kind of file");
    }
    passes.run(module);
  }
  if (!errors_.empty()) {
    return Internal("code generation of ", module.getName().str(), ": ", errors_);
  }
  return std::string(bytes.data(), bytes.size());
}

Result<bool> LlvmSession::MakeLargeQuick() {
  // The largest of real programs has some 2,500 instructions. One of the first size takes a second;
  // one of the second ten, even if it is quick, where each divides vectors of integers.
  constexpr unsigned kLarge = 10'000, kMost = 100'000;
  bool any = false;
  for (llvm::Function& f : *module_) {
    const size_t instructions = InstructionsOf(f);
    if (instructions > kMost) {
      return ResourceExhausted("the code of ", f.getName().str(), " would have ", instructions,
                               " LLVM instructions; the most is ", kMost);
    }
    if (instructions <= kLarge || assembly_) continue;
    MakeQuick(&f);
    any = true;
  }
  return any;
}

bool LlvmSession::HasManyQuick() const {
  constexpr size_t kMany = 64;
  size_t instructions = 0;
  for (const llvm::Function& f : *module_) {
    if (f.hasOptNone()) instructions += InstructionsOf(f);
  }
  return instructions >= kMany;
}

Result<std::string> LlvmSession::EmitQuick() {
  std::unique_ptr<llvm::Module> quick = MoveFunctions(
      *module_, [](const llvm::Function& f) { return f.hasOptNone(); }, ".quick");
  return EmitModuleQuick(*quick);
}

Result<std::string> LlvmSession::EmitModuleQuick(llvm::Module& module) {
  // Another machine would describe the processor anew.
  machine_->setOptLevel(llvm::CodeGenOptLevel::None);
  Result<std::string> object = EmitModule(module, *machine_);
  machine_->setOptLevel(llvm::CodeGenOptLevel::Default);
  machine_->setFastISel(false);  // as its passes have left it
  return object;
}

Result<std::string> LlvmSession::EmitAllQuick() { return EmitModuleQuick(*module_); }

Result<std::string> LlvmSession::Emit() { return EmitModule(*module_, *machine_); }

void MakeQuick(llvm::Function* function) {
  function->addFnAttr(llvm::Attribute::OptimizeNone);
  function->addFnAttr(llvm::Attribute::NoInline);
}

void MakeOptimised(llvm::Function* function) {
  function->removeFnAttr(llvm::Attribute::OptimizeNone);
  function->removeFnAttr(llvm::Attribute::NoInline);
}

}  // namespace kiln::codegen
