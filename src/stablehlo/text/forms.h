// The pretty forms of operations, described by a word for each part. Private to the text reader.
//
//   %            an operand
//   %*           operands with commas between them, maybe none
//   {}           a dictionary of attributes, if there is one
//   name:kind    an attribute: i32, i64, u64, f64, bool, ints ("[1, 2]"), string, symbol ("@f" as a
//                string), ref ("@f"), enum.NAME (of the dialect stablehlo), opaque.NAME (brackets
//                with their contents, of an attribute #NAME)
//   (? ... ?)    parts that may be missing, told by the first
//   @name        a part read by a function of the reader
//   : style      the types: of operands and results as in "(a, b) -> c" or "a, b -> c", or shorter
//                according to the style (see SetTypes)
//   else         the literal word
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::stablehlo {

// The form of the operation, "" for the generic form only; nullopt if unknown.
std::optional<std::string_view> FormOf(std::string_view name);

// Names of the dialect mhlo become those of stablehlo if it has the operation.
std::string CanonicalName(std::string_view name);

}  // namespace kiln::stablehlo
