// What the attributes of the dialects hold that are more than a word: "#stablehlo.gather<...>".
#pragma once

#include <string_view>

namespace kiln::mlir {

// The fields of a record in the order in which text has them, "name:kind" each with spaces between
// them; "" where there is no such record. The kinds are ints (kDenseArray of i64), int (kInteger of
// type i64), bool, type, f64 (kFloat) and mode (kEnum stablehlo.result_accuracy_mode).
std::string_view RecordFields(std::string_view record);

}  // namespace kiln::mlir
