// Loops and conditionals, compiled: what the passes and the buffer assignment made of them gives
// the evaluator's bits.

#include <gtest/gtest.h>

#include <cstring>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "random/fodder.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::BitDifference;
using testing::ControlFodder;
using testing::RandomArguments;

// The leaves of a literal of row-major arrays.
void CollectArrays(Literal& literal, std::vector<Literal*>& arrays) {
  if (!literal.shape().is_tuple()) {
    arrays.push_back(&literal);
    return;
  }
  for (Literal& element : literal.elements()) CollectArrays(element, arrays);
}

Result<Literal> RunCompiled(const ir::Module& module, std::vector<Literal> arguments, bool fuse) {
  static runtime::Allocator allocator;
  static runtime::ThreadPool pool(2);
  compiler::Options options;
  options.verify = true;
  options.fuse = fuse;
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact,
                        compiler::Compile(module.Clone(), target::HostCpuWithVectors(32), options));
  auto shared = std::make_shared<const program::Artefact>(std::move(artefact));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<device::CpuExecutable> executable,
                        device::CpuExecutable::Load(*shared, allocator, pool));
  Literal result(shared->program.signature.result_shape);
  std::vector<Literal*> inputs, outputs;
  for (Literal& argument : arguments) CollectArrays(argument, inputs);
  CollectArrays(result, outputs);
  // Memory of the arrays' own, as aligned as kernels want it.
  struct Memory {
    std::byte* bytes;
    int64_t size;
  };
  std::vector<Memory> memory;
  auto make = [&](const Literal& array) -> Result<std::byte*> {
    KILN_ASSIGN_OR_RETURN(std::byte * bytes, allocator.Allocate(array.byte_size()));
    memory.push_back({bytes, array.byte_size()});
    return bytes;
  };
  std::vector<const void*> from;
  std::vector<void*> to;
  for (Literal* input : inputs) {
    KILN_ASSIGN_OR_RETURN(std::byte * bytes, make(*input));
    std::memcpy(bytes, input->data(), static_cast<size_t>(input->byte_size()));
    from.push_back(bytes);
  }
  for (Literal* output : outputs) {
    KILN_ASSIGN_OR_RETURN(std::byte * bytes, make(*output));
    to.push_back(bytes);
  }
  Status status = executable->Run(from, to);
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::memcpy(outputs[k]->data(), to[k], static_cast<size_t>(outputs[k]->byte_size()));
  }
  for (Memory& m : memory) allocator.Deallocate(m.bytes, m.size);
  KILN_RETURN_IF_ERROR(status);
  return result;
}

void RunSeeds(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    auto module = ControlFodder(seed);
    std::vector<Literal> arguments = RandomArguments(*module, seed);
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (bool fuse : {true, false}) {
      SCOPED_TRACE(Cat("seed ", static_cast<int64_t>(seed), fuse ? ", fused" : ", op by op"));
      auto actual = RunCompiled(*module, arguments, fuse);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      ASSERT_EQ(BitDifference(*expected, *actual), "") << ir::ToHloText(*module);
    }
  }
}

TEST(PassesCompiled, LoopsAndConditionals) { RunSeeds(1, 100); }

TEST(SlowPassesCompiled, LoopsAndConditionals) { RunSeeds(1000, 1500); }

KILN_LABEL(slow, "SlowPassesCompiled");

}  // namespace
}  // namespace kiln
