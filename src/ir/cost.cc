#include "ir/cost.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace kiln::ir {
namespace {

class Counter {
 public:
  Operations Of(const Computation& c) {
    auto [it, fresh] = known_.try_emplace(&c);
    if (!fresh) return it->second;
    Operations sum;
    for (Instruction* i : c.instructions()) Add(sum, Of(*i), 1);
    return known_[&c] = sum;
  }

 private:
  static void Add(Operations& sum, const Operations& more, int64_t times) {
    sum.flops += more.flops * times;
    sum.transcendentals += more.transcendentals * times;
  }

  static int64_t ElementsOf(const Shape& shape) {
    const Shape* array = &shape;
    while (array->is_tuple() && !array->elements().empty()) array = &array->elements()[0];
    return array->is_array() && array->is_static() ? array->num_elements() : 0;
  }

  Operations Of(const Instruction& i) {
    int64_t elements = ElementsOf(i.shape());
    auto applied = [&](int64_t times) {
      Operations result;
      Add(result, Of(*i.called(0)), std::max<int64_t>(times, 0));
      return result;
    };
    if (i.opcode() == Opcode::kCopy) return {};
    if (IsElementwise(i.opcode())) {
      return HasTrait(i.opcode(), kTranscendental) ? Operations{0, elements}
                                                   : Operations{elements, 0};
    }
    if (i.opcode() == Opcode::kDot) {
      int64_t products = elements;
      for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
        products *= i.operand(0)->shape().dim(d);
      }
      return {2 * products, 0};
    }
    int64_t in = i.operand_count() > 0 ? ElementsOf(i.operand(0)->shape()) : 0;
    if (i.opcode() == Opcode::kReduce) return applied(in - elements);
    if (i.opcode() == Opcode::kMap) return applied(elements);
    if (i.opcode() == Opcode::kScatter) {
      return applied(ElementsOf(i.operand(i.operand_count() - 1)->shape()));
    }
    if (i.opcode() == Opcode::kSort || i.opcode() == Opcode::kTopK) {
      return {in > 1 ? in * static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(in - 1))) : 0,
              0};
    }
    Operations result;
    if (i.opcode() == Opcode::kConditional) {
      for (const Computation* branch : i.called()) {
        Operations of = Of(*branch);
        result.flops = std::max(result.flops, of.flops);
        result.transcendentals = std::max(result.transcendentals, of.transcendentals);
      }
      return result;
    }
    // Calls, fusions and loops.
    for (const Computation* callee : i.called()) Add(result, Of(*callee), 1);
    return result;
  }

  std::unordered_map<const Computation*, Operations> known_;
};

}  // namespace

Operations OperationsOf(const Module& module) { return Counter().Of(*module.entry()); }

}  // namespace kiln::ir
