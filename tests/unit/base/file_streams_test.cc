// Files that are read in parts, and files that replace others.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/input_file.h"
#include "base/output_file.h"
#include "support/folder.h"

namespace kiln {
namespace {

using Names = std::vector<std::string>;

std::string TextOf(const FilePages& pages) {
  return {reinterpret_cast<const char*>(pages.bytes().data()), pages.bytes().size()};
}

Status Replace(const std::string& path, std::string_view text) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file.ok()) return file.status();
  KILN_RETURN_IF_ERROR(file->Write(text));
  return file->Commit();
}

TEST(InputFile, MapsTheRestOfAFile) {
  TestFolder folder;
  const std::string path = folder / "file";
  Put(path, "head and a tail");
  Result<InputFile> file = InputFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->remaining(), 15);
  EXPECT_EQ(*file->Read(4), "head");
  EXPECT_EQ(file->remaining(), 11);
  // What is wrong is found before anything is mapped.
  for (int64_t wrong : {int64_t{0}, int64_t{10}, int64_t{12}, INT64_MAX - 4}) {
    EXPECT_EQ(file->Rest(wrong).status().code(), Code::kInvalidArgument) << wrong;
  }
  Result<FilePages> pages = file->Rest(11);
  ASSERT_TRUE(pages.ok()) << pages.status().ToString();
  EXPECT_EQ(TextOf(*pages), " and a tail");
  // In the file's own pages.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pages->bytes().data()) % 4096, 4u);
  // They stay when the file is replaced.
  ASSERT_TRUE(Replace(path, "new").ok());
  EXPECT_EQ(TextOf(*pages), " and a tail");
  const FilePages moved = *std::move(pages);
  EXPECT_EQ(TextOf(moved), " and a tail");
}

TEST(InputFile, ReadsPipes) {
  TestFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string text(300'000, 'x');
  for (const int64_t more : {-1, 0, 1}) {
    std::thread writer([&] { Put(path, text); });
    Result<InputFile> file = InputFile::Open(path);
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(file->remaining().has_value());
    EXPECT_EQ(file->Read(100'000)->size(), 100'000u);
    Result<FilePages> pages = file->Rest(200'000 + more);
    EXPECT_EQ(pages.ok(), more == 0) << more;
    if (pages.ok()) {
      EXPECT_EQ(TextOf(*pages), text.substr(100'000));
    }
    if (!pages.ok()) {
      EXPECT_EQ(pages.status().code(), Code::kInvalidArgument);
    }
    // Lets the writer end.
    while (file->Read(1 << 16)->size() > 0) {
    }
    writer.join();
  }
}

TEST(InputFile, AWrongSizeTakesNoMemory) {
  Result<InputFile> null = InputFile::Open("/dev/null");
  ASSERT_TRUE(null.ok());
  EXPECT_EQ(*null->Read(INT64_MAX), "");
  EXPECT_TRUE(null->Rest(0).ok());
  EXPECT_EQ(null->Rest(int64_t{1} << 40).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(null->Rest(INT64_MAX).status().code(), Code::kResourceExhausted);
  // Sizes of files that the system makes up are not known before.
  Result<InputFile> status = InputFile::Open("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_FALSE(status->remaining().has_value());
  EXPECT_EQ(status->Read(5)->substr(0, 5), "Name:");
}

TEST(InputFile, ErrorsOfTheSystem) {
  TestFolder folder;
  EXPECT_EQ(InputFile::Open(folder / "none").status().code(), Code::kNotFound);
  EXPECT_EQ(InputFile::Open(std::string("a\0b", 3)).status().code(), Code::kInvalidArgument);
  Result<InputFile> itself = InputFile::Open(folder.path());
  EXPECT_EQ(itself.ok() ? itself->Read(1).status().code() : itself.status().code(),
            Code::kInvalidArgument);
  Put(folder / "secret", "x");
  ASSERT_EQ(chmod((folder / "secret").c_str(), 0), 0);
  AsNobody nobody;
  EXPECT_EQ(InputFile::Open(folder / "secret").status().code(), Code::kPermissionDenied);
}

TEST(OutputFile, ReplacesAtOnce) {
  TestFolder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(Replace(path, "old").ok());
  EXPECT_EQ(Contents(path), "old");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  {
    Result<OutputFile> file = OutputFile::Create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write("half").ok());
    EXPECT_EQ(Contents(path), "old");
  }
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(folder.Names(), Names{"file"});
  ASSERT_TRUE(Replace(path, "all of it").ok());
  EXPECT_EQ(Contents(path), "all of it");
  EXPECT_EQ(folder.Names(), Names{"file"});
  struct stat found;
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0640u);
}

TEST(OutputFile, NewFilesHaveTheProcesssMask) {
  TestFolder folder;
  const mode_t before = umask(027);
  ASSERT_TRUE(Replace(folder / "file", "x").ok());
  umask(before);
  struct stat found;
  ASSERT_EQ(stat((folder / "file").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0640u);
}

TEST(OutputFile, FollowsSymbolicLinks) {
  TestFolder folder;
  std::filesystem::create_directory(folder / "there");
  Put(folder / "there/file", "old");
  ASSERT_EQ(symlink("there/file", (folder / "link").c_str()), 0);
  ASSERT_TRUE(Replace(folder / "link", "new").ok());
  EXPECT_EQ(Contents(folder / "there/file"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST(OutputFile, RelativePaths) {
  TestFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_TRUE(Replace("file", "a").ok());
  EXPECT_TRUE(Replace("./file", "b").ok());
  std::filesystem::current_path(before);
  EXPECT_EQ(Contents(folder / "file"), "b");
}

TEST(OutputFile, PlacesThatAreNoFiles) {
  TestFolder folder;
  EXPECT_EQ(Replace("/dev/null", "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(Replace(folder.path(), "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(Replace("", "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(Replace(folder / "none/", "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(Replace(std::string("a\0b", 3), "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(Replace(folder / "none/file", "x").code(), Code::kNotFound);
  EXPECT_EQ(Replace(folder / std::string(300, 'n'), "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(folder.Names(), Names{});
}

TEST(OutputFile, WithoutPermission) {
  TestFolder folder;
  Put(folder / "file", "old");
  ASSERT_EQ(chmod((folder / "file").c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  {
    AsNobody nobody;
    EXPECT_EQ(Replace(folder / "file", "new").code(), Code::kPermissionDenied);
  }
  ASSERT_EQ(chmod((folder / "file").c_str(), 0666), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  {
    AsNobody nobody;
    EXPECT_EQ(Replace(folder / "file", "new").code(), Code::kPermissionDenied);
    EXPECT_EQ(Replace(folder / "other", "new").code(), Code::kPermissionDenied);
  }
  EXPECT_EQ(Contents(folder / "file"), "old");
  EXPECT_EQ(folder.Names(), Names{"file"});
}

// Beyond it the system would end the process.
TEST(OutputFile, ALimitOnTheSizesOfFiles) {
  TestFolder folder;
  Put(folder / "file", "old");
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 10'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = Replace(folder / "file", std::string(20'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
  EXPECT_EQ(Contents(folder / "file"), "old");
  EXPECT_EQ(folder.Names(), Names{"file"});
}

TEST(OutputFile, AKilledProcessLeavesNothing) {
  TestFolder folder;
  Put(folder / "file", "old");
  const int probe = open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system has no files without names";
  close(probe);
  const pid_t child = fork();
  if (child == 0) {
    Result<OutputFile> file = OutputFile::Create(folder / "file");
    (void)file->Write(std::string(100'000, 'x'));
    raise(SIGKILL);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  ASSERT_TRUE(WIFSIGNALED(ended));
  EXPECT_EQ(Contents(folder / "file"), "old");
  EXPECT_EQ(folder.Names(), Names{"file"});
}

TEST(OutputFile, TakesAFreePlaceOnly) {
  TestFolder folder;
  auto commit = [&](std::string_view text) {
    Result<OutputFile> file = OutputFile::Create(folder / "file");
    EXPECT_TRUE(file.ok() && file->Write(text).ok());
    return file->CommitIfAbsent();
  };
  Result<bool> placed = commit("first");
  ASSERT_TRUE(placed.ok() && *placed) << placed.status().ToString();
  placed = commit("second");
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_FALSE(*placed);
  EXPECT_EQ(Contents(folder / "file"), "first");
  EXPECT_EQ(folder.Names(), Names{"file"});
}

// As on a system without /proc.
TEST(OutputFile, FilesInTheMakingMayHaveNames) {
  TestFolder folder;
  constexpr int kNotAllowed = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      _exit(kNotAllowed);
    }
    Result<OutputFile> file = OutputFile::Create(folder / "file");
    Result<OutputFile> other = OutputFile::Create(folder / "file");
    (void)file->Write("first");
    (void)other->Write("second");
    const std::vector<std::string> names = folder.Names();
    for (const std::string& name : names) {
      if (!OutputFile::IsTemporaryName(name)) _exit(1);
    }
    if (names.size() != 2) _exit(2);
    const Result<bool> first = file->CommitIfAbsent(), second = other->CommitIfAbsent();
    if (!first.ok() || !second.ok() || !*first || *second) _exit(3);
    if (!Replace(folder / "replaced", "third").ok()) _exit(4);
    // One that is left behind.
    Result<OutputFile> last = OutputFile::Create(folder / "last");
    { const OutputFile one = *std::move(file), two = *std::move(other); }
    if (folder.Names().size() != 3) _exit(5);
    raise(SIGKILL);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == kNotAllowed) {
    GTEST_SKIP() << "/proc cannot be hidden here";
  }
  ASSERT_TRUE(WIFSIGNALED(ended)) << WEXITSTATUS(ended);
  const std::vector<std::string> names = folder.Names();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_TRUE(OutputFile::IsTemporaryName(names[0])) << names[0];
  EXPECT_EQ(Contents(folder / "file"), "first");
  EXPECT_EQ(Contents(folder / "replaced"), "third");
}

TEST(OutputFile, NamesOfFilesInTheMaking) {
  EXPECT_TRUE(OutputFile::IsTemporaryName(".kiln-18446744073709551615"));
  for (const char* name : {"", ".kiln-", ".kiln-1x", "kiln-1", "a.kiln-1"}) {
    EXPECT_FALSE(OutputFile::IsTemporaryName(name)) << name;
  }
}

}  // namespace
}  // namespace kiln
