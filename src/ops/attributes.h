// The attributes of an instruction, as a small sorted map from key to value. One generic container
// serves the text reader and writer, CSE, the C builder and the documentation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "ops/convolution.h"
#include "tensor/dimension.h"

namespace kiln {

enum class Attr : uint8_t {
#define KILN_ATTRIBUTE(Name, text, kind, doc) k##Name,
#include "ops/attributes.def"
#undef KILN_ATTRIBUTE
};

enum class AttrKind : uint8_t {
  kInt,
  kInts,
  kBool,
  kDirection,
  kSlices,
  kPadding,
  kWindow,
  kText,  // one word
  kFloat,
  kGroups,
  kConvolution,
  kQuoted,  // any text, which stands in quotes
  kAliases,
  kSymbolic,
};

// The direction of a compare. Floats compare as in IEEE 754: with a NaN only NE is true.
enum class Direction : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
std::string_view DirectionName(Direction direction);  // "EQ"
std::optional<Direction> DirectionByName(std::string_view name);
// The direction with swapped operands.
Direction Flipped(Direction direction);

struct SliceDimension {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceDimension&) const = default;
};

struct PaddingDimension {
  int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PaddingDimension&) const = default;
};

// A window along one dimension. The base is the operand with base_dilation - 1 holes between
// neighbours, and padding of `low` below and `high` above (negative: cut off). At position i the
// window's element k is the base's element i * stride + k * window_dilation.
struct WindowDimension {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, window_dilation = 1;
  bool reversed = false;  // the window's elements the other way round
  bool operator==(const WindowDimension&) const = default;
};

using Ints = std::vector<int64_t>;
using Groups = std::vector<Ints>;

struct QuotedText {
  std::string text;
  bool operator==(const QuotedText&) const = default;
};

// A part of a result in the memory of a part of an operand: paths into tuples.
struct OperandAlias {
  Ints output_index;
  int64_t operand = 0;
  Ints operand_index;
  bool operator==(const OperandAlias&) const = default;
};

// A symbolic size in place of a number of another attribute, which holds -1 there.
struct SymbolicNumber {
  Attr key;
  int64_t position;  // among the attribute's numbers, as HLO text has them; a slice or a padding
                     // has three for each dimension
  Dimension value;
  bool operator==(const SymbolicNumber&) const = default;
};
using SymbolicNumbers = std::vector<SymbolicNumber>;

// The alternatives are in the order of AttrKind.
using AttrValue = std::variant<int64_t, Ints, bool, Direction, std::vector<SliceDimension>,
                               std::vector<PaddingDimension>, std::vector<WindowDimension>,
                               std::string, double, Groups, ConvolutionDimensions, QuotedText,
                               std::vector<OperandAlias>, SymbolicNumbers>;

struct AttrInfo {
  Attr key;
  std::string_view name;
  AttrKind kind;
  std::string_view doc;
};
const AttrInfo& InfoOf(Attr key);
const AttrInfo* AttrByName(std::string_view name);

class Attributes {
 public:
  using Entry = std::pair<Attr, AttrValue>;

  // Compiled once, not in each user: values have many types.
  Attributes();
  ~Attributes();
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  Attributes(std::initializer_list<Entry> entries);

  void Set(Attr key, AttrValue value);
  void Erase(Attr key);
  bool Has(Attr key) const { return Find(key) != nullptr; }
  const AttrValue* Find(Attr key) const;
  const std::vector<Entry>& entries() const { return entries_; }

  // The value of an attribute; if absent, 0, empty, kEq or "", or the given default.
  int64_t Int(Attr key, int64_t absent = 0) const;
  double Float(Attr key) const;
  bool Bool(Attr key) const;
  const Ints& IntsOf(Attr key) const;
  Direction DirectionOf(Attr key) const;
  const std::vector<SliceDimension>& Slices(Attr key) const;
  const std::vector<PaddingDimension>& Padding(Attr key) const;
  const std::vector<WindowDimension>& Window(Attr key) const;
  const std::string& Text(Attr key) const;  // in quotes or without
  const Groups& GroupsOf(Attr key) const;
  const ConvolutionDimensions& Convolution(Attr key) const;
  const std::vector<OperandAlias>& Aliases(Attr key) const;
  // All symbolic numbers of the instruction; few have any.
  const SymbolicNumbers& Symbolic() const;
  // The symbolic size of a number of an attribute, or null.
  const Dimension* SymbolicAt(Attr key, int64_t position) const;

  bool operator==(const Attributes& other) const;
  size_t Hash() const;

 private:
  std::vector<Entry> entries_;  // sorted by key
};

// HLO's text of a value: "{0,1}", "{[0:5:2], [1:3:1]}", "0_1_2x0_0_0",
// "{size=2x1 pad=0_1x0_0}", "LT", "3", "0.001", "{{0,1},{2,3}}", "b0f_0io->b0f", "\"foo\"",
// "{{1}: (0, {})}".
std::string AttrValueText(const AttrValue& value);
// The same for an attribute among others, with symbolic sizes in place of their numbers: "{[0:n-1],
// [1:3]}", "0_(n)x0_0".
std::string AttributeText(const Attributes& attributes, Attr key);

}  // namespace kiln
