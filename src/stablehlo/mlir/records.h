// The fields of the dialects' compound attributes: "#stablehlo.gather<...>".
#pragma once

#include <string_view>

namespace kiln::mlir {

// The fields of a record in the order of text, "name:kind", separated by spaces; "" for an unknown
// record. The kinds are ints (kDenseArray of i64), int (kInteger of type i64), bool, type, f64
// (kFloat) and mode (kEnum stablehlo.result_accuracy_mode).
std::string_view RecordFields(std::string_view record);

}  // namespace kiln::mlir
