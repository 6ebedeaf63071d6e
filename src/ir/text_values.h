// The values in HLO text: shapes, literals, attributes. Private to the text reader and writer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/text_scanner.h"
#include "ops/attributes.h"
#include "ops/op.h"
#include "tensor/literal.h"
#include "tensor/shape.h"

namespace kiln::ir {

// The text attribute of an op that HLO lacks: backend_config of the custom call that stands for the
// op in text.
std::optional<Attr> TextAttributeOf(Opcode opcode);

// Whether a shape is next, rather than a name or an opcode.
bool LookingAtShape(Scanner& scanner);
// "f32[2,<=3,N]{1,0:T(8,128)}", "(f32[], s32[4]{0})", "token[]". A type that Kiln does not have is
// UNIMPLEMENTED. The result is valid.
Result<Shape> ReadShape(Scanner& scanner);

// The literals "{...}" of a text so far, for which the reader makes up elements.
struct ElidedLiterals {
  static constexpr int64_t kMostBytes = int64_t{1} << 28;
  int64_t count = 0;
  int64_t bytes = 0;
};
// The value of a constant of `shape`: "1.5", "{1, 2}", "(1, {2})". "{...}" has the elements of
// FillSeeded for their number in the text; RESOURCE_EXHAUSTED if they are too many.
Result<Literal> ReadLiteral(Scanner& scanner, const Shape& shape, ElidedLiterals& elided);

// "{0,1}".
Result<Ints> ReadInts(Scanner& scanner);
// "{{0,1},{2,3}}", "[2,2]<=[4]", "mesh['a'=2,'b'=2] {'b'}".
Result<Groups> ReadGroups(Scanner& scanner);
// Sizes of symbols in the place of numbers are added to `symbolic`.
Result<AttrValue> ReadAttribute(Scanner& scanner, const AttrInfo& info, SymbolicNumbers& symbolic);

// As XLA prints shapes: layouts always or never, and every fifth element of a tuple numbered.
std::string ShapeText(const Shape& shape, bool layouts);

}  // namespace kiln::ir
