// The bytes of saved programs: those of their version, and nothing but an error where they are
// damaged.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "device/reference/device.h"
#include "program/container.h"
#include "program/saved.h"
#include "support/saved.h"
#include "target/target.h"
#include "tensor/call_signature.h"

namespace kiln::testing {
namespace {

using program::Artefact;
using program::Checksum;
using program::OpenContainer;

program::Slice SliceOf(int allocation, int64_t offset, int64_t bytes) {
  return {program::AllocationId(allocation), offset, bytes};
}

// Six arrays, a token, and all kinds of allocations.
void AddMemory(program::Program& p) {
  using Kind = program::Allocation::Kind;
  Shape layout(ElementType::kF32, {2, 3});
  layout.set_minor_to_major({0, 1});
  const Shape bounded(ElementType::kS32, {Dimension::Bounded(4)});
  const Shape pred = Shape::Scalar(ElementType::kPred);
  p.signature = {.parameters = {layout, pred, Shape::Token()},
                 .parameter_names = {"x", "p", "token"},
                 .results = {layout, bounded},
                 .result_shape = Shape::Tuple({layout, Shape::Tuple({bounded})}),
                 .aliases = {0, -1},
                 .must_alias = {true, false}};
  p.argument_alignments = {64, 16, 1};
  p.donatable = {true, false};
  p.frozen = {false, true, false};
  p.allocations.push_back({Kind::kParameter, 0, 24});
  p.allocations.push_back({Kind::kParameter, 1, 1});
  p.allocations.push_back({Kind::kResult, 1, 16});
  p.allocations.push_back({Kind::kConstant, 0, 12});
  p.allocations.push_back({Kind::kConstant, 1, 8});
  p.allocations.push_back({Kind::kArena, 0, 512});
  p.allocations.push_back({Kind::kBound, 0, 32});
  p.constants = {std::make_shared<Literal>(Literal::Array<float>(Shape(ElementType::kF32, {3}),
                                                                 std::vector{1.f, 2.f, 3.f})),
                 nullptr};
  p.arena_bytes = 512;
  p.scratch_bytes = 128;
}

void AddKernels(program::Program& p) {
  program::LibraryGemm gemm{.m = 2, .n = 3, .k = 4, .batch = 5};
  gemm.factor = ElementType::kBF16;
  gemm.sum = ElementType::kF32;
  gemm.out = ElementType::kF16;
  gemm.tf32 = true;
  gemm.x = {0, 1, 2, 3, true, 4};
  gemm.y = {1, 5, 6, 7, false, 8};
  gemm.out_matrix = {2, 9, 10, 11, true, 16};
  p.kernels.push_back({"first", {}, std::nullopt});
  p.kernels.push_back({"second", {{"symbol", 7, 128, 1024}, {"other", 1, 32, 0}}, gemm});
  p.launches.push_back({"kernel", {"op.1", "op.2"}, 100, 200, false});
  p.launches.push_back({"call", {}, 300, 400, true});
}

void AddSteps(program::Program& p) {
  using program::Conditional;
  using program::HostCall;
  using program::KernelId;
  using program::LaunchId;
  using program::While;
  const CallSignature call{.operands = {Shape(ElementType::kF32, {3})},
                           .results = {Shape(ElementType::kF32, {3})},
                           .attributes = "attributes"};
  const program::Launch launch{
      KernelId(1), {SliceOf(3, 0, 12), SliceOf(5, 64, 48), SliceOf(2, 0, 16)}, LaunchId(0), true};
  p.prologue.push_back({program::Launch{KernelId(0), {SliceOf(4, 0, 8)}, LaunchId(), false}});
  p.binding.push_back({program::Copy{SliceOf(1, 0, 1), SliceOf(6, 31, 1)}});
  p.steps.push_back({launch});
  p.steps.push_back({program::Copy{SliceOf(0, 0, 24), SliceOf(5, 128, 24)}});
  p.steps.push_back(
      {HostCall{"target", {SliceOf(3, 0, 12), SliceOf(5, 0, 12)}, call.Encode(), LaunchId(1)}});
  p.steps.push_back({While{{{program::Copy{SliceOf(1, 0, 1), SliceOf(5, 256, 1)}}},
                           SliceOf(5, 256, 1),
                           {{launch}},
                           LaunchId(0),
                           true,
                           9}});
  p.steps.push_back({Conditional{SliceOf(5, 320, 4), false, {{{launch}}, {}}}});
}

// A program with a value of its own in each member, of every kind of step.
Artefact EveryMember() {
  Artefact artefact;
  program::Program& p = artefact.program;
  p.name = "every member";
  p.target = "a target";
  p.frame_version = 3;
  p.id = "0123456789abcdef";
  AddMemory(p);
  AddKernels(p);
  AddSteps(p);
  p.flops = 1000;
  p.transcendentals = 2000;
  p.has_partial_cost = true;
  p.nanoseconds = 1.5;
  artefact.code = {"code", "more code"};
  artefact.machine_code = {"sm_90", {"image", "other image"}};
  return artefact;
}

// If this fails, files of earlier libraries would be misread: raise kContainerVersion, make the
// table of docs/saved-programs.md say what is new, and put the new digest here.
TEST(SavedFormat, IsThatOfItsVersion) {
  const std::string bytes = Saved(EveryMember());
  EXPECT_EQ(program::kContainerVersion, 2u);
  EXPECT_EQ(HexText(HashOf(bytes)),
            "644019a2d3c070ad710277eba90bd92aaf0c93d3ffd83ed2bf200d4e55a2589c");
  auto restored = program::Restore(bytes);
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(Saved(*restored), bytes);
  EXPECT_EQ(restored->program.ToString(), EveryMember().program.ToString());
  EXPECT_EQ(restored->machine_code->images, EveryMember().machine_code->images);
  EXPECT_EQ(restored->program.scratch_bytes, 128);
}

TEST(SavedFormat, ChecksumsDoNotDependOnThePartsOfTheBytes) {
  std::mt19937 random(1);
  std::string bytes(1000, 0);
  for (char& byte : bytes) byte = static_cast<char>(random());
  auto sum_of = [](std::string_view text, size_t part) {
    Checksum sum;
    for (size_t at = 0; at < text.size(); at += part) sum.Update(text.substr(at, part));
    return sum.Finish();
  };
  for (size_t size : {0, 1, 63, 64, 65, 1000}) {
    const std::string_view text = std::string_view(bytes).substr(0, size);
    const uint64_t whole = sum_of(text, 2000);
    for (size_t part : {1, 7, 64, 100}) EXPECT_EQ(sum_of(text, part), whole);
    // Any bit counts, and zeros behind the end do.
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      std::string other(text);
      other[bit / 8] ^= static_cast<char>(1 << bit % 8);
      ASSERT_NE(sum_of(other, 2000), whole) << bit;
    }
    EXPECT_NE(sum_of(std::string(text) + '\0', 2000), whole);
  }
}

TEST(SavedFormat, SectionsAreAligned) {
  const std::string bytes = Saved(CompileToSave(EveryKindOfStep(), target::HostCpu()));
  const OpenContainer file = program::ReadContainer(bytes).value();
  EXPECT_EQ(file.description.data() - bytes.data(), 128);
  EXPECT_EQ((file.code.data() - bytes.data()) % 64, 0);
  EXPECT_EQ((file.constants.data() - bytes.data()) % 4096, 0);
  EXPECT_GT(file.constants.size(), 96u * 96 * 4);
  EXPECT_EQ(file.constants.data() + file.constants.size(), bytes.data() + bytes.size());
}

// What is told of damaged bytes.
Status Problem(std::string_view bytes) { return program::Restore(bytes).status(); }

void ExpectTold(const Status& status, Code code, std::string_view part) {
  EXPECT_EQ(status.code(), code);
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(SavedFormat, ErrorsTellWhatIsWrong) {
  const std::string bytes = Saved(CompileToSave(EveryKindOfStep(), target::HostCpu()));
  auto with = [&](size_t at, char byte) {
    std::string other = bytes;
    other[at] = byte;
    return Problem(other);
  };
  ExpectTold(Problem(""), Code::kInvalidArgument, "no saved program");
  ExpectTold(Problem("HloModule m, a text of more than forty characters"), Code::kInvalidArgument,
             "no saved program");
  ExpectTold(with(8, 9), Code::kFailedPrecondition,
             "version 9 of the format, and this is version 2");
  ExpectTold(Problem(bytes.substr(0, 20)), Code::kInvalidArgument, "ends in its header");
  ExpectTold(Problem(bytes.substr(0, 100)), Code::kInvalidArgument, "100 of ");
  ExpectTold(Problem(bytes.substr(0, 1000)), Code::kInvalidArgument, "1000 of ");
  ExpectTold(Problem(bytes + "x"), Code::kInvalidArgument, Cat(bytes.size() + 1, " of "));
  ExpectTold(with(33, 1), Code::kInvalidArgument, "the checksum of its header is ");
  const OpenContainer file = program::ReadContainer(bytes).value();
  auto middle = [&](std::string_view section) {
    return static_cast<size_t>(section.data() - bytes.data()) + section.size() / 2;
  };
  for (auto [section, name] :
       {std::pair{file.description, "description"}, std::pair{file.code, "code"},
        std::pair{file.constants, "constants"}}) {
    const size_t at = middle(section);
    const std::string text(with(at, static_cast<char>(bytes[at] ^ 1)).message());
    const size_t is = text.find(Cat("the checksum of its ", name, " is "));
    EXPECT_TRUE(is != text.npos && text.find(", and not ", is) != text.npos) << text;
  }
  // The sections are where they have to be, even if the sums say so.
  for (size_t section = 0; section < 3; ++section) {
    // Of the offset, and of the size, where that is more than what alignment leaves free.
    for (size_t byte : {0, 1, 6, 7, 10, 12, 15}) {
      std::string other = bytes;
      other[32 + 24 * section + byte] ^= '\x81';
      program::SealContainer(other);
      ExpectTold(Problem(other), Code::kInvalidArgument, "sections do not fit");
    }
  }
}

std::vector<std::string> FilesOfEveryTarget() {
  std::vector<std::string> files = {Saved(EveryMember())};
  for (const target::Target& target : {target::HostCpu(), target::NvidiaGpu(90).value(),
                                       target::EmulatedGpu(80).value(), target::Reference()}) {
    files.push_back(Saved(CompileToSave(EveryKindOfStep(), target)));
  }
  return files;
}

TEST(SavedFormat, DamageIsNoticed) {
  std::mt19937 random(3);
  const std::vector<std::string> files = FilesOfEveryTarget();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10000; ++i) {
    const std::string& bytes = files[static_cast<size_t>(i) % files.size()];
    const std::string mutated = Mutated(bytes, random);
    if (mutated == bytes) continue;
    const Code code = Problem(mutated).code();
    ASSERT_TRUE(code == Code::kInvalidArgument || code == Code::kFailedPrecondition) << i;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

// The file with another description, sums and sizes mended.
std::string WithDescription(const OpenContainer& file, std::string description) {
  program::NewContainer changed{.description = std::move(description)};
  if (!file.code.empty()) changed.code = {file.code};
  if (!file.constants.empty()) changed.constants = {file.constants};
  std::string bytes;
  (void)program::WriteContainer(changed, [&](std::string_view part) {
    bytes += part;
    return OkStatus();
  });
  return bytes;
}

// Checksums do not save the reader here: anything must be read or refused. What is accepted can be
// saved, and comes back the same.
Code ReadOrRefused(const std::string& bytes) {
  auto restored = program::Restore(bytes);
  if (restored.ok()) {
    const std::string again = Saved(*restored);
    EXPECT_EQ(Saved(program::Restore(again).value()), again);
  }
  return restored.status().code();
}

TEST(SavedFormat, AnyDescriptionIsReadOrRefused) {
  std::mt19937 random(4);
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& bytes : FilesOfEveryTarget()) {
    const OpenContainer file = program::ReadContainer(bytes).value();
    EXPECT_EQ(WithDescription(file, std::string(file.description)), bytes);
    std::map<Code, int> codes;
    for (int i = 0; i < 2000; ++i) {
      ++codes[ReadOrRefused(WithDescription(file, Mutated(std::string(file.description), random)))];
    }
    EXPECT_GT(codes[Code::kOk], 10);
    EXPECT_GT(codes[Code::kInvalidArgument], 1000);
    EXPECT_EQ(codes[Code::kOk] + codes[Code::kInvalidArgument], 2000);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(120));
}

TEST(SavedFormat, AnySealedFileIsReadOrRefused) {
  std::mt19937 random(5);
  std::map<Code, int> codes;
  const std::string bytes = Saved(EveryMember());
  for (int i = 0; i < 10000; ++i) {
    // Half of them in the header.
    std::string mutated = i % 2 == 0 ? Mutated(bytes, random)
                                     : Mutated(bytes.substr(0, 128), random) + bytes.substr(128);
    program::SealContainer(mutated);
    ++codes[ReadOrRefused(mutated)];
  }
  EXPECT_GT(codes[Code::kOk], 100);
  EXPECT_EQ(codes[Code::kOk] + codes[Code::kInvalidArgument] + codes[Code::kFailedPrecondition],
            10000);
}

// A device takes what is accepted, or refuses it: code and constants are as they were.
TEST(SavedFormat, AnyAcceptedProgramIsLoadedOrRefused) {
  std::mt19937 random(6);
  runtime::Allocator allocator;
  device::ReferenceDevice device("REFERENCE:0", allocator);
  const std::string bytes = Saved(CompileToSave(EveryKindOfStep(), device.target()));
  const OpenContainer file = program::ReadContainer(bytes).value();
  int loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    auto artefact =
        program::Restore(WithDescription(file, Mutated(std::string(file.description), random)));
    if (artefact.ok() && device.Load(*std::move(artefact)).ok()) ++loaded;
  }
  EXPECT_GT(loaded, 10);
}

}  // namespace
}  // namespace kiln::testing
