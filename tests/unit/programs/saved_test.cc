// Programs as bytes: the same program comes back, the same bytes each time, and nothing but an
// error of bytes that are damaged.
#include "program/saved.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "device/cpu/device.h"
#include "device/emulated/machine.h"
#include "device/gpu/device.h"
#include "device/reference/device.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

using program::Artefact;

// A loop, a conditional, a sort, calls of the library, constants large and small, packed weights,
// an alias, a layout, a tuple.
std::string Text() {
  std::string weights;
  for (int i = 0; i < 96; ++i) {
    weights += i > 0 ? ",{" : "{";
    for (int j = 0; j < 96; ++j) weights += Cat(j > 0 ? "," : "", i * 31 % 17 - j % 13);
    weights += "}";
  }
  return Cat(R"(HloModule all, input_output_alias={ {0}: (0, {}, may-alias) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
condition { s = (s32[], f32[32,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[32,96] get-tuple-element(s), index=1
  zero = f32[] constant(0)
  sum = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  limit = f32[] constant(1e30)
  small = pred[] compare(sum, limit), direction=LT
  n = s32[] constant(3)
  early = pred[] compare(i, n), direction=LT
  ROOT c = pred[] and(small, early) }
body { s = (s32[], f32[32,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[32,96] get-tuple-element(s), index=1
  w = f32[96,96] constant({)",
             weights, R"(})
  d = f32[32,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[32,96] tanh(d)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[32,96]) tuple(j, t) }
yes { x = f32[32,96] parameter(0)
  ROOT r = f32[32,96] negate(x) }
no { x = f32[32,96] parameter(0)
  ROOT r = f32[32,96] exponential(x) }
ENTRY e { x = f32[32,96] parameter(0)
  p = pred[] parameter(1)
  m = f32[8,8] parameter(2)
  i = s32[] constant(0)
  s = (s32[], f32[32,96]) tuple(i, x)
  l = (s32[], f32[32,96]) while(s), condition=condition, body=body
  y = f32[32,96] get-tuple-element(l), index=1
  z = f32[32,96] conditional(p, y, y), true_computation=yes, false_computation=no
  o = f32[32,96] sort(z), dimensions={1}, to_apply=less
  h = f32[8,8] cholesky(m), lower=true
  t = f32[96,32]{0,1} transpose(o), dimensions={1,0}
  ROOT r = (f32[32,96], f32[8,8], f32[96,32]{0,1}) tuple(z, h, t) }
)");
}

Artefact Compile(const std::string& text, const target::Target& target) {
  auto artefact = compiler::Compile(ir::ParseOrDie(text), target, {});
  EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
  artefact->keeps_code = true;
  return *std::move(artefact);
}

std::string Saved(const Artefact& artefact) {
  auto bytes = program::Save(artefact);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return *std::move(bytes);
}

class Saving : public ::testing::Test {
 protected:
  std::vector<runtime::Device*> devices() { return {&cpu_, &gpu_, &reference_}; }

  std::unique_ptr<runtime::LoadedExecutable> Load(runtime::Device& device, Artefact artefact) {
    auto loaded = device.Load(std::move(artefact));
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return *std::move(loaded);
  }
  // From the bytes of a saved program.
  std::unique_ptr<runtime::LoadedExecutable> Load(runtime::Device& device, std::string_view bytes) {
    auto artefact = program::Restore(bytes);
    EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
    artefact->keeps_code = true;
    return Load(device, *std::move(artefact));
  }

  // The results as bytes.
  std::string Run(runtime::Device& device, runtime::LoadedExecutable& executable,
                  const std::vector<Literal>& arguments) {
    std::vector<std::byte*> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    std::string results;
    for (const Literal& literal : arguments) {
      memory.push_back(device.Allocate(literal.byte_size()).value());
      EXPECT_TRUE(device.CopyFromHost(memory.back(), literal.data(), literal.byte_size()).ok());
      in.push_back(memory.back());
    }
    for (const Shape& shape : executable.program().signature.results) {
      memory.push_back(device.Allocate(shape.byte_size()).value());
      out.push_back(memory.back());
    }
    const Status status = executable.Run(in, out);
    EXPECT_TRUE(status.ok()) << status.ToString();
    const auto& shapes = executable.program().signature.results;
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::string bytes(static_cast<size_t>(shapes[i].byte_size()), 0);
      EXPECT_TRUE(
          device.CopyToHost(bytes.data(), static_cast<std::byte*>(out[i]), shapes[i].byte_size())
              .ok());
      results += bytes;
    }
    EXPECT_TRUE(device.Synchronise().ok());
    for (size_t i = 0; i < memory.size(); ++i) {
      device.Deallocate(memory[i], i < arguments.size() ? arguments[i].byte_size()
                                                        : shapes[i - arguments.size()].byte_size());
    }
    return results;
  }

  std::shared_ptr<device::GpuMachine> Emulated() {
    return device::EmulatedMachine::Create(target::EmulatedGpu(80).value(), pool_, allocator_)
        .value();
  }

  runtime::Allocator allocator_;
  runtime::ThreadPool pool_{2};
  device::CpuDevice cpu_{"CPU:0", allocator_, pool_};
  device::GpuDevice gpu_{"GPU:0", Emulated(), 0};
  device::ReferenceDevice reference_{"REFERENCE:0", allocator_};
};

TEST_F(Saving, TheSameProgramOnEveryDevice) {
  const std::string text = Text();
  std::vector<Literal> arguments = RandomArguments(*ir::ParseOrDie(text), 1);
  for (runtime::Device* device : devices()) {
    SCOPED_TRACE(device->name());
    const Artefact artefact = Compile(text, device->target());
    auto loaded = Load(*device, artefact);
    const std::string expected = Run(*device, *loaded, arguments);
    // As it was compiled.
    const std::string compiled = Saved(artefact);
    EXPECT_EQ(compiled, Saved(Compile(text, device->target())));
    EXPECT_EQ(Run(*device, *Load(*device, compiled), arguments), expected);
    // As it was loaded, with its prologue run; and what that was loaded of once more.
    const std::string once = Saved(loaded->Save().value());
    EXPECT_EQ(once, Saved(Load(*device, artefact)->Save().value()));
    auto again = Load(*device, once);
    EXPECT_TRUE(again->program().prologue.empty());
    EXPECT_EQ(Run(*device, *again, arguments), expected);
    EXPECT_EQ(Saved(again->Save().value()), once);
    EXPECT_EQ(again->constant_bytes(), loaded->constant_bytes());
    EXPECT_EQ(program::FingerprintOf(again->program()).value(),
              program::FingerprintOf(artefact.program).value());
  }
}

TEST_F(Saving, WithoutTheCodeIsRefused) {
  Artefact artefact = Compile(Text(), cpu_.target());
  artefact.keeps_code = false;
  const auto saved = Load(cpu_, artefact)->Save();
  EXPECT_EQ(saved.status().code(), Code::kFailedPrecondition);
}

TEST_F(Saving, FingerprintsTellProgramsApart) {
  std::set<std::string> names;
  for (const target::Target& target :
       {target::HostCpu(), target::HostCpuWithVectors(16), target::NvidiaGpu(80).value(),
        target::NvidiaGpu(90).value(), target::Reference()}) {
    for (const char* text : {"HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }",
                             "HloModule m\nENTRY e { ROOT x = s32[3] parameter(0) }",
                             "HloModule n\nENTRY e { ROOT x = s32[3] parameter(0) }"}) {
      const std::string name = program::FingerprintOf(Compile(text, target).program).value();
      EXPECT_EQ(name, program::FingerprintOf(Compile(text, target).program).value());
      EXPECT_EQ(name.size(), 64u);
      names.insert(name);
    }
  }
  EXPECT_EQ(names.size(), 15u);
}

// What is told of damaged bytes.
Status Problem(std::string_view bytes) { return program::Restore(bytes).status(); }

TEST_F(Saving, TellsWhatIsWrong) {
  const std::string bytes = Saved(Compile(Text(), cpu_.target()));
  auto with = [&](size_t at, char byte) {
    std::string other = bytes;
    other[at] = byte;
    return Problem(other);
  };
  EXPECT_EQ(Problem("").code(), Code::kInvalidArgument);
  EXPECT_NE(Problem("HloModule m, a text of more than forty characters")
                .ToString()
                .find("no saved program"),
            std::string::npos);
  EXPECT_EQ(with(8, 9).code(), Code::kFailedPrecondition);
  EXPECT_NE(with(8, 9).ToString().find("version 9"), std::string::npos);
  EXPECT_NE(with(bytes.size() - 1, 1).ToString().find("checksum"), std::string::npos);
  EXPECT_NE(Problem(bytes.substr(0, 1000)).ToString().find("1000 of "), std::string::npos);
  EXPECT_NE(Problem(bytes + "x").ToString().find(Cat(bytes.size() + 1, " of ")), std::string::npos);
  // The build is the first text of the description: its length, then its digits.
  std::string other = bytes;
  other[41] = other[41] == '0' ? '1' : '0';
  program::Seal(other);
  EXPECT_EQ(Problem(other).code(), Code::kFailedPrecondition);
  EXPECT_NE(Problem(other).ToString().find("another build"), std::string::npos);
}

TEST_F(Saving, ALoadComparesTargetAndFrame) {
  Artefact artefact = Compile(Text(), cpu_.target());
  artefact.program.frame_version += 1;
  auto loaded = cpu_.Load(program::Restore(Saved(artefact)).value());
  EXPECT_EQ(loaded.status().code(), Code::kFailedPrecondition);
  loaded = gpu_.Load(program::Restore(Saved(Compile(Text(), cpu_.target()))).value());
  EXPECT_EQ(loaded.status().code(), Code::kFailedPrecondition);
}

std::string Mutated(std::string bytes, std::mt19937& random) {
  const size_t size = bytes.size();
  switch (random() % 4) {
    case 0:
      return bytes.substr(0, random() % size);
    case 1:
      bytes.insert(random() % size, 1 + random() % 9, static_cast<char>(random()));
      return bytes;
    case 2:
      bytes.erase(random() % size, 1 + random() % 9);
      return bytes;
    default:
      for (size_t n = 1 + random() % 3; n > 0; --n) {
        bytes[random() % size] ^= static_cast<char>(1 << random() % 8);
      }
      return bytes;
  }
}

TEST_F(Saving, DamageIsNoticed) {
  std::mt19937 random(3);
  std::vector<std::string> files;
  for (runtime::Device* device : devices()) {
    files.push_back(Saved(Compile(Text(), device->target())));
  }
  for (int i = 0; i < 10000; ++i) {
    const std::string& bytes = files[static_cast<size_t>(i) % files.size()];
    const std::string mutated = Mutated(bytes, random);
    if (mutated == bytes) continue;
    const Code code = Problem(mutated).code();
    ASSERT_TRUE(code == Code::kInvalidArgument || code == Code::kFailedPrecondition) << i;
  }
}

// The checksum does not save the reader here: any description must be read or refused.
TEST_F(Saving, AnyDescriptionIsReadOrRefused) {
  std::mt19937 random(4);
  constexpr char kSmall[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8,8]{0,1} parameter(0)
  z = f32[] constant(2)
  r = f32[8] reduce(x, z), dimensions={0}, to_apply=add
  h = f32[8,8] cholesky(x), lower=true
  p = (f32[8,8]) tuple(h)
  ROOT t = (f32[8], (f32[8,8])) tuple(r, p) })";
  std::map<Code, int> codes;
  for (const char* text : {kSmall, Text().c_str()}) {
    Artefact artefact = Compile(text == kSmall ? kSmall : Text(), cpu_.target());
    // The description alone is changed, so that every change counts.
    artefact.code.clear();
    for (auto& constant : artefact.program.constants) {
      if (constant && constant->byte_size() > 64) constant = nullptr;
    }
    const std::string bytes = Saved(artefact);
    for (int i = 0; i < 10000; ++i) {
      std::string mutated = Mutated(bytes, random);
      program::Seal(mutated);
      auto restored = program::Restore(mutated);
      const Code code = restored.status().code();
      ++codes[code];
      ASSERT_TRUE(code == Code::kOk || code == Code::kInvalidArgument ||
                  code == Code::kFailedPrecondition)
          << restored.status().ToString();
      // What is accepted can be saved, and comes back the same.
      if (restored.ok()) {
        const std::string again = Saved(*restored);
        EXPECT_EQ(Saved(program::Restore(again).value()), again);
      }
    }
  }
  EXPECT_GT(codes[Code::kOk], 100);
  EXPECT_GT(codes[Code::kInvalidArgument], 5000);
}

}  // namespace
}  // namespace kiln::testing
