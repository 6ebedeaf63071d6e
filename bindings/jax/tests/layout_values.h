/** @file
 *  Offsets and numbers of the PJRT C API, for the comparison of two declarations of it. */
#ifndef KILN_JAX_TESTS_LAYOUT_VALUES_H_
#define KILN_JAX_TESTS_LAYOUT_VALUES_H_

#include <cstddef>

namespace kiln_jax_test {

/** The offset of a member, or the number of an enumerator. */
struct LayoutValue {
  const char* name;
  size_t value;
};

/** Both end with a name of NULL. */
extern const LayoutValue kOurs[];
extern const LayoutValue kPublished[];

}  // namespace kiln_jax_test

#endif  // KILN_JAX_TESTS_LAYOUT_VALUES_H_
