/** @file
 *  Orders of elements in memory. The library's arrays are in row-major order; an array in another
 *  order is the library's array of its dimensions in that order. */
#ifndef KILN_JAX_PLUGIN_LAYOUT_H_
#define KILN_JAX_PLUGIN_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/api/layouts.h"

/** An order, as callers hold it. */
struct PJRT_Layouts_MemoryLayout {
  std::string text;  // as XLA writes it, "{1,0}"
};

namespace kiln_jax {

/** The dimensions from minor to major; empty for row-major order. */
using Layout = std::vector<int64_t>;

/** Reads an order; with dimensions of size one in any place, row-major is still row-major.
 *  @param layout NULL for row-major
 *  @return UNIMPLEMENTED for tiles and gaps, INVALID_ARGUMENT for what is no order of `dims` */
PJRT_Error* ReadLayout(const PJRT_Buffer_MemoryLayout* layout, const std::vector<int64_t>& dims,
                       int64_t element_bytes, Layout* read);

/** The same of the text of `mhlo.layout_mode`: "default", "auto" (both row-major), "{0,1}". */
PJRT_Error* ParseLayout(std::string_view text, const std::vector<int64_t>& dims, Layout* read);

/** What is listed by dimension, in the order of memory, from major to minor. */
std::vector<int64_t> InMemoryOrder(const std::vector<int64_t>& by_dimension, const Layout& layout);

/** Byte strides of the dimensions of a dense array in an order. */
std::vector<int64_t> DenseStrides(const std::vector<int64_t>& dims, const Layout& layout,
                                  int64_t element_bytes);

/** Minor to major, all dimensions listed. */
std::vector<int64_t> MinorToMajor(const Layout& layout, size_t rank);

/** Copies elements between arrays of any strides, in bytes. */
void CopyStrided(const char* from, const std::vector<int64_t>& from_strides, char* to,
                 const std::vector<int64_t>& to_strides, const std::vector<int64_t>& dims,
                 int64_t element_bytes);

/** The text of an order. */
std::string LayoutText(const Layout& layout, size_t rank);

/** The extensions "Layouts", "Shardings" and "Profiler" of the table, which live as long as the
 *  library. */
const void* Extensions();

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_LAYOUT_H_
