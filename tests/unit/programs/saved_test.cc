// Programs as bytes and files: the same program comes back, the same bytes each time, and constants
// stay in the file.
#include "program/saved.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "device/cpu/device.h"
#include "device/emulated/machine.h"
#include "device/gpu/device.h"
#include "device/reference/device.h"
#include "ir/text.h"
#include "support/folder.h"
#include "support/hlo.h"
#include "support/literal.h"
#include "support/saved.h"

namespace kiln::testing {
namespace {

using program::Artefact;

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

  std::shared_ptr<device::GpuMachine> Emulated(int sm) {
    return device::EmulatedMachine::Create(target::EmulatedGpu(sm).value(), pool_, allocator_)
        .value();
  }

  runtime::Allocator allocator_;
  runtime::ThreadPool pool_{2};
  device::CpuDevice cpu_{"CPU:0", allocator_, pool_};
  device::GpuDevice gpu_{"GPU:0", Emulated(80), 0};
  device::ReferenceDevice reference_{"REFERENCE:0", allocator_};
};

TEST_F(Saving, TheSameProgramOnEveryDevice) {
  const std::string text = EveryKindOfStep();
  std::vector<Literal> arguments = RandomArguments(*ir::ParseOrDie(text), 1);
  for (runtime::Device* device : devices()) {
    SCOPED_TRACE(device->name());
    const Artefact artefact = CompileToSave(text, device->target());
    auto loaded = Load(*device, artefact);
    const std::string expected = Run(*device, *loaded, arguments);
    // As it was compiled.
    const std::string compiled = Saved(artefact);
    EXPECT_EQ(compiled, Saved(CompileToSave(text, device->target())));
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

TEST_F(Saving, AGpuRunsProgramsOfOlderOnes) {
  device::GpuDevice older("GPU:1", Emulated(75), 0);
  const std::vector<Literal> arguments = RandomArguments(*ir::ParseOrDie(EveryKindOfStep()), 1);
  const std::string saved = Saved(CompileToSave(EveryKindOfStep(), older.target()));
  EXPECT_EQ(Run(gpu_, *Load(gpu_, saved), arguments), Run(older, *Load(older, saved), arguments));
}

TEST_F(Saving, WithoutTheCodeIsRefused) {
  Artefact artefact = CompileToSave(EveryKindOfStep(), cpu_.target());
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
      const std::string name = program::FingerprintOf(CompileToSave(text, target).program).value();
      EXPECT_EQ(name, program::FingerprintOf(CompileToSave(text, target).program).value());
      EXPECT_EQ(name.size(), 64u);
      names.insert(name);
    }
  }
  EXPECT_EQ(names.size(), 15u);
  // One that may overwrite its argument is another.
  Artefact donor =
      CompileToSave("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }", target::HostCpu());
  donor.program.donatable = {true};
  EXPECT_TRUE(names.insert(program::FingerprintOf(donor.program).value()).second);
}

TEST_F(Saving, ALoadComparesTargetAndFrame) {
  Artefact artefact = CompileToSave(EveryKindOfStep(), cpu_.target());
  const int version = artefact.program.frame_version++;
  // The error has all of `parts`.
  auto refuses = [&](runtime::Device& device, std::initializer_list<std::string> parts) {
    const Status status = device.Load(program::Restore(Saved(artefact)).value()).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    for (const std::string& part : parts) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  };
  refuses(cpu_, {Cat("version ", version + 1, " "), Cat("this is version ", version)});
  --artefact.program.frame_version;
  refuses(gpu_, {artefact.program.target, gpu_.target().ToString()});
  refuses(reference_, {artefact.program.target, reference_.target().ToString()});
}

class SavingFiles : public Saving {
 protected:
  const TestFolder folder_;
  const std::string path_ = folder_ / "program";
};

TEST_F(SavingFiles, AFileHasTheSameBytesAndProgram) {
  std::vector<Literal> arguments = RandomArguments(*ir::ParseOrDie(EveryKindOfStep()), 1);
  for (runtime::Device* device : devices()) {
    SCOPED_TRACE(device->name());
    auto compiled = Load(*device, CompileToSave(EveryKindOfStep(), device->target()));
    const std::string expected = Run(*device, *compiled, arguments);
    const Artefact artefact = compiled->Save().value();
    ASSERT_TRUE(program::SaveFile(artefact, path_).ok());
    EXPECT_EQ(Contents(path_), Saved(artefact));
    Artefact restored = program::RestoreFile(path_).value();
    restored.keeps_code = true;
    auto loaded = Load(*device, std::move(restored));
    // Another file takes its place, and then none is there.
    ASSERT_TRUE(
        program::SaveFile(
            CompileToSave("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", device->target()),
            path_)
            .ok());
    EXPECT_EQ(Run(*device, *loaded, arguments), expected);
    std::filesystem::remove(path_);
    EXPECT_EQ(Run(*device, *loaded, arguments), expected);
    EXPECT_EQ(Saved(loaded->Save().value()), Saved(artefact));
    EXPECT_EQ(loaded->constant_bytes(), compiled->constant_bytes());
  }
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(SavingFiles, ConstantsStayInTheFile) {
  auto compiled = Load(cpu_, CompileToSave(EveryKindOfStep(), cpu_.target()));
  // The packed weights.
  ASSERT_GT(compiled->constant_bytes(), 96 * 96 * 4);
  ASSERT_TRUE(program::SaveFile(compiled->Save().value(), path_).ok());
  Artefact restored = program::RestoreFile(path_).value();
  int64_t bytes = 0;
  for (const auto& constant : restored.program.constants) {
    if (!constant || constant->byte_size() == 0) continue;
    EXPECT_TRUE(constant->is_borrowed());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(constant->data()) % program::kAlignment, 0u);
    bytes += constant->byte_size();
  }
  EXPECT_EQ(bytes, compiled->constant_bytes());
  const int64_t live = allocator_.live_bytes();
  auto loaded = Load(cpu_, std::move(restored));
  EXPECT_EQ(allocator_.live_bytes(), live);
  // As bytes they are copied.
  auto copied = Load(cpu_, Contents(path_));
  EXPECT_GE(allocator_.live_bytes(), live + bytes);
}

TEST_F(SavingFiles, BytesWithAnOwnerAreBorrowedWhereTheyAreAligned) {
  auto compiled = Load(cpu_, CompileToSave(EveryKindOfStep(), cpu_.target()));
  const std::string bytes = Saved(compiled->Save().value());
  for (size_t shift : {0, 8}) {
    auto owner = std::make_shared<std::vector<std::byte>>(bytes.size() + 128);
    const size_t misaligned = reinterpret_cast<uintptr_t>(owner->data()) % 64;
    char* data = reinterpret_cast<char*>(owner->data()) + 64 - misaligned + shift;
    std::memcpy(data, bytes.data(), bytes.size());
    const std::weak_ptr<const void> kept = owner;
    auto artefact = program::Restore({data, bytes.size()}, std::move(owner));
    ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
    EXPECT_EQ(kept.expired(), shift != 0);
    EXPECT_EQ(Saved(*artefact), bytes);
    artefact = Artefact();
    EXPECT_TRUE(kept.expired());
  }
}

TEST_F(SavingFiles, ErrorsNameThePath) {
  auto fails = [&](const Status& status, Code code, const std::string& text) {
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(folder_.path().string()), std::string::npos)
        << status.message();
  };
  auto restore = [&](const std::string& path) { return program::RestoreFile(path).status(); };
  const Artefact artefact = CompileToSave(EveryKindOfStep(), cpu_.target());
  fails(restore(path_), Code::kNotFound, "No such file");
  fails(restore(folder_.path()), Code::kInvalidArgument, "no regular file");
  Put(path_, "");
  fails(restore(path_), Code::kInvalidArgument, "empty");
  Put(path_, "HloModule m");
  fails(restore(path_), Code::kInvalidArgument, "no saved program");
  Put(path_, Saved(artefact).substr(0, 5000));
  fails(restore(path_), Code::kInvalidArgument, "5000 of ");
  fails(program::SaveFile(artefact, folder_.path()), Code::kInvalidArgument, "no regular file");
  fails(program::SaveFile(artefact, folder_ / "none/file"), Code::kNotFound, "No such file");
  EXPECT_EQ(Contents(path_).size(), 5000u);
}

}  // namespace
}  // namespace kiln::testing
