#include "interp/map.h"

#include <cstring>

#include "interp/reducer.h"

namespace kiln::interp {

Result<Literal> EvaluateMap(const ir::Instruction& i, std::span<const Literal* const> operands,
                            const RegionContext& context) {
  const ir::Computation& function = *i.called(0);
  Literal out(i.shape());
  size_t count = static_cast<size_t>(i.shape().num_elements());
  auto width = [](const Literal& l) { return static_cast<size_t>(ByteWidth(l.shape().type())); };
  std::optional<Reducer> fast = Reducer::Make(function);
  for (size_t k = 0; k < count; ++k) {
    std::byte* result = out.data() + k * width(out);
    if (fast) {
      KILN_RETURN_IF_ERROR(context.charge(fast->instruction_count()));
      for (size_t o = 0; o < operands.size(); ++o) {
        size_t bytes = width(*operands[o]);
        std::memcpy(fast->parameter(static_cast<int64_t>(o)), operands[o]->data() + k * bytes,
                    bytes);
      }
      KILN_RETURN_IF_ERROR(fast->Apply());
      std::memcpy(result, fast->result(0), width(out));
      continue;
    }
    std::vector<Literal> arguments;
    for (const Literal* operand : operands) {
      arguments.emplace_back(Shape::Scalar(operand->shape().type()));
      std::memcpy(arguments.back().data(), operand->data() + k * width(*operand), width(*operand));
    }
    KILN_ASSIGN_OR_RETURN(std::vector<Literal> results,
                          context.call(function, std::move(arguments)));
    std::memcpy(result, results[0].data(), width(out));
  }
  return out;
}

}  // namespace kiln::interp
