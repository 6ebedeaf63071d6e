// Code on a CUDA machine: what the driver's assembler says, and code that is kept.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/disk_cache.h"
#include "device/gpu/device.h"
#include "program/saved.h"
#include "support/cuda_standin.h"
#include "support/saved.h"

namespace kiln::device::cuda {
namespace {

namespace fs = std::filesystem;

class CudaCode : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    folder_ = fs::path(::testing::TempDir()) / Cat("kiln_cuda_code_", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override {
    CudaTest::TearDown();
    fs::remove_all(folder_);
  }
  std::unique_ptr<CudaMachine> MachineWithFolder() {
    CudaOptions options = Options();
    options.cache = &cache_.emplace(folder_.string(), DiskCache::kDefaultLimitBytes,
                                    [this](std::string_view note) { notes_.emplace_back(note); });
    return Machine(options);
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == DiskCache::kEntrySuffix) files.push_back(entry.path());
    }
    return files;
  }
  // Loads the code, which must work, and says how it came.
  CodeCache::Counts Load(CudaMachine& machine, const std::string& ptx = kPtx) {
    auto module = machine.Load(ptx);
    EXPECT_TRUE(module.ok()) << module.status().ToString();
    if (module.ok()) {
      auto kernel = (*module)->Find("copy");
      EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
      EXPECT_GT((*module)->code_bytes(), 0);
    }
    return machine.code_cache().counts();
  }
  // The same in a machine of its own.
  CodeCache::Counts LoadAnew(const std::string& ptx = kPtx) {
    auto machine = MachineWithFolder();
    if (machine == nullptr) return {};
    return Load(*machine, ptx);
  }

  fs::path folder_;
  std::optional<DiskCache> cache_;
  std::vector<std::string> notes_;
};

TEST_F(CudaCode, WhatTheAssemblerSays) {
  for (bool with_folder : {false, true}) {
    auto machine = with_folder ? MachineWithFolder() : Machine();
    ASSERT_NE(machine, nullptr);
    auto module = machine->Load("no code");
    ASSERT_FALSE(module.ok());
    const std::string text(module.status().message());
    EXPECT_EQ(module.status().code(), Code::kInternal);
    for (const char* part : {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed",
                             "the driver's assembler says", "Missing .version directive"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    if (!with_folder) EXPECT_NE(text.find("gave up"), std::string::npos) << text;
    EXPECT_EQ(machine->Load(".version 9.0\n.target sm_80\n").status().code(),
              Code::kFailedPrecondition);
    EXPECT_EQ(machine->Load(".version 7.0\n.target sm_90\n").status().code(), Code::kInternal);
  }
}

TEST_F(CudaCode, TheSameCodeIsLoadedOnce) {
  auto machine = Machine();
  ASSERT_NE(machine, nullptr);
  auto first = machine->Load(kPtx), second = machine->Load(kPtx);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*(*first)->Find("copy"), *(*second)->Find("copy"));
  EXPECT_EQ(Count("modules"), 1);
  auto other = machine->Load(Cat(kPtx, "// other"));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(Count("modules"), 2);
  auto counts = machine->code_cache().counts();
  EXPECT_EQ(counts.assembled, 2);
  EXPECT_EQ(counts.in_memory, 1);
  // Held by nobody, it goes.
  *first = nullptr;
  EXPECT_EQ(Count("modules"), 2);
  *second = nullptr;
  EXPECT_EQ(Count("modules"), 1);
  Load(*machine);
  EXPECT_EQ(machine->code_cache().counts().assembled, 3);
}

TEST_F(CudaCode, IsFoundInTheFolder) {
  EXPECT_EQ(LoadAnew().assembled, 1);
  ASSERT_EQ(Files().size(), 1u);
  const int64_t links = Count("cuLinkCreate_v2");
  const auto counts = LoadAnew();
  EXPECT_EQ(counts.from_disk, 1);
  EXPECT_EQ(counts.assembled, 0);
  EXPECT_EQ(Count("cuLinkCreate_v2"), links);
  // Another text, driver or device is another file.
  EXPECT_EQ(LoadAnew(Cat(kPtx, "// other")).assembled, 1);
  EXPECT_EQ(Files().size(), 2u);
  Configure("driver_version=12080");
  EXPECT_EQ(LoadAnew().assembled, 1);
  EXPECT_EQ(Files().size(), 3u);
  Configure("sm=89");
  EXPECT_EQ(LoadAnew().assembled, 1);
  EXPECT_EQ(Files().size(), 4u);
}

TEST_F(CudaCode, BrokenFilesAreReplaced) {
  ASSERT_EQ(LoadAnew().assembled, 1);
  const fs::path path = Files().at(0);
  std::string whole;
  {
    std::ifstream file(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  auto change = [&](size_t at) {
    std::string text = whole;
    text[at] ^= 1;
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("short"), whole.substr(0, whole.size() - 1), whole + "x",
        change(0), change(10), change(50), change(4096), change(4096 + 32),
        change(whole.size() - 1)}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    EXPECT_EQ(LoadAnew().assembled, 1);
    EXPECT_EQ(LoadAnew().from_disk, 1);
    EXPECT_EQ(Files().size(), 1u);
  }
}

// What another machine has assembled, and saved beside the PTX.
TEST_F(CudaCode, AssembledCodeIsTakenWhereTheDriverTakesIt) {
  auto machine = Machine();
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(machine->architecture(), Cat("sm_", machine->target().gpu.sm));
  const std::string image = machine->Assemble(kPtx).value();
  const int64_t links = Count("cuLinkCreate_v2");
  for (bool with_folder : {false, true}) {
    auto other = with_folder ? MachineWithFolder() : Machine();
    auto module = other->Load(kPtx, image);
    ASSERT_TRUE(module.ok()) << module.status().ToString();
    EXPECT_TRUE((*module)->Find("copy").ok());
    EXPECT_EQ(other->code_cache().counts().given, 1);
    EXPECT_EQ(Count("cuLinkCreate_v2"), links);
    // The same code as without it.
    EXPECT_EQ(Load(*other).in_memory, 1);
  }
  // Otherwise the PTX is.
  auto other = Machine();
  ASSERT_TRUE(other
                  ->Load(kPtx,
                         "\x7f"
                         "ELF of something else")
                  .ok());
  EXPECT_EQ(other->code_cache().counts().given, 0);
  EXPECT_EQ(other->code_cache().counts().assembled, 1);
}

TEST_F(CudaCode, AssembledCodeIsFoundInTheFolder) {
  auto machine = MachineWithFolder();
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(Load(*machine).assembled, 1);
  const int64_t links = Count("cuLinkCreate_v2");
  EXPECT_FALSE(machine->Assemble(kPtx).value().empty());
  EXPECT_EQ(Count("cuLinkCreate_v2"), links);
  EXPECT_FALSE(machine->Assemble("no code").ok());
}

// Programs are saved with the code that the device has assembled.
TEST_F(CudaCode, ProgramsAreSavedWithAssembledCode) {
  constexpr char kText[] = "HloModule m\nENTRY e { x = f32[8] parameter(0)\nROOT y = tanh(x) }";
  auto saved_by = [&](GpuDevice& device, program::Artefact artefact) {
    artefact.keeps_code = true;
    auto loaded = device.Load(std::move(artefact));
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return (*loaded)->Save().value();
  };
  auto counts_of = [](GpuDevice& device) {
    return static_cast<CudaMachine&>(device.machine()).code_cache().counts();
  };
  GpuDevice device("GPU:0", Machine(), 0);
  const program::Artefact saved = saved_by(device, testing::CompileToSave(kText, device.target()));
  ASSERT_TRUE(saved.machine_code.has_value());
  EXPECT_EQ(saved.machine_code->architecture, device.machine().architecture());
  EXPECT_EQ(saved.machine_code->images.size(), saved.code.size());
  const std::string bytes = testing::Saved(saved);

  GpuDevice same("GPU:0", Machine(), 0);
  EXPECT_EQ(testing::Saved(saved_by(same, program::Restore(bytes).value())), bytes);
  EXPECT_EQ(counts_of(same).given, std::ssize(saved.code));
  // Of another architecture, or of a driver that refuses it, it is not taken.
  program::Artefact other = program::Restore(bytes).value();
  other.machine_code->architecture = "sm_1";
  GpuDevice another("GPU:0", Machine(), 0);
  EXPECT_EQ(testing::Saved(saved_by(another, std::move(other))), bytes);
  EXPECT_EQ(counts_of(another).given, 0);
  // Without an assembler the PTX alone is saved.
  Fail("cuLinkCreate_v2", 1, 100, Error::kNotSupported);
  std::vector<std::string> notes;
  GpuDevice without("GPU:0", Machine(), 0);
  without.set_on_note([&](std::string_view note) { notes.emplace_back(note); });
  EXPECT_FALSE(saved_by(without, program::Restore(bytes).value()).machine_code.has_value());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("saved without assembled code"), std::string::npos) << notes[0];
}

// A file that is whole, whose code this driver does not take all the same.
TEST_F(CudaCode, CodeThatTheDriverRefusesIsReplaced) {
  ASSERT_EQ(LoadAnew().assembled, 1);
  Fail("cuModuleLoadDataEx", 1, 1, Error::kNoBinaryForGpu);
  EXPECT_EQ(LoadAnew().assembled, 1);
  EXPECT_EQ(LoadAnew().from_disk, 1);
}

TEST_F(CudaCode, AFolderThatCannotBeWrittenIsNoError) {
  // Nobody makes a folder in a file, whatever his rights.
  std::ofstream(folder_.string()) << "a file";
  auto machine = MachineWithFolder();
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(Load(*machine).assembled, 1);
  EXPECT_EQ(Load(*machine).assembled, 2);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find(folder_.string()), std::string::npos) << notes_[0];
  EXPECT_EQ(cache_->counts().failed, 2);
}

}  // namespace
}  // namespace kiln::device::cuda
