#include "plugin/dtype.h"

#include <iterator>

namespace kiln_jax {
namespace {

// The library's types, by PJRT's numbers; 0: none (INVALID).
constexpr kiln_dtype kDtypes[] = {
    0,
    KILN_PRED,
    KILN_S8,
    KILN_S16,
    KILN_S32,
    KILN_S64,
    KILN_U8,
    KILN_U16,
    KILN_U32,
    KILN_U64,
    KILN_F16,
    KILN_F32,
    KILN_F64,
    KILN_BF16,
    KILN_C64,
    KILN_C128,
    KILN_F8E5M2,
    KILN_F8E4M3FN,
    KILN_F8E4M3B11FNUZ,
    KILN_F8E5M2FNUZ,
    KILN_F8E4M3FNUZ,
    KILN_S4,
    KILN_U4,
    KILN_TOKEN,
    KILN_S2,
    KILN_U2,
    KILN_F8E4M3,
    KILN_F8E3M4,
    KILN_F8E8M0FNU,
    KILN_F4E2M1FN,
};
static_assert(std::size(kDtypes) == PJRT_Buffer_Type_F4E2M1FN + 1);

}  // namespace

kiln_dtype DtypeOf(PJRT_Buffer_Type type) { return type < std::size(kDtypes) ? kDtypes[type] : 0; }

PJRT_Buffer_Type TypeOf(kiln_dtype dtype) {
  for (size_t i = 1; i < std::size(kDtypes); ++i) {
    if (kDtypes[i] == dtype && dtype != 0) return static_cast<PJRT_Buffer_Type>(i);
  }
  return PJRT_Buffer_Type_INVALID;
}

}  // namespace kiln_jax
