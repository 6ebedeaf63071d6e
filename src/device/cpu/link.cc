#include "device/cpu/link.h"

#include <cstring>

#include "base/strings.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/Shared/ExecutorSymbolDef.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kiln::device {
namespace {

namespace orc = llvm::orc;

// Consumes an LLVM error.
Status FromLlvm(llvm::Error error, std::string_view doing) {
  if (!error) return OkStatus();
  return Internal(doing, ": ", llvm::toString(std::move(error)));
}

class OrcCode : public LinkedCode {
 public:
  static Result<std::unique_ptr<LinkedCode>> Create(const std::vector<std::string>& objects,
                                                    std::span<const LinkSymbol> symbols) {
    auto control = orc::SelfExecutorProcessControl::Create();
    if (!control) return FromLlvm(control.takeError(), "starting the linker");
    std::unique_ptr<OrcCode> code(new OrcCode(std::move(*control)));
    KILN_RETURN_IF_ERROR(code->Add(objects, symbols));
    return std::unique_ptr<LinkedCode>(std::move(code));
  }

  ~OrcCode() override {
    if (auto error = session_.endSession()) llvm::consumeError(std::move(error));
  }

  int64_t byte_size() const override { return byte_size_; }

  Result<void*> Find(const std::string& symbol) override {
    auto found = session_.lookup({library_}, session_.intern(symbol));
    if (found) return found->getAddress().toPtr<void*>();
    // What went wrong in linking has been reported already, and is the cause of this.
    Keep(found.takeError());
    return Internal("linking the code of ", symbol, ": ", errors_);
  }

 private:
  explicit OrcCode(std::unique_ptr<orc::ExecutorProcessControl> control)
      : session_(std::move(control)), layer_(session_) {
    // Errors of materialisation are reported here; by default they would go to standard error.
    session_.setErrorReporter([this](llvm::Error error) { Keep(std::move(error)); });
  }

  void Keep(llvm::Error error) {
    errors_ += Cat(errors_.empty() ? "" : "; ", llvm::toString(std::move(error)));
  }

  Status Add(const std::vector<std::string>& objects, std::span<const LinkSymbol> symbols) {
    library_ = &session_.createBareJITDylib("kiln");
    orc::SymbolMap table;
    for (const LinkSymbol& s : symbols) {
      table[session_.intern(s.name)] = {orc::ExecutorAddr::fromPtr(s.address),
                                        llvm::JITSymbolFlags::Exported};
    }
    auto add = [&](const char* name, auto* function) {
      table[session_.intern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                      llvm::JITSymbolFlags::Exported};
    };
    add("memcpy", static_cast<void* (*)(void*, const void*, size_t)>(&std::memcpy));
    add("memmove", static_cast<void* (*)(void*, const void*, size_t)>(&std::memmove));
    add("memset", static_cast<void* (*)(void*, int, size_t)>(&std::memset));
    if (auto error = library_->define(orc::absoluteSymbols(std::move(table)))) {
      return FromLlvm(std::move(error), "defining the closed table");
    }
    for (const std::string& object : objects) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kiln");
      auto file = llvm::object::ObjectFile::createELFObjectFile(buffer->getMemBufferRef());
      if (!file) return FromLlvm(file.takeError(), "reading an object");
      for (const llvm::object::SectionRef& section : (*file)->sections()) {
        bool loaded = llvm::object::ELFSectionRef(section).getFlags() & llvm::ELF::SHF_ALLOC;
        if (loaded) byte_size_ += static_cast<int64_t>(section.getSize());
      }
      if (auto error = layer_.add(*library_, std::move(buffer))) {
        return FromLlvm(std::move(error), "linking");
      }
    }
    return OkStatus();
  }

  orc::ExecutionSession session_;
  orc::ObjectLinkingLayer layer_;
  orc::JITDylib* library_ = nullptr;
  std::string errors_;
  int64_t byte_size_ = 0;
};

}  // namespace

Result<std::unique_ptr<LinkedCode>> Link(const std::vector<std::string>& objects,
                                         std::span<const LinkSymbol> symbols) {
  return OrcCode::Create(objects, symbols);
}

}  // namespace kiln::device
