#include "runtime/harness.h"

#include <cstring>
#include <string>

#include "base/strings.h"
#include "runtime/host.h"

namespace kiln::runtime {
namespace {

using FunctionPtr = std::shared_ptr<const lib::Function>;

// One array, and perhaps the same for the result.
class OfOne : public lib::Function {
 public:
  explicit OfOne(const CallSignature& signature)
      : shape_(signature.operands[0]), config_(signature.attributes) {}

 protected:
  Literal Read(void* const* args) const {
    Literal literal(shape_);
    if (literal.byte_size() > 0) {
      std::memcpy(literal.data(), args[0], static_cast<size_t>(literal.byte_size()));
    }
    return literal;
  }
  static Result<Probes*> ProbesOf(const kiln_frame* frame) {
    Probes* probes = static_cast<const HostRun*>(frame->host)->probes;
    if (!probes) return Unimplemented("nothing can be kept here");
    return probes;
  }
  const std::string& config() const { return config_; }

 private:
  const Shape shape_;
  const std::string config_;
};

class Probe : public OfOne {
 public:
  using OfOne::OfOne;
  Status Run(const kiln_frame* frame, void* const* args) const override {
    KILN_ASSIGN_OR_RETURN(Probes * probes, ProbesOf(frame));
    Literal value = Read(args);
    if (value.byte_size() > 0) {
      std::memcpy(args[1], value.data(), static_cast<size_t>(value.byte_size()));
    }
    probes->Keep(config(), std::move(value));
    return OkStatus();
  }
};

class Expect : public OfOne {
 public:
  using OfOne::OfOne;
  Status Run(const kiln_frame* frame, void* const* args) const override {
    KILN_ASSIGN_OR_RETURN(Probes * probes, ProbesOf(frame));
    return probes->Expect(config(), Read(args));
  }
};

// Nobody reads it.
class Print : public OfOne {
 public:
  using OfOne::OfOne;
  Status Run(const kiln_frame* frame, void* const* args) const override { return OkStatus(); }
};

template <typename F>
Result<FunctionPtr> Make(const CallSignature& signature, bool has_result) {
  const size_t results = has_result ? 1 : 0;
  if (signature.operands.size() != 1 || signature.results.size() != results ||
      (has_result && !signature.results[0].SameTypeAndDimensions(signature.operands[0]))) {
    return InvalidArgument("is called as ", signature, "; expected one array, and ",
                           has_result ? "one like it" : "()", " of it");
  }
  return FunctionPtr(std::make_shared<F>(signature));
}

Result<FunctionPtr> MakeProbe(const CallSignature& s) { return Make<Probe>(s, true); }
Result<FunctionPtr> MakeExpect(const CallSignature& s) { return Make<Expect>(s, false); }
Result<FunctionPtr> MakePrint(const CallSignature& s) { return Make<Print>(s, false); }

}  // namespace

std::span<const lib::Entry> Harness() {
  static constexpr lib::Entry kEntries[] = {
      {"check.expect_serialized_eq", MakeExpect, nullptr},
      {"interpreter.print", MakePrint, nullptr},
      {"interpreter.probe", MakeProbe, nullptr},
  };
  return kEntries;
}

}  // namespace kiln::runtime
