// Which kernels are gemms that a library could make: by types, layouts and what else they do.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "compiler/gpu/library_gemm.h"
#include "kernel/schedule/gpu/gemm.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "target/target.h"

namespace kiln::kernel {
namespace {

// Those of the program that are launched as gemms, in words; "none" for what is not plain.
std::vector<std::string> GemmsOfModule(const std::string& text) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  compiler::Options options;
  options.verify = true;
  auto compiled =
      testing::CompileWithKernels(std::move(module), target::NvidiaGpu(80).value(), options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  std::vector<std::string> gemms;
  if (!compiled.ok()) return gemms;
  for (program::KernelId k : compiled->lowered.kernels.ids()) {
    const auto* schedule = std::get_if<GpuSchedule>(&compiled->lowered.kernels[k].schedule);
    if (!schedule || schedule->form != GpuSchedule::Form::kGemm) continue;
    const auto& gemm = compiled->artefact.program.kernels[k].library;
    gemms.push_back(gemm ? gemm->ToString() : "none");
  }
  return gemms;
}

std::vector<std::string> GemmsOf(const std::string& body) {
  return GemmsOfModule(Cat("HloModule m\nENTRY e { ", body, " }"));
}

std::string Dot(std::string_view x, std::string_view y, std::string_view out, int contracting_x,
                int contracting_y) {
  return Cat("x = ", x, " parameter(0) y = ", y, " parameter(1) ROOT d = ", out,
             " dot(x, y), lhs_contracting_dims={", contracting_x, "}, rhs_contracting_dims={",
             contracting_y, "}");
}

using Texts = std::vector<std::string>;

TEST(LibraryGemm, Layouts) {
  EXPECT_EQ(GemmsOf(Dot("f32[64,96]", "f32[96,160]", "f32[64,160]", 1, 0)),
            Texts{"64 x 160 x 96, f32 in f32 to f32, x along k by 96, y across k by 160, "
                  "out by 160"});
  EXPECT_EQ(
      GemmsOf(Dot("f32[64,96]", "f32[160,96]", "f32[64,160]", 1, 1)),
      Texts{"64 x 160 x 96, f32 in f32 to f32, x along k by 96, y along k by 96, out by 160"});
  EXPECT_EQ(GemmsOf(Dot("f32[96,64]", "f32[96,160]", "f32[64,160]", 0, 0)),
            Texts{"64 x 160 x 96, f32 in f32 to f32, x across k by 64, y across k by 160, "
                  "out by 160"});
  EXPECT_EQ(GemmsOf(Dot("f32[96,64]", "f32[160,96]", "f32[64,160]", 0, 1)),
            Texts{"64 x 160 x 96, f32 in f32 to f32, x across k by 64, y along k by 96, "
                  "out by 160"});
}

TEST(LibraryGemm, Types) {
  for (const char* type : {"f16", "bf16"}) {
    for (const char* out : {"f32", type}) {
      EXPECT_EQ(
          GemmsOf(Dot(Cat(type, "[64,96]"), Cat(type, "[96,160]"), Cat(out, "[64,160]"), 1, 0)),
          Texts{Cat("64 x 160 x 96, ", type, " in f32 to ", out,
                    ", x along k by 96, y across k by 160, out by 160")});
    }
  }
  EXPECT_EQ(GemmsOf(Dot("f64[64,96]", "f64[96,160]", "f64[64,160]", 1, 0)),
            Texts{"64 x 160 x 96, f64 in f64 to f64, x along k by 96, y across k by 160, "
                  "out by 160"});
  EXPECT_EQ(GemmsOf(Dot("s8[64,96]", "s8[160,96]", "s32[64,160]", 1, 1)),
            Texts{"64 x 160 x 96, s8 in s32 to s32, x along k by 96, y along k by 96, out by 160"});
  // Sums that could be too large for what adds them up.
  EXPECT_EQ(GemmsOf(Dot("s8[64,131072]", "s8[160,131072]", "s32[64,160]", 1, 1)), Texts{"none"});
  EXPECT_EQ(GemmsOf(Dot("s32[64,96]", "s32[96,160]", "s32[64,160]", 1, 0)), Texts{"none"});
}

TEST(LibraryGemm, Batches) {
  EXPECT_EQ(GemmsOf("x = f32[3,64,96] parameter(0) y = f32[3,96,160] parameter(1) "
                    "ROOT d = f32[3,64,160] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                    "lhs_contracting_dims={2}, rhs_contracting_dims={1}"),
            Texts{"3 x 64 x 160 x 96, f32 in f32 to f32, x along k by 96 and 6144, y across k by "
                  "160 and 15360, out by 160 and 10240"});
  // Heads that are cut out of rows, as attention has them.
  EXPECT_EQ(GemmsOf("x = f32[64,3,96] parameter(0) y = f32[160,3,96] parameter(1) "
                    "ROOT d = f32[3,64,160] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1}, "
                    "lhs_contracting_dims={2}, rhs_contracting_dims={2}"),
            Texts{"3 x 64 x 160 x 96, f32 in f32 to f32, x along k by 288 and 96, y along k by 288 "
                  "and 96, out by 160 and 10240"});
  // Two dimensions that are not one with the same stride.
  EXPECT_EQ(GemmsOf("x = f32[2,64,3,96] parameter(0) y = f32[2,160,3,96] parameter(1) "
                    "ROOT d = f32[2,3,64,160] dot(x, y), lhs_batch_dims={0,2}, "
                    "rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}"),
            Texts{"none"});
}

TEST(LibraryGemm, PartsOfArrays) {
  // 33 elements of four bytes in, all that is known is that elements are whole.
  EXPECT_EQ(GemmsOf("a = f32[64,200] parameter(0) x = f32[64,96] slice(a), slice={[0:64], "
                    "[33:129]} y = f32[96,160] parameter(1) ROOT d = f32[64,160] dot(x, y), "
                    "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            Texts{"64 x 160 x 96, f32 in f32 to f32, x along k by 200 at 4 bytes, y across k by "
                  "160, out by 160"});
  EXPECT_EQ(GemmsOf("x = f32[64,96] parameter(0) y = f32[96,160] parameter(1) "
                    "d = f32[64,160] dot(x, y), lhs_contracting_dims={1}, "
                    "rhs_contracting_dims={0} ROOT t = f32[160,64] transpose(d), "
                    "dimensions={1,0}"),
            Texts{"160 x 64 x 96, f32 in f32 to f32, x across k by 160, y along k by 96, out by "
                  "64"});
}

// The body of one fusion, whose parameters are p0, p1 and so on.
Texts GemmsOfFusion(const std::vector<std::string>& types, const std::string& body,
                    const std::string& out) {
  std::string parameters, names;
  for (size_t i = 0; i < types.size(); ++i) {
    parameters += Cat("p", i, " = ", types[i], " parameter(", i, ") ");
    names += Cat(i > 0 ? ", " : "", "p", i);
  }
  return GemmsOfModule(Cat("HloModule m\nf { ", parameters, body, " }\nENTRY e { ", parameters,
                           "ROOT r = ", out, " fusion(", names, "), kind=kOutput, calls=f }"));
}

constexpr char kDot[] = " dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} ";

TEST(LibraryGemm, WhatDoesMoreIsOurs) {
  const Texts factors = {"f32[64,96]", "f32[96,160]"};
  const std::string xy = "x = f32[64,96] copy(p0) y = f32[96,160] copy(p1) ";
  // As it is.
  EXPECT_EQ(GemmsOfFusion(factors, Cat(xy, "ROOT d = f32[64,160]", kDot), "f32[64,160]"),
            Texts{"64 x 160 x 96, f32 in f32 to f32, x along k by 96, y across k by 160, "
                  "out by 160"});
  // Something is made of the sum.
  EXPECT_EQ(
      GemmsOfFusion(factors, Cat(xy, "d = f32[64,160]", kDot, "ROOT r = f32[64,160] negate(d)"),
                    "f32[64,160]"),
      Texts{"none"});
  EXPECT_EQ(
      GemmsOfFusion(factors, Cat(xy, "d = f32[64,160]", kDot, "ROOT r = f16[64,160] convert(d)"),
                    "f16[64,160]"),
      Texts{"none"});
  // A factor is computed.
  EXPECT_EQ(GemmsOfFusion(factors,
                          Cat("x = f32[64,96] negate(p0) y = f32[96,160] copy(p1) ",
                              "ROOT d = f32[64,160]", kDot),
                          "f32[64,160]"),
            Texts{"none"});
  // Factors of two types.
  EXPECT_EQ(GemmsOfFusion({"f16[64,96]", "f32[96,160]"},
                          Cat("x = f32[64,96] convert(p0) y = f32[96,160] copy(p1) ",
                              "ROOT d = f32[64,160]", kDot),
                          "f32[64,160]"),
            Texts{"none"});
  // Elements that go the other way, and that are not there.
  EXPECT_EQ(GemmsOfFusion(factors,
                          Cat("x = f32[64,96] reverse(p0), dimensions={1} y = f32[96,160] ",
                              "copy(p1) ROOT d = f32[64,160]", kDot),
                          "f32[64,160]"),
            Texts{"none"});
  EXPECT_EQ(GemmsOfFusion({"f32[64,95]", "f32[96,160]"},
                          Cat("z = f32[] constant(0) x = f32[64,96] pad(p0, z), padding=0_0x0_1 ",
                              "y = f32[96,160] copy(p1) ROOT d = f32[64,160]", kDot),
                          "f32[64,160]"),
            Texts{"none"});
  // A place that is only known when the program runs.
  EXPECT_EQ(GemmsOfFusion({"f32[5,64,96]", "f32[96,160]", "s32[]"},
                          Cat("z = s32[] constant(0) s = f32[1,64,96] dynamic-slice(p0, p2, z, z), "
                              "dynamic_slice_sizes={1,64,96} x = f32[64,96] reshape(s) ",
                              "y = f32[96,160] copy(p1) ROOT d = f32[64,160]", kDot),
                          "f32[64,160]"),
            Texts{"none"});
}

// Conversions that tensor cores absorb are the library's too, as nothing is lost.
TEST(LibraryGemm, ConvertsThatLoseNothing) {
  for (const char* type : {"f16", "bf16"}) {
    EXPECT_EQ(GemmsOfFusion({Cat(type, "[64,96]"), Cat(type, "[96,160]")},
                            Cat("x = f32[64,96] convert(p0) y = f32[96,160] convert(p1) ",
                                "ROOT d = f32[64,160]", kDot),
                            "f32[64,160]"),
              Texts{Cat("64 x 160 x 96, ", type,
                        " in f32 to f32, x along k by 96, y across k by 160, out by 160")});
  }
  // Numbers of f32 that are rounded first are not those of the array.
  EXPECT_EQ(GemmsOfFusion({"f32[64,96]", "bf16[96,160]"},
                          Cat("h = bf16[64,96] convert(p0) x = f32[64,96] convert(h) ",
                              "y = f32[96,160] convert(p1) ROOT d = f32[64,160]", kDot),
                          "f32[64,160]"),
            Texts{"none"});
}

TEST(LibraryGemm, TF32WhereTheScheduleHasIt) {
  auto module = ir::ParseOrDie(
      Cat("HloModule m\nENTRY e { ", Dot("f32[64,96]", "f32[96,160]", "f32[64,160]", 1, 0), " }"));
  const target::Target target = target::NvidiaGpu(80).value();
  auto compiled = testing::CompileWithKernels(std::move(module), target);
  ASSERT_TRUE(compiled.ok());
  ScheduledKernel& kernel = compiled->lowered.kernels.at(0);
  for (bool tf32 : {false, true}) {
    target::Gpu gpu = target.gpu;
    gpu.tf32 = tf32;
    auto schedule = ScheduleGpuGemm(kernel.kernel, gpu);
    ASSERT_TRUE(schedule.has_value());
    kernel.schedule = *schedule;
    auto gemm = compiler::AsLibraryGemm(kernel);
    ASSERT_TRUE(gemm.has_value());
    EXPECT_EQ(gemm->tf32, tf32);
    EXPECT_EQ(gemm->ToString().find("in tf32") != std::string::npos, tf32);
  }
  // A serial schedule of the same kernel is ours.
  kernel.schedule = GpuSchedule();
  EXPECT_FALSE(compiler::AsLibraryGemm(kernel).has_value());
}

}  // namespace
}  // namespace kiln::kernel
