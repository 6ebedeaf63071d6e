#include "stablehlo/import/builder.h"

namespace kiln::stablehlo {

using ir::Instruction;

Instruction* Builder::BroadcastInDim(Instruction* x, const std::vector<Dimension>& to,
                                     const Ints& dimensions) {
  if (!x) return nullptr;
  const Shape& from = x->shape();
  if (std::ssize(dimensions) != from.rank()) {
    return Fail(InvalidArgument("found broadcast dimensions ", AttrValueText(dimensions), " for ",
                                from, "; expected one for each dimension"));
  }
  Ints kept;
  std::vector<Dimension> sizes;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const int64_t target = dimensions[static_cast<size_t>(d)];
    if (target < 0 || target >= std::ssize(to)) {
      return Fail(InvalidArgument("found broadcast dimension ", target, "; expected 0 to below ",
                                  to.size()));
    }
    const Dimension& size = from.dimension(d);
    if (size == Dimension(1) && size != to[static_cast<size_t>(target)]) continue;
    kept.push_back(target);
    sizes.push_back(size);
  }
  return Broadcast(Reshape(x, std::move(sizes)), to, std::move(kept));
}

}  // namespace kiln::stablehlo
