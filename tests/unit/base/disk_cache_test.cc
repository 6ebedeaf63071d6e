// The cache on disk: entries found, damaged, evicted, written by processes that are killed.

#include "base/disk_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include "base/disk_cache_folder.h"
#include "base/hash.h"
#include "support/folder.h"

namespace kiln {
namespace {

constexpr int64_t kLarge = 1 << 20;

// Contents that tell whether they are whole.
std::string Sealed(const std::string& text) { return HexText(HashOf(text)) + text; }

Status Check(std::string_view contents) {
  if (contents.size() < 64 || HexText(HashOf(contents.substr(64))) != contents.substr(0, 64)) {
    return DataLoss("not whole");
  }
  return OkStatus();
}

// The contents of the key, without their seal.
std::optional<std::string> Get(DiskCache& cache, const std::string& key) {
  std::string got;
  const bool is_hit = cache.Find(key, [&](std::string_view contents, const auto&) {
    KILN_RETURN_IF_ERROR(Check(contents));
    got = contents.substr(64);
    return OkStatus();
  });
  if (!is_hit) return std::nullopt;
  return got;
}

std::vector<std::string> Entries(const TestFolder& folder) {
  std::vector<std::string> names;
  for (const std::string& name : folder.Names()) {
    if (name.ends_with(DiskCache::kEntrySuffix)) names.push_back(name);
  }
  return names;
}

int64_t BytesOf(const TestFolder& folder) {
  int64_t bytes = 0;
  for (const std::string& name : Entries(folder)) {
    bytes += static_cast<int64_t>(std::filesystem::file_size(folder / name));
  }
  return bytes;
}

TEST(DiskCache, FindsWhatWasInserted) {
  TestFolder folder;
  const std::string path = folder / "a/b/cache";
  DiskCache cache(path, kLarge);
  EXPECT_EQ(Get(cache, "key"), std::nullopt);
  for (const std::string& text : {std::string(), std::string("text"), std::string(100000, 'x')}) {
    cache.Insert(Cat("key", text.size()), Sealed(text));
    EXPECT_EQ(Get(cache, Cat("key", text.size())), text);
    DiskCache other(path, kLarge);
    EXPECT_EQ(Get(other, Cat("key", text.size())), text);
    EXPECT_EQ(Get(other, Cat("key", text.size(), " ")), std::nullopt);
    EXPECT_EQ(other.counts().hits, 1);
    EXPECT_EQ(other.counts().misses, 1);
    EXPECT_EQ(other.counts().written, 0);
  }
  const DiskCache::Counts counts = cache.counts();
  EXPECT_EQ(counts.hits, 3);
  EXPECT_EQ(counts.misses, 1);
  EXPECT_EQ(counts.written, 3);
  EXPECT_EQ(counts.failed + counts.evicted, 0);
  EXPECT_EQ(counts.read_bytes, counts.written_bytes);
  EXPECT_EQ(counts.folder_bytes, counts.written_bytes);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(DiskCache, TheFolderIsForItsUserAlone) {
  TestFolder folder;
  const mode_t before = umask(0);
  for (const char* name : {"plain", "slash/", "slashes//", "dot/.", "dots/./", "a/b/c/"}) {
    DiskCache cache(folder / name, kLarge);
    cache.Insert("key", Sealed("text"));
    EXPECT_EQ(Get(cache, "key"), "text");
    struct stat info;
    ASSERT_EQ(stat(cache.folder().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
  umask(before);
}

TEST(DiskCache, AnEntryIsWrittenOnce) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge), other(folder.path(), kLarge);
  cache.Insert("key", Sealed("text"));
  other.Insert("key", Sealed("text"));
  EXPECT_EQ(other.counts().written, 0);
  EXPECT_EQ(other.counts().failed, 0);
  EXPECT_EQ(other.counts().folder_bytes, BytesOf(folder));
  EXPECT_EQ(folder.Names().size(), 2u);
}

// In a folder that users share, entries of others may only be read.
TEST(DiskCache, AnEntryOfAnotherUserIsThere) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge), other(folder.path(), kLarge);
  cache.Insert("key", Sealed("text"));
  std::filesystem::permissions(folder / Entries(folder).at(0), std::filesystem::perms(0444));
  for (const std::string& name : {std::string(), std::string(DiskCache::kFolderFile)}) {
    std::filesystem::permissions(folder / name, std::filesystem::perms(0777));
  }
  const AsNobody nobody;
  other.Insert("key", Sealed("text"));
  EXPECT_EQ(Get(other, "key"), "text");
  EXPECT_EQ(other.counts().failed + other.counts().written, 0);
}

TEST(DiskCache, ContentsAreAlignedAndOutliveTheEntry) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  cache.Insert("key", "contents");
  std::shared_ptr<const void> kept;
  std::string_view seen;
  ASSERT_TRUE(cache.Find("key", [&](std::string_view contents, const auto& owner) {
    seen = contents;
    kept = owner;
    return OkStatus();
  }));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen.data()) % DiskCache::kContentsAlignment, 0u);
  std::filesystem::remove_all(folder.path());
  EXPECT_EQ(seen, "contents");
}

TEST(DiskCache, DamagedEntriesAreRemoved) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  cache.Insert("key", Sealed("text"));
  const std::string path = folder / Entries(folder).at(0);
  const std::string whole = Contents(path);
  std::vector<std::string> damaged = {"", "short", whole.substr(0, 4096), whole + "x"};
  for (size_t at = 0; at < whole.size(); at += at < 64 ? 1 : 61) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
    damaged.push_back(whole.substr(0, at));
  }
  int64_t failed = 0;
  for (const std::string& text : damaged) {
    Put(path, text);
    ASSERT_EQ(Get(cache, "key"), std::nullopt) << text.size();
    ASSERT_FALSE(std::filesystem::exists(path));
    ASSERT_EQ(cache.counts().failed, ++failed);
    cache.Insert("key", Sealed("text"));
    ASSERT_EQ(Get(cache, "key"), "text");
  }
}

TEST(DiskCache, WhatHasTakenTheDamagedEntrysPlaceStays) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge), other(folder.path(), kLarge);
  cache.Insert("key", Sealed("text"));
  EXPECT_FALSE(cache.Find("key", [&](std::string_view, const auto&) {
    std::filesystem::remove(folder / Entries(folder).at(0));
    other.Insert("key", Sealed("text"));
    return Internal("does not link");
  }));
  EXPECT_EQ(Get(cache, "key"), "text");
}

TEST(DiskCache, AnEntryUnderAnotherNameIsNotUsed) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  cache.Insert("one", Sealed("1"));
  const std::string one = folder / Entries(folder).at(0);
  const std::string two = folder / Cat(HexText(HashOf("two")), DiskCache::kEntrySuffix);
  std::filesystem::copy(one, two);
  EXPECT_EQ(Get(cache, "two"), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(two));
  EXPECT_EQ(Get(cache, "one"), "1");
}

TEST(DiskCache, AFailureThatIsNotTheEntrysLeavesIt) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  cache.Insert("key", Sealed("text"));
  for (const Status& status : {ResourceExhausted("memory"), NotFound("a function")}) {
    EXPECT_FALSE(cache.Find("key", [&](std::string_view, const auto&) { return status; }));
  }
  EXPECT_FALSE(
      cache.Find("key", [](std::string_view, const auto&) -> Status { throw std::bad_alloc(); }));
  EXPECT_EQ(Get(cache, "key"), "text");
  EXPECT_EQ(cache.counts().failed, 3);
  EXPECT_FALSE(
      cache.Find("key", [](std::string_view, const auto&) { return Internal("does not link"); }));
  EXPECT_EQ(Get(cache, "key"), std::nullopt);
}

// An entry of this file system's sizes: 4096 bytes of header, and the contents.
constexpr int64_t kEntryBytes = 8192;
void InsertOne(DiskCache& cache, const std::string& key) {
  cache.Insert(key, Sealed(std::string(kEntryBytes - 4096 - 64, key[0])));
}

void SetUsed(const TestFolder& folder, const std::string& key, int64_t seconds_ago) {
  const std::string path = folder / Cat(HexText(HashOf(key)), DiskCache::kEntrySuffix);
  const timespec then = {time(nullptr) - seconds_ago, 0};
  const timespec times[2] = {then, then};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(DiskCache, TheLeastRecentlyUsedGoFirst) {
  TestFolder folder;
  DiskCache cache(folder.path(), 4 * kEntryBytes);
  for (const char* key : {"a", "b", "c", "d"}) InsertOne(cache, key);
  EXPECT_EQ(cache.counts().evicted, 0);
  for (const char* key : {"a", "b", "c", "d"}) SetUsed(folder, key, 1000 - key[0]);
  EXPECT_TRUE(Get(cache, "a"));  // now the last
  InsertOne(cache, "e");
  EXPECT_TRUE(Get(cache, "a"));
  EXPECT_FALSE(Get(cache, "b"));
  EXPECT_TRUE(Get(cache, "d"));
  EXPECT_TRUE(Get(cache, "e"));
  EXPECT_GE(cache.counts().evicted, 1);
  EXPECT_EQ(cache.counts().folder_bytes, BytesOf(folder));
}

TEST(DiskCache, TheBoundHoldsForEverySize) {
  TestFolder folder;
  constexpr int64_t kBound = 100000;
  DiskCache cache(folder.path(), kBound), other(folder.path(), kBound);
  std::mt19937 random(1);
  int64_t written = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text(random() % 120000, 'x');
    (i % 2 == 0 ? cache : other).Insert(Cat("key ", i), Sealed(text));
    ASSERT_LE(BytesOf(folder), kBound);
    const bool fits = 4096 + 64 + text.size() <= static_cast<size_t>(kBound);
    written += fits ? 1 : 0;
    ASSERT_EQ(Get(other, Cat("key ", i)).has_value(), fits) << text.size();
  }
  EXPECT_EQ(cache.counts().written + other.counts().written, written);
  EXPECT_EQ(cache.counts().failed + other.counts().failed, 300 - written);
  EXPECT_EQ(cache.counts().folder_bytes, BytesOf(folder));
}

TEST(DiskCache, TheFoldersFileMayBeLostOrWrong) {
  const auto wrong = {std::string(), std::string("x"), std::string(24, '\0'), std::string(24, 'x'),
                      std::string("KILNDIR\0\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0", 24)};
  for (const std::string& text : wrong) {
    TestFolder folder;
    DiskCache cache(folder.path(), 3 * kEntryBytes);
    for (const char* key : {"a", "b", "c"}) InsertOne(cache, key);
    const std::string file = folder / DiskCache::kFolderFile;
    std::filesystem::remove(file);
    if (!text.empty()) Put(file, text);
    InsertOne(cache, "d");
    EXPECT_LE(BytesOf(folder), 3 * kEntryBytes);
    EXPECT_TRUE(Get(cache, "d"));
    EXPECT_EQ(cache.counts().folder_bytes, BytesOf(folder));
  }
}

TEST(DiskCache, WhatAKilledProcessHasLeftIsRemoved) {
  TestFolder folder;
  for (const char* name : {".kiln-1", ".kiln-22", ".kiln-young", "users.kiln", "notes"}) {
    Put(folder / name, std::string(100, 'x'));
  }
  const timespec then = {time(nullptr) - 86400, 0};
  for (const char* name : {".kiln-1", ".kiln-young", "users.kiln", "notes"}) {
    const timespec times[2] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder / name).c_str(), times, 0), 0);
  }
  DiskCache cache(folder.path(), kEntryBytes);
  InsertOne(cache, "a");
  InsertOne(cache, "b");
  std::vector<std::string> left = folder.Names();
  std::erase_if(left, [](const std::string& name) { return name.size() > 64; });
  EXPECT_EQ(left, (std::vector<std::string>{".kiln-22", ".kiln-young", DiskCache::kFolderFile,
                                            "notes", "users.kiln"}));
}

// A cache that can keep nothing, for whatever reason: told once.
void ExpectNotKept(const std::string& path, std::string_view reason) {
  std::vector<std::string> problems;
  DiskCache cache(path, kLarge, [&](std::string_view problem) { problems.emplace_back(problem); });
  for (int i = 0; i < 3; ++i) {
    cache.Insert("key", Sealed("text"));
    EXPECT_EQ(Get(cache, "key"), std::nullopt);
  }
  EXPECT_EQ(cache.counts().failed, 3) << path;
  EXPECT_EQ(cache.counts().written, 0);
  ASSERT_EQ(problems.size(), 1u) << Join(problems, "\n");
  EXPECT_NE(problems[0].find(reason), std::string::npos) << problems[0];
  EXPECT_NE(problems[0].find(path), std::string::npos) << problems[0];
}

TEST(DiskCache, AFolderThatCannotBeWrittenIsNoError) {
  TestFolder folder;
  Put(folder / "file", "");
  ExpectNotKept(folder / "file", "Not a directory");
  ExpectNotKept(folder / "file/below", "Not a directory");
  ExpectNotKept("/proc/nowhere", "No such file");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  {
    const AsNobody nobody;
    ExpectNotKept(folder / "below", "Permission denied");
    ExpectNotKept(folder.path(), "Permission denied");
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(DiskCache, AReadOnlyFolderIsRead) {
  TestFolder folder;
  {
    DiskCache cache(folder.path(), kLarge);
    cache.Insert("key", Sealed("text"));
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  const AsNobody nobody;
  DiskCache cache(folder.path(), kLarge);
  EXPECT_EQ(Get(cache, "key"), "text");
  EXPECT_EQ(cache.counts().failed, 0);
}

TEST(DiskCache, WhatIsNoFileIsNotWaitedFor) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  const std::string path = folder / Cat(HexText(HashOf("key")), DiskCache::kEntrySuffix);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Get(cache, "key"), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(path));
  // A link is removed, and what it leads to stays as it is.
  Put(folder / "there", "text");
  for (const std::string& there : {std::string("/dev/zero"), folder / "there", folder / "none"}) {
    std::filesystem::create_symlink(there, path);
    EXPECT_EQ(Get(cache, "key"), std::nullopt);
    EXPECT_FALSE(std::filesystem::is_symlink(path));
  }
  EXPECT_EQ(Contents(folder / "there"), "text");
  std::filesystem::create_directory(path);
  EXPECT_EQ(Get(cache, "key"), std::nullopt);
  cache.Insert("key", Sealed("text"));
  EXPECT_EQ(cache.counts().failed, 6);
  EXPECT_EQ(cache.counts().written, 0);
  // The folder's own file.
  std::filesystem::remove(folder / DiskCache::kFolderFile);
  ASSERT_EQ(mkfifo((folder / DiskCache::kFolderFile).c_str(), 0600), 0);
  EXPECT_EQ(cache.counts().folder_bytes, 0);
  cache.Insert("other", Sealed("text"));
  EXPECT_EQ(cache.counts().failed, 7);
}

// SIGXFSZ would end the process.
TEST(DiskCache, ALimitOnTheSizesOfFilesIsNoError) {
  TestFolder folder;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 5000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  DiskCache cache(folder.path(), kLarge);
  cache.Insert("large", Sealed(std::string(1000, 'x')));
  cache.Insert("small", Sealed("text"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(cache.counts().failed, 1);
  EXPECT_EQ(Get(cache, "small"), "text");
}

TEST(DiskCache, AHeldLockIsWaitedForOnlySoLong) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  cache.Insert("one", Sealed("1"));
  const int file = open((folder / DiskCache::kFolderFile).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  const auto start = std::chrono::steady_clock::now();
  cache.Insert("two", Sealed("2"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(cache.counts().failed, 1);
  EXPECT_EQ(Get(cache, "one"), "1");
  close(file);
  cache.Insert("two", Sealed("2"));
  EXPECT_EQ(Get(cache, "two"), "2");
}

// A child of fork() has its parent's open files, the locked one among them.
TEST(DiskCache, AForkedChildHoldsNoLock) {
  TestFolder folder;
  DiskCache cache(folder.path(), kLarge);
  pid_t child = 0;
  {
    const auto locked = LockedCacheFolder::Lock(folder.path());
    ASSERT_TRUE(locked.ok()) << locked.status().ToString();
    child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
  }
  cache.Insert("key", Sealed("text"));
  EXPECT_EQ(cache.counts().failed, 0);
  EXPECT_EQ(Get(cache, "key"), "text");
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// Someone removes the folder, and makes it anew, while others wait for its lock.
TEST(DiskCache, AFolderThatIsReplacedKeepsItsBound) {
  TestFolder folder;
  constexpr int64_t kBound = 4 * kEntryBytes;
  const std::string path = folder / "cache";
  DiskCache cache(path, kBound), waiting(path, kBound);
  InsertOne(cache, "a");
  std::optional<Result<LockedCacheFolder>> locked(LockedCacheFolder::Lock(path));
  ASSERT_TRUE(locked->ok());
  std::thread thread([&] { InsertOne(waiting, "b"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::filesystem::remove_all(path);
  for (const char* key : {"c", "d", "e"}) InsertOne(cache, key);
  locked.reset();
  thread.join();
  EXPECT_EQ(waiting.counts().failed, 0);
  EXPECT_EQ(Get(waiting, "b").has_value(), true);
  EXPECT_EQ(cache.counts().folder_bytes, 4 * kEntryBytes);
}

TEST(DiskCache, ThreadsShareOne) {
  TestFolder folder;
  constexpr int64_t kBound = 10 * kEntryBytes;
  constexpr int kThreads = 8, kTurns = 200;
  DiskCache cache(folder.path(), kBound);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&cache, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kTurns; ++i) {
        const std::string key(1, static_cast<char>('a' + random() % 20));
        const auto got = Get(cache, key);
        if (got) {
          EXPECT_EQ(*got, std::string(kEntryBytes - 4096 - 64, key[0]));
        } else {
          InsertOne(cache, key);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const DiskCache::Counts counts = cache.counts();
  EXPECT_EQ(counts.hits + counts.misses, kThreads * kTurns);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_LE(BytesOf(folder), kBound);
}

// Processes that read and write the same keys in a folder that is too small for them, until they
// are killed.
TEST(DiskCache, KilledProcessesLeaveWholeEntriesWithinTheBound) {
  TestFolder folder;
  constexpr int64_t kBound = 20 * kEntryBytes;
  constexpr int kProcesses = 6, kRounds = 10;
  auto text_of = [](int key) {
    return std::string(static_cast<size_t>(key) * 997 % 20000, static_cast<char>('a' + key % 26));
  };
  auto work = [&](unsigned seed) {
    DiskCache cache(folder.path(), kBound, [](std::string_view problem) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(problem.size()), problem.data());
    });
    std::mt19937 random(seed);
    for (;;) {
      const int key = static_cast<int>(random() % 100);
      const auto got = Get(cache, Cat(key));
      if (got && *got != text_of(key)) _exit(1);
      if (!got) cache.Insert(Cat(key), Sealed(text_of(key)));
      if (cache.counts().failed != 0) _exit(2);
    }
  };
  int64_t most = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t child = fork();
      if (child == 0) work(static_cast<unsigned>(round * kProcesses + i));
      children.push_back(child);
    }
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      // Sizes are read one after the other, while entries go; what they are together is known when
      // nothing runs.
      for (pid_t child : children) kill(child, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      most = std::max(most, BytesOf(folder));
      ASSERT_LE(BytesOf(folder), kBound);
      for (pid_t child : children) kill(child, SIGCONT);
    }
    for (pid_t child : children) {
      kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    }
    // The locks of the dead are free.
    DiskCache cache(folder.path(), kBound);
    for (int key = 0; key < 100; ++key) {
      const auto got = Get(cache, Cat(key));
      if (got) {
        EXPECT_EQ(*got, text_of(key));
      }
    }
    EXPECT_EQ(cache.counts().failed, 0);
    EXPECT_GE(cache.counts().folder_bytes, BytesOf(folder));
  }
  EXPECT_GT(most, kBound / 2);
  DiskCache cache(folder.path(), kBound);
  InsertOne(cache, "last");
  EXPECT_TRUE(Get(cache, "last"));
}

}  // namespace
}  // namespace kiln
