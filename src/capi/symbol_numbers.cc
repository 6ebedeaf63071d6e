#include "capi/symbol_numbers.h"

#include <limits>
#include <set>

namespace kiln::capi {
namespace {

constexpr size_t kMaxNumbers = 1 << 16;
// Multiples up to this factor are always recognised as invalid sizes, others nearly always.
constexpr int64_t kMultiples = 1024;

// The output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool IsFar(int64_t number) {
  return number <= -SymbolNumbers::kLimit || number >= SymbolNumbers::kLimit;
}

}  // namespace

// Whether no sum of the number with a size, no difference from another number and no small multiple
// is a valid size. The sum of two wraps to 2^44 and more, because of the range of the numbers.
bool SymbolNumbers::IsApart(int64_t number) const {
  auto above = sizes_.lower_bound(number);
  if (above != sizes_.end() && above->first - number < 2 * kLimit) return false;
  if (above != sizes_.begin() && number - std::prev(above)->first < 2 * kLimit) return false;
  for (int64_t k = 2; k <= kMultiples; ++k) {
    const uint64_t product = static_cast<uint64_t>(k) * static_cast<uint64_t>(number);
    if (!IsFar(static_cast<int64_t>(product))) return false;
  }
  return true;
}

Result<int64_t> SymbolNumbers::NumberOf(const Dimension& size) {
  if (size.is_constant()) return size.size();
  const std::string text = size.ToString();
  if (auto it = numbers_.find(text); it != numbers_.end()) return it->second;
  if (sizes_.size() >= kMaxNumbers) {
    return InvalidArgument("more than ", kMaxNumbers, " sizes of symbols and bounds");
  }
  int64_t number = 0;
  do {
    const uint64_t random = Mix(++next_ * 0x9e3779b97f4a7c15) >> 2;
    number = std::numeric_limits<int64_t>::min() + static_cast<int64_t>(random);
  } while (number < std::numeric_limits<int64_t>::min() + (int64_t{1} << 44) || !IsApart(number));
  sizes_.emplace(number, size);
  numbers_.emplace(text, number);
  return number;
}

Result<Dimension> SymbolNumbers::SizeOf(int64_t number) const {
  if (auto it = sizes_.find(number); it != sizes_.end()) return it->second;
  if (IsFar(number) && (number < 0 || !sizes_.empty())) {
    return InvalidArgument(
        number,
        " is neither a size nor a symbol or bound of the graph; sums and multiples of "
        "symbols are sizes by kiln_graph_symbol_affine(), "
        "kiln_graph_symbol_sum() and kiln_graph_symbol_product()");
  }
  return Dimension(number);
}

std::vector<std::string> SymbolNumbers::Names() const {
  std::set<std::string> names;
  for (const auto& [number, size] : sizes_) {
    const Polynomial form = size.form();
    for (const Polynomial::Term& term : form.terms()) {
      names.insert(term.symbols.begin(), term.symbols.end());
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace kiln::capi
