// Scatters on GPUs: elements take their updates in order, whoever does them.

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kernel/schedule/gpu/schedule.h"
#include "support/gpu.h"

namespace kiln {
namespace {

using Form = kernel::GpuSchedule::Form;

// `body` makes indices "i" and updates "u"; sums of floats are told apart by their order.
std::string ScatterOf(std::string_view type, std::string_view operand, std::string_view body,
                      std::string_view attributes) {
  return Cat("HloModule m\nadd { a = ", type, "[] parameter(0)\n  b = ", type,
             "[] parameter(1)\n  ROOT c = ", type, "[] add(a, b) }\nlast { a = ", type,
             "[] parameter(0)\n  ROOT b = ", type, "[] parameter(1) }\nENTRY e { x = ", type,
             operand, " parameter(0)\n", body, "  ROOT r = ", type, operand, " scatter(x, i, u), ",
             attributes, " }");
}

void ExpectOwners(const std::string& text, bool owners = true) {
  bool found = false;
  for (const kernel::GpuSchedule& s : testing::CheckOnGpu(text, 0)) {
    found |= s.form == Form::kOwners;
  }
  EXPECT_EQ(found, owners) << text;
}

// Random indices: the remainder by the number of places, and some that are out of range.
std::string RandomIndices(int64_t count, int64_t places) {
  return Cat("  n = s32[", count, ",1] parameter(1)\n  c = s32[] constant(", places + 3,
             ")\n  p = s32[", count, ",1] broadcast(c), dimensions={}\n  m = s32[", count,
             ",1] remainder(n, p)\n  i = s32[", count, ",1] abs(m)\n");
}

constexpr char kElements[] =
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=";
constexpr char kRows[] =
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=";

// Many updates of few elements, in whole lists, in lists that are not full, and all of one element.
TEST(GpuScatter, Elements) {
  auto check = [](std::string_view type, int64_t count, int64_t places, std::string_view how) {
    std::string body =
        Cat(RandomIndices(count, places), "  u = ", type, "[", count, "] parameter(2)\n");
    ExpectOwners(ScatterOf(type, Cat("[", places, "]"), body, Cat(kElements, how)));
  };
  for (const char* type : {"f32", "bf16", "f64", "s8"}) check(type, 1000, 40, "add");
  check("f32", 256, 1000, "last");
  check("f32", 515, 1, "add");
  check("f32", 33, 7, "last");
}

// Rows, as gradients of embeddings have them.
TEST(GpuScatter, Rows) {
  for (int64_t width : {1, 40, 300}) {
    std::string body = Cat(RandomIndices(130, 9), "  u = f32[130,", width, "] parameter(2)\n");
    ExpectOwners(ScatterOf("f32", Cat("[9,", width, "]"), body, Cat(kRows, "add")));
  }
}

// Each batch has indices of its own.
TEST(GpuScatter, Batches) {
  std::string body = R"(  n = s32[4,50,1] parameter(1)
  c = s32[] constant(13)
  p = s32[4,50,1] broadcast(c), dimensions={}
  m = s32[4,50,1] remainder(n, p)
  i = s32[4,50,1] abs(m)
  u = f32[4,50,6] parameter(2)
)";
  ExpectOwners(ScatterOf("f32", "[4,11,6]", body,
                         "update_window_dims={2}, inserted_window_dims={1}, "
                         "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
                         "scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add"));
}

// Slices that begin anywhere may overlap: they go one after the other.
TEST(GpuScatter, OverlappingSlices) {
  std::string body = Cat(RandomIndices(60, 20), "  u = f32[60,4] parameter(2)\n");
  ExpectOwners(ScatterOf("f32", "[24]", body,
                         "update_window_dims={1}, inserted_window_dims={}, "
                         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"),
               false);
}

// Several components, and operands that go together.
TEST(GpuScatter, PlacesOfTwoDimensions) {
  std::string body = R"(  n = s32[200,2] parameter(1)
  c = s32[] constant(9)
  p = s32[200,2] broadcast(c), dimensions={}
  m = s32[200,2] remainder(n, p)
  i = s32[200,2] abs(m)
  u = f32[200,5] parameter(2)
)";
  ExpectOwners(ScatterOf("f32", "[8,5,8]", body,
                         "update_window_dims={1}, inserted_window_dims={0,2}, "
                         "scatter_dims_to_operand_dims={0,2}, index_vector_dim=1, to_apply=add"));
}

}  // namespace
}  // namespace kiln
