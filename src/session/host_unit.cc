#include "session/host_unit.h"

#include <utility>

#include "base/stack.h"
#include "device/reference/custom_calls.h"
#include "interp/interpreter.h"
#include "interp/narrow.h"

namespace kiln::session {

Result<Literal> ReadOnHost(client::Buffer& buffer, TraceSink* trace) {
  const Shape& shape = buffer.shape();
  if (!shape.is_row_major()) {
    return Unimplemented("an op on the host reads ", shape.ToString(true),
                         ", which is not row-major");
  }
  Literal literal(shape);
  KILN_RETURN_IF_ERROR(client::CopyToHost(buffer, literal.data(), trace));
  // The user's bytes, which need not be values of the type.
  interp::Normalise(shape.type(), literal.data(), shape.num_elements());
  return literal;
}

Result<std::vector<Literal>> EvaluateOnHost(const ir::Module& module,
                                            std::span<const Literal> arguments,
                                            client::Client& client, const Interrupt& interrupt) {
  const interp::Options options{
      .interrupt = interrupt,
      .custom_call = device::CustomCallBy({&client.calls(), &client.pool(0)}),
      .print = [&](std::string_view text) { client.Announce(text); }};
  Result<Literal> value = Literal();
  KILN_RETURN_IF_ERROR(OnOwnStack([&] { value = interp::Evaluate(module, arguments, options); }));
  KILN_RETURN_IF_ERROR(value.status());
  return std::move(value->elements());
}

}  // namespace kiln::session
