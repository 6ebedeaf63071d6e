// What was measured of libraries is kept: in memory and in a file that others read and write, and
// that may be broken.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "device/gpu/autotune_results.h"

namespace kiln::device {
namespace {

using Choice = AutotuneResult;

class GpuLibraryChoices : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = Cat(::testing::TempDir(), "kiln_library_choices_", getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  AutotuneResults New() { return AutotuneResults(GpuLibraryUse::kAuto, folder_); }
  std::string Path() const { return Cat(folder_, "/", AutotuneResults::kFileName); }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(Path()).rdbuf();
    return text.str();
  }
  void PutText(const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(Path()) << text;
  }

  static std::string Key(int number) {
    return AutotuneResults::KeyOf("GPU", "CUDA 12.4", "cuBLASLt 12.4.5", Cat("gemm ", number));
  }

  std::string folder_;
};

TEST_F(GpuLibraryChoices, InMemory) {
  AutotuneResults choices(GpuLibraryUse::kAuto, "");
  EXPECT_FALSE(choices.Find(Key(1)).has_value());
  EXPECT_TRUE(choices.Add(Key(1), {true, 3, 2}).library);
  // The first one is followed.
  EXPECT_TRUE(choices.Add(Key(1), {false, 2, 3}).library);
  ASSERT_TRUE(choices.Find(Key(1)).has_value());
  EXPECT_EQ(choices.Find(Key(1))->our_microseconds, 3);
  EXPECT_TRUE(choices.TakeNotes().empty());
}

TEST_F(GpuLibraryChoices, OneLineForEach) {
  {
    AutotuneResults choices = New();
    choices.Add(Key(1), {true, 812.44, 701.9});
    choices.Add(Key(2), {false, 5, 61});
    EXPECT_TRUE(choices.TakeNotes().empty());
  }
  EXPECT_EQ(Text(),
            "# Kiln: which gemms go by a library, as it was measured.\n"
            "GPU | CUDA 12.4 | cuBLASLt 12.4.5 | gemm 1 | ours 812.4 us | library 701.9 us | "
            "library\n"
            "GPU | CUDA 12.4 | cuBLASLt 12.4.5 | gemm 2 | ours 5.0 us | library 61.0 us | "
            "ours\n");
  AutotuneResults again = New();
  ASSERT_TRUE(again.Find(Key(1)).has_value());
  EXPECT_TRUE(again.Find(Key(1))->library);
  EXPECT_EQ(again.Find(Key(1))->our_microseconds, 812.4);
  EXPECT_EQ(again.Find(Key(1))->library_microseconds, 701.9);
  ASSERT_TRUE(again.Find(Key(2)).has_value());
  EXPECT_FALSE(again.Find(Key(2))->library);
  EXPECT_FALSE(again.Find(Key(3)).has_value());
  // Nothing else is left in the folder.
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(GpuLibraryChoices, NamesThatWouldBreakALine) {
  const std::string key = AutotuneResults::KeyOf("# G | P\nU", "d", "l", "p");
  New().Add(key, {true, 2, 1});
  AutotuneResults again = New();
  EXPECT_TRUE(again.Find(key).has_value()) << Text();
  EXPECT_TRUE(again.TakeNotes().empty());
}

TEST_F(GpuLibraryChoices, OtherProcessesGoFirst) {
  AutotuneResults one = New(), other = New();
  EXPECT_FALSE(one.Find(Key(1)).has_value());
  EXPECT_FALSE(other.Find(Key(1)).has_value());
  EXPECT_TRUE(one.Add(Key(1), {true, 2, 1}).library);
  // What it measured itself says otherwise.
  EXPECT_TRUE(other.Add(Key(1), {false, 1, 2}).library);
  EXPECT_FALSE(other.Add(Key(2), {false, 1, 2}).library);
  EXPECT_FALSE(one.Add(Key(2), {true, 2, 1}).library);
  EXPECT_TRUE(New().Find(Key(1))->library);
  EXPECT_FALSE(New().Find(Key(2))->library);
}

TEST_F(GpuLibraryChoices, SeveralAtOnceLoseNothing) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      AutotuneResults choices = New();
      for (int i = 0; i < 20; ++i) choices.Add(Key(100 * t + i), {true, 2, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  AutotuneResults all = New();
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(all.Find(Key(100 * t + i)).has_value()) << t << i;
  }
}

TEST_F(GpuLibraryChoices, LinesThatAreNotWholeArePassedOver) {
  const std::string good = Cat(Key(1), " | ours 2.0 us | library 1.0 us | library");
  std::vector<std::string> bad = {
      "rubbish",
      Cat(Key(2), " | ours 2.0 us | library 1.0 us"),
      Cat(Key(2), " | ours 2.0 us | library 1.0 us | perhaps"),
      Cat(Key(2), " | ours 2.0 us | library 1.0 us | library | library"),
      Cat(Key(2), " | ours -2.0 us | library 1.0 us | library"),
      Cat(Key(2), " | ours nan us | library 1.0 us | library"),
      Cat(Key(2), " | ours 2.0 s | library 1.0 us | library"),
      Cat(Key(2), " | ours us | library 1.0 us | library"),
      Cat(Key(2), " | library 2.0 us | ours 1.0 us | library"),
      Cat(" |  | ", Key(2), " | ours 2.0 us | library 1.0 us | library"),
      std::string("\0\xff\x01", 3)};
  // Every part of the line, as an interrupted write could leave it.
  const std::string line = Cat(Key(2), " | ours 2.0 us | library 1.0 us | library");
  for (size_t length = 1; length < line.size(); ++length) bad.push_back(line.substr(0, length));
  for (const std::string& text : bad) {
    SCOPED_TRACE(text);
    PutText(Cat("# a comment\n\n", text, "\n", good, "\n"));
    AutotuneResults choices = New();
    EXPECT_TRUE(choices.Find(Key(1)).has_value());
    EXPECT_FALSE(choices.Find(Key(2)).has_value());
    const std::vector<std::string> notes = choices.TakeNotes();
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("in lines 3"), std::string::npos) << notes[0];
    // It is noted once, and the next to write leaves a whole file.
    choices.Add(Key(2), {false, 1, 2});
    EXPECT_TRUE(choices.TakeNotes().empty());
    AutotuneResults again = New();
    EXPECT_TRUE(again.Find(Key(1)).has_value());
    EXPECT_TRUE(again.Find(Key(2)).has_value());
    EXPECT_TRUE(again.TakeNotes().empty());
  }
}

TEST_F(GpuLibraryChoices, AFolderThatCannotBeMade) {
  std::ofstream(folder_) << "a file";
  AutotuneResults choices = New();
  EXPECT_TRUE(choices.Add(Key(1), {true, 2, 1}).library);
  EXPECT_TRUE(choices.Find(Key(1)).has_value());
  const std::vector<std::string> notes = choices.TakeNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("is not kept in"), std::string::npos) << notes[0];
  choices.Add(Key(2), {true, 2, 1});
  EXPECT_TRUE(choices.TakeNotes().empty());
}

}  // namespace
}  // namespace kiln::device
