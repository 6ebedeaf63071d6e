#include "device/reference/device.h"

#include "base/stack.h"
#include "device/reference/custom_calls.h"
#include "interp/evaluator.h"
#include "interp/narrow.h"
#include "tensor/layouts.h"

namespace kiln::device {
namespace {

class ReferenceExecutable : public runtime::LoadedExecutable {
 public:
  ReferenceExecutable(program::Artefact artefact, std::unique_ptr<const interp::Evaluator> module,
                      const runtime::CallHost& host, bool calls_users)
      : program_(std::move(artefact.program)),
        module_(std::move(module)),
        host_(host),
        calls_users_(calls_users) {
    KeepCode(artefact);
  }

  const program::Program& program() const override { return program_; }
  bool calls_users_functions() const override { return calls_users_; }
  int64_t constant_bytes() const override { return module_->constant_bytes(); }

  Status Run(std::span<const void* const> arguments, std::span<void* const> results,
             const runtime::RunOptions& options) override {
    std::vector<Literal> literals;
    size_t next = 0;
    for (const Shape& shape : module_->parameters()) {
      literals.push_back(Read(shape, arguments, next));
    }
    Result<Literal> value = Literal();
    KILN_RETURN_IF_ERROR(OnOwnStack([&] {
      value = module_->Run(
          literals, {.interrupt = Interrupt(options.cancel), .custom_call = CustomCallBy(host_)});
    }));
    if (value.status().code() == Code::kCancelled) return Cancelled("the execution was cancelled");
    if (!value.ok()) return value.status();
    // A result may be an argument, in the memory of which another result belongs.
    Own(*value);
    next = 0;
    Write(*value, results, next);
    return OkStatus();
  }

 private:
  // Whether an array's bytes are those of a literal: in row-major order, and any bits are elements.
  static bool IsLiteralLike(const Shape& shape, const std::byte* memory) {
    const auto alignment = static_cast<uintptr_t>(ByteWidth(PartOf(shape.type())));
    return shape.is_row_major() && !IsPred(shape.type()) && BitWidth(shape.type()) >= 8 &&
           shape.num_elements() > 0 && reinterpret_cast<uintptr_t>(memory) % alignment == 0;
  }

  static Literal Read(const Shape& shape, std::span<const void* const> leaves, size_t& next) {
    if (shape.is_tuple()) {
      Literal literal(shape);
      for (size_t i = 0; i < shape.elements().size(); ++i) {
        literal.elements()[i] = Read(shape.elements()[i], leaves, next);
      }
      return literal;
    }
    auto* memory = static_cast<std::byte*>(const_cast<void*>(leaves[next++]));
    // Arguments outlive the run, in which nothing writes into them.
    if (IsLiteralLike(shape, memory)) return Literal::Borrowed(shape, memory, nullptr);
    Literal literal(shape);
    CopyFromLayout(shape, memory, literal.data());
    // The user's bytes, which need not be values of the type.
    interp::Normalise(shape.type(), literal.data(), shape.num_elements());
    return literal;
  }

  // Elements that are borrowed become the literal's own.
  static void Own(Literal& value) {
    for (Literal& element : value.elements()) Own(element);
    if (value.shape().is_array()) (void)value.data();
  }

  void Write(Literal& value, std::span<void* const> leaves, size_t& next) const {
    if (value.shape().is_tuple()) {
      for (Literal& element : value.elements()) Write(element, leaves, next);
      return;
    }
    const Shape& shape = program_.signature.results[next];
    CopyToLayout(shape, value.data(), static_cast<std::byte*>(leaves[next]));
    ++next;
  }

  const program::Program program_;
  const std::unique_ptr<const interp::Evaluator> module_;
  const runtime::CallHost host_;
  const bool calls_users_;
};

}  // namespace

Result<std::unique_ptr<runtime::LoadedExecutable>> ReferenceDevice::LoadChecked(
    program::Artefact artefact, TraceSink* trace) {
  program::Program& program = artefact.program;
  if (artefact.code.size() != 1) {
    return InvalidArgument("'", program.name, "' has ", artefact.code.size(),
                           " pieces of code; expected one, its module");
  }
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<const interp::Evaluator> module,
                        interp::Evaluator::Read(artefact.code[0], program.constants));
  // The module has them; the literals are shared.
  if (!artefact.keeps_code) program.constants.clear();
  KILN_ASSIGN_OR_RETURN(bool calls_users, CheckCustomCalls(*module, call_host()));
  return std::unique_ptr<runtime::LoadedExecutable>(std::make_unique<ReferenceExecutable>(
      std::move(artefact), std::move(module), call_host(), calls_users));
}

}  // namespace kiln::device
