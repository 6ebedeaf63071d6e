#include "device/cpu/link.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "backend/guard.h"
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

// Code managed by ORC.
class Linker {
 public:
  static Result<std::unique_ptr<Linker>> Create(const std::vector<std::string>& objects,
                                                std::span<const LinkSymbol> symbols) {
    // All work is done on the caller's thread.
    auto control = orc::SelfExecutorProcessControl::Create(
        nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
    if (!control) return FromLlvm(control.takeError(), "starting the linker");
    std::unique_ptr<Linker> linker(new Linker(std::move(*control)));
    KILN_RETURN_IF_ERROR(linker->Add(objects, symbols));
    return linker;
  }

  ~Linker() {
    if (auto error = session_.endSession()) llvm::consumeError(std::move(error));
  }

  int64_t byte_size() const { return byte_size_; }
  Linker* next = nullptr;  // in Unneeded

  Result<void*> Find(const std::string& symbol) {
    auto found = session_.lookup({library_}, session_.intern(symbol));
    if (found) return found->getAddress().toPtr<void*>();
    // The linking error has been reported already, and is the cause of this.
    Keep(found.takeError());
    const std::string what = Cat("linking the code of ", symbol, ": ", errors_);
    if (Has(std::errc::not_enough_memory)) return ResourceExhausted(what);
    if (!Has(std::errc::permission_denied) && !Has(std::errc::operation_not_permitted)) {
      return Internal(what);
    }
    return Status(Code::kPermissionDenied,
                  Cat(what,
                      ": the system does not let memory be made executable (MDWE, SELinux or a "
                      "seccomp filter may forbid it); the device REFERENCE:0 does without"));
  }

 private:
  explicit Linker(std::unique_ptr<orc::ExecutorProcessControl> control)
      : session_(std::move(control)), layer_(session_) {
    // Errors of materialisation are reported here; by default they would go to standard error.
    session_.setErrorReporter([this](llvm::Error error) { Keep(std::move(error)); });
  }

  void Keep(llvm::Error error) {
    llvm::handleAllErrors(std::move(error), [this](const llvm::ErrorInfoBase& e) {
      errors_ += Cat(errors_.empty() ? "" : "; ", e.message());
      codes_.push_back(e.convertToErrorCode());
    });
  }
  bool Has(std::errc code) const {
    return std::ranges::any_of(codes_, [&](const std::error_code& c) { return c == code; });
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
  std::vector<std::error_code> codes_;  // theirs
  int64_t byte_size_ = 0;
};

// Linkers to be deleted, which takes memory: where there is none, the next one to be deleted takes
// them along.
class Unneeded {
 public:
  static void Add(Linker* linker) noexcept {
    std::lock_guard lock(mutex_);
    linker->next = std::exchange(first_, linker);
  }
  // Null if there is none.
  static Linker* Take() noexcept {
    std::lock_guard lock(mutex_);
    return first_ ? std::exchange(first_, first_->next) : nullptr;
  }

 private:
  static inline std::mutex mutex_;
  static inline Linker* first_ = nullptr;
};

// Linking happens at the first lookup. An aborted linker is leaked.
class OrcCode : public LinkedCode {
 public:
  static Result<std::unique_ptr<LinkedCode>> Create(const std::vector<std::string>& objects,
                                                    std::span<const LinkSymbol> symbols) {
    std::unique_ptr<OrcCode> code(new OrcCode);
    KILN_RETURN_IF_ERROR(code->Run([&]() -> Status {
      KILN_ASSIGN_OR_RETURN(auto linker, Linker::Create(objects, symbols));
      code->byte_size_ = linker->byte_size();
      code->linker_ = linker.release();
      return OkStatus();
    }));
    return std::unique_ptr<LinkedCode>(std::move(code));
  }

  ~OrcCode() override {
    if (linker_) Unneeded::Add(linker_);
    try {
      (void)Run([] {
        while (Linker* linker = Unneeded::Take()) delete linker;
        return OkStatus();
      });
    } catch (const std::bad_alloc&) {
    }
  }

  int64_t byte_size() const override { return byte_size_; }

  Result<void*> Find(const std::string& symbol) override {
    Linker* linker = std::exchange(linker_, nullptr);
    if (!linker) return Internal("linking the code of ", symbol, ": it has failed before");
    Result<void*> found = nullptr;
    KILN_RETURN_IF_ERROR(Run([&] {
      found = linker->Find(symbol);
      linker_ = linker;
      return OkStatus();
    }));
    return found;
  }

 private:
  static Status Run(const std::function<Status()>& work) {
    return backend::RunLlvm("linking", {}, work);
  }

  Linker* linker_ = nullptr;  // none once it had to be left
  int64_t byte_size_ = 0;
};

}  // namespace

Result<std::unique_ptr<LinkedCode>> Link(const std::vector<std::string>& objects,
                                         std::span<const LinkSymbol> symbols) {
  return OrcCode::Create(objects, symbols);
}

}  // namespace kiln::device
