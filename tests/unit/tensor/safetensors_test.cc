// Files of named arrays: their bytes, what is refused, and failures while they are written.
#include "tensor/safetensors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/folder.h"

namespace kiln::safetensors {
namespace {

using Names = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

std::string Framed(std::string_view header, std::string_view data = "") {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return Cat(bytes, header, data);
}

NewArray Array(std::string_view name, ElementType type, std::vector<int64_t> dims,
               std::string bytes) {
  return {name, Shape(type, std::span<const int64_t>(dims)),
          [kept = std::make_shared<std::string>(std::move(bytes))] {
            return reinterpret_cast<const std::byte*>(kept->data());
          }};
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string DataOf(const File& file, std::string_view name) {
  const Entry* entry = file.header().Find(name);
  return entry ? TextOf(file.data(*entry)) : "none";
}

// The message of a header that is refused; "" if it is taken.
std::string Refused(std::string_view header) {
  Result<Header> parsed = ParseHeader(header);
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument) << header;
  return std::string(parsed.status().message());
}

TEST(Safetensors, TheBytesOfAFile) {
  TestFolder folder;
  const std::string path = folder / "file";
  const std::vector<NewArray> arrays = {
      Array("b", ElementType::kU8, {3}, "xyz"),
      Array("w", ElementType::kS32, {2, 1}, std::string("\1\0\0\0\2\0\0\0", 8)),
      Array("a", ElementType::kU8, {}, "q"),
      Array("none", ElementType::kF32, {0, 5}, ""),
  };
  ASSERT_TRUE(Write(path, arrays, Pairs{{"z", "1"}, {"a", "\"\\\b\f\n\r\t\x01\xc3\xa9"}}).ok());
  // Larger elements first, then by name; the header ends at a multiple of 8.
  const std::string header = R"({"__metadata__":{"z":"1","a":"\"\\\b\f\n\r\t\u0001)"
                             "\xc3\xa9"
                             R"("},"none":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                             R"("w":{"dtype":"I32","shape":[2,1],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"U8","shape":[],"data_offsets":[8,9]},)"
                             R"("b":{"dtype":"U8","shape":[3],"data_offsets":[9,12]}})";
  std::string padded = header;
  while (padded.size() % 8 != 0) padded += ' ';
  EXPECT_EQ(Contents(path), Framed(padded, std::string("\1\0\0\0\2\0\0\0qxyz", 12)));
  EXPECT_EQ(folder.Names(), Names{"file"});

  Result<Ref<File>> file = File::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const Header& read = (*file)->header();
  ASSERT_EQ(read.entries.size(), 4u);
  EXPECT_EQ(read.entries[1].name, "w");
  EXPECT_EQ(read.entries[1].dims, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(read.entries[1].shape()->ToString(), "s32[2,1]");
  EXPECT_EQ(DataOf(**file, "b"), "xyz");
  EXPECT_EQ(DataOf(**file, "none"), "");
  EXPECT_EQ(read.Find("c"), nullptr);
  EXPECT_EQ(read.metadata.size(), 2u);
  EXPECT_EQ(*read.FindMetadata("a"), "\"\\\b\f\n\r\t\x01\xc3\xa9");
  EXPECT_EQ(read.FindMetadata("b"), nullptr);
  // Zero-copy needs it.
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*file)->data(read.entries[1]).data()) % 8, 0u);
}

TEST(Safetensors, AnEmptyFile) {
  TestFolder folder;
  ASSERT_TRUE(Write(folder / "file", {}, {}).ok());
  EXPECT_EQ(Contents(folder / "file"), Framed("{}      "));
  ASSERT_TRUE(File::Open(folder / "file").ok());
}

TEST(Safetensors, EachTypeGoesThroughAFile) {
  TestFolder folder;
  const std::vector<std::pair<ElementType, std::string>> types = {
      {ElementType::kPred, "BOOL"},
      {ElementType::kU8, "U8"},
      {ElementType::kS8, "I8"},
      {ElementType::kU16, "U16"},
      {ElementType::kS16, "I16"},
      {ElementType::kU32, "U32"},
      {ElementType::kS32, "I32"},
      {ElementType::kU64, "U64"},
      {ElementType::kS64, "I64"},
      {ElementType::kF16, "F16"},
      {ElementType::kBF16, "BF16"},
      {ElementType::kF32, "F32"},
      {ElementType::kF64, "F64"},
      {ElementType::kC64, "C64"},
      {ElementType::kF8E5M2, "F8_E5M2"},
      {ElementType::kF8E4M3FN, "F8_E4M3"},
      {ElementType::kF8E8M0FNU, "F8_E8M0"},
      {ElementType::kF8E5M2FNUZ, "F8_E5M2FNUZ"},
      {ElementType::kF8E4M3FNUZ, "F8_E4M3FNUZ"},
  };
  std::vector<NewArray> arrays;
  std::vector<std::string> bytes;
  for (const auto& [type, name] : types) {
    bytes.emplace_back();
    for (int64_t i = 0; i < 6 * ByteWidth(type); ++i) {
      bytes.back() += static_cast<char>(type == ElementType::kPred ? i % 2 : 31 * i + 7);
    }
    arrays.push_back(Array(name, type, {2, 3}, bytes.back()));
  }
  ASSERT_TRUE(Write(folder / "file", arrays, {}).ok());
  Result<Ref<File>> file = File::Open(folder / "file");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  for (size_t i = 0; i < types.size(); ++i) {
    const auto& [type, name] = types[i];
    const Entry* entry = (*file)->header().Find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->dtype, name);
    EXPECT_EQ(entry->shape()->type(), type) << name;
    EXPECT_EQ(DataOf(**file, name), bytes[i]) << name;
    const auto address = reinterpret_cast<uintptr_t>((*file)->data(*entry).data());
    EXPECT_EQ(address % static_cast<uintptr_t>(ByteWidth(type)), 0u) << name;
  }
}

TEST(Safetensors, ElementsWhoseBytesChange) {
  TestFolder folder;
  const std::vector<NewArray> arrays = {
      Array("p", ElementType::kPred, {3}, std::string("\0\x80\1", 3)),
      Array("f", ElementType::kF4E2M1FN, {2, 2}, "\x1\x2\xf\x4"),
  };
  ASSERT_TRUE(Write(folder / "file", arrays, {}).ok());
  Result<Ref<File>> file = File::Open(folder / "file");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(DataOf(**file, "p"), std::string("\0\1\1", 3));
  // The first element has the low bits.
  EXPECT_EQ(DataOf(**file, "f"), "\x21\x4f");
  const Entry* entry = (*file)->header().Find("f");
  EXPECT_EQ(Unpacked(ElementType::kF4E2M1FN, (*file)->data(*entry), 4), "\x1\x2\xf\x4");
  EXPECT_EQ(
      Write(folder / "file", std::vector{Array("odd", ElementType::kF4E2M1FN, {3}, "abc")}, {})
          .code(),
      Code::kInvalidArgument);
}

TEST(Safetensors, LargePieces) {
  TestFolder folder;
  std::string preds(200'001, '\0'), fours(150'002, '\0');
  for (size_t i = 0; i < preds.size(); ++i) preds[i] = static_cast<char>(i % 7 == 0);
  for (size_t i = 0; i < fours.size(); ++i) fours[i] = static_cast<char>(i * i % 16);
  const std::vector<NewArray> arrays = {
      Array("p", ElementType::kPred, {200'001}, preds),
      Array("f", ElementType::kF4E2M1FN, {150'002}, fours),
  };
  ASSERT_TRUE(Write(folder / "file", arrays, {}).ok());
  Result<Ref<File>> file = File::Open(folder / "file");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(DataOf(**file, "p"), preds);
  const Entry* entry = (*file)->header().Find("f");
  EXPECT_EQ(Unpacked(ElementType::kF4E2M1FN, (*file)->data(*entry), 150'002), fours);
}

TEST(Safetensors, TypesWithoutElementsFailWhenAskedFor) {
  Result<Header> header =
      ParseHeader(R"({"new":{"dtype":"I4X","shape":[3],"data_offsets":[0,2]},)"
                  R"("six":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[2,5]},)"
                  R"("u":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})");
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_TRUE(header->Find("u")->shape().ok());
  for (const auto& [name, dtype] : {std::pair("new", "I4X"), std::pair("six", "F6_E2M3")}) {
    const Status status = header->Find(name)->shape().status();
    EXPECT_EQ(status.code(), Code::kUnimplemented);
    EXPECT_NE(status.message().find(name), std::string::npos);
    EXPECT_NE(status.message().find(dtype), std::string::npos);
  }
  std::string deep = R"({"deep":{"dtype":"U8","shape":[1)";
  for (int i = 0; i < 64; ++i) deep += ",1";
  header = ParseHeader(deep + R"(],"data_offsets":[0,1]}})");
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->entries[0].shape().status().code(), Code::kInvalidArgument);
}

TEST(Safetensors, HeadersInOtherForms) {
  // Any order of entries and members, white space, escapes.
  Result<Header> header = ParseHeader(
      "{ \"b\" :\n{\"shape\":[ 2 , 1 ],\t\"data_offsets\":[1,3],\"dtype\":\"U8\"} ,"
      "\"\\u0061\\/\\ud83d\\ude00\\u20AC\\u00e9\":{\"dtype\":\"BOOL\",\"shape\":[],"
      "\"data_offsets\":[0,1]},\"__metadata__\":{}}    ");
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(header->entries[0].name, "a/\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9");
  EXPECT_EQ(header->entries[1].name, "b");
  EXPECT_EQ(header->data_bytes, 3);
}

TEST(Safetensors, RefusedText) {
  EXPECT_NE(Refused(""), "");
  for (const char* header : {" {}",
                             "[]",
                             "{",
                             "{}x",
                             "{}\n",
                             "{\"a\"}",
                             "{\"a\":1}",
                             "{\"a\":{}}",
                             "{,}",
                             "{\"__metadata__\":{},}",
                             "{\"__metadata__\":null}",
                             "{\"__metadata__\":{\"a\":1}}",
                             "{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}",
                             "{\"__metadata__\":{},\"__metadata__\":{}}",
                             "{\"__metadata__\":{\"a\":\"\n\"}}",
                             "{\"__metadata__\":{\"a\":\"\\x\"}}",
                             "{\"__metadata__\":{\"a\":\"\\u12g4\"}}",
                             "{\"__metadata__\":{\"a\":\"\\ud800\"}}",
                             "{\"__metadata__\":{\"a\":\"\\udc00\"}}",
                             "{\"__metadata__\":{\"a\":\"\\ud800\\u0041\"}}",
                             "{\"__metadata__\":{\"a\":\"\xff\"}}",
                             "{\"__metadata__\":{\"a\":\"",
                             "{\"a\\",
                             "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"}) {
    EXPECT_NE(Refused(header), "") << header;
  }
}

TEST(Safetensors, RefusedEntries) {
  for (const char* entry :
       {R"("dtype":"U8","shape":[2],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[2])",
        R"("dtype":"U8","data_offsets":[0,1])",
        R"("shape":[1],"data_offsets":[0,1])",
        R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1)",
        R"("dtype":"U8","shape":[1],"data_offsets":[1,2])",
        R"("dtype":"U8","shape":[1],"data_offsets":[1,0])",
        R"("dtype":"U8","shape":[1],"data_offsets":[0])",
        R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])",
        R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[01],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[1e0],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":["1"],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[[1]],"data_offsets":[0,1])",
        R"("dtype":1,"shape":[1],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[18446744073709551617],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1])",
        R"("dtype":"U16","shape":[9223372036854775807],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[4294967296,4294967296,1],"data_offsets":[0,0])",
        R"("dtype":"F4","shape":[1],"data_offsets":[0,1])",
        R"("dtype":"F4","shape":[1],"data_offsets":[0,0])"}) {
    const std::string message = Refused(Cat("{\"it\":{", entry, "}}"));
    EXPECT_NE(message.find("it"), std::string::npos) << entry << ": " << message;
  }
  auto entry = [](std::string_view name, int64_t begin, int64_t end) {
    return Cat("\"", name, "\":{\"dtype\":\"U8\",\"shape\":[", end - begin, "],\"data_offsets\":[",
               begin, ",", end, "]}");
  };
  auto both = [&](const std::string& a, const std::string& b) { return Cat("{", a, ",", b, "}"); };
  EXPECT_EQ(Refused(both(entry("a", 0, 4), entry("b", 4, 6))), "");
  EXPECT_EQ(Refused(both(entry("a", 4, 6), entry("b", 0, 4))), "");
  // A hole, an overlap, the same bytes, and a name given twice.
  EXPECT_EQ(Refused(both(entry("a", 0, 4), entry("b", 5, 6))),
            "'b': its data begin at 5; those before it end at 4");
  EXPECT_EQ(Refused(both(entry("a", 0, 4), entry("b", 3, 6))),
            "'b': its data begin at 3; those before it end at 4");
  EXPECT_EQ(Refused(both(entry("a", 0, 4), entry("b", 0, 4))),
            "'b': its data begin at 0; those before it end at 4");
  EXPECT_EQ(Refused(both(entry("a", 0, 4), entry("a", 4, 6))), "the header has 'a' twice");
  // Sizes whose product is 0.
  EXPECT_EQ(Refused(R"({"z":{"dtype":"U8","shape":[9223372036854775807,9223372036854775807,0],)"
                    R"("data_offsets":[0,0]}})"),
            "");
}

// The bytes of a small file with an array, an empty one and metadata.
std::string SmallFile() {
  return Framed(R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                R"("e":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}} )",
                "12345678");
}

// Takes all that the file promises; false if it is refused, as it must be then.
bool IsSound(const std::string& path) {
  Result<Ref<File>> file = File::Open(path);
  if (!file.ok()) {
    EXPECT_EQ(file.status().code(), Code::kInvalidArgument) << file.status().ToString();
    EXPECT_NE(file.status().message().find(path), std::string::npos);
    return false;
  }
  int64_t at = 0, sum = 0;
  for (const Entry& entry : (*file)->header().entries) {
    EXPECT_EQ(entry.begin, at);
    at = entry.end;
    for (std::byte byte : (*file)->data(entry)) sum += static_cast<int64_t>(byte);
    Result<Shape> shape = entry.shape();
    if (shape.ok()) {
      EXPECT_EQ(shape->byte_size(), entry.end - entry.begin);
    }
    EXPECT_EQ((*file)->header().Find(entry.name), &entry);
  }
  EXPECT_EQ(at, (*file)->header().data_bytes);
  return sum >= 0;
}

TEST(Safetensors, ShortAndLongFiles) {
  TestFolder folder;
  const std::string path = folder / "file", whole = SmallFile();
  for (size_t size = 0; size < whole.size(); ++size) {
    Put(path, whole.substr(0, size));
    EXPECT_FALSE(IsSound(path)) << size;
  }
  Put(path, whole);
  EXPECT_TRUE(IsSound(path));
  Put(path, whole + "9");
  EXPECT_FALSE(IsSound(path));
}

TEST(Safetensors, EveryByteChanged) {
  TestFolder folder;
  const std::string path = folder / "file", whole = SmallFile();
  Put(path, whole);
  const int descriptor = open(path.c_str(), O_WRONLY);
  ASSERT_GE(descriptor, 0);
  int sound = 0, all = 0;
  for (size_t at = 0; at < whole.size() - 8; ++at) {
    for (int change = 0; change < 256; ++change) {
      const auto changed = static_cast<char>(whole[at] ^ change);
      ASSERT_EQ(pwrite(descriptor, &changed, 1, static_cast<off_t>(at)), 1);
      const bool is_sound = IsSound(path);
      EXPECT_TRUE(is_sound || change != 0);
      sound += is_sound;
      ++all;
    }
    ASSERT_EQ(pwrite(descriptor, &whole[at], 1, static_cast<off_t>(at)), 1);
  }
  close(descriptor);
  // Names, texts and unknown types are what may differ: 8 characters of 144.
  EXPECT_GT(sound, 500);
  EXPECT_LT(sound, all / 15);
}

TEST(Safetensors, LengthsOfHeaders) {
  TestFolder folder;
  for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{100'000'000}, uint64_t{100'000'001},
                          uint64_t{1} << 63, ~uint64_t{0}}) {
    std::string bytes(sizeof(length), '\0');
    std::memcpy(bytes.data(), &length, sizeof(length));
    Put(folder / "file", bytes + "{}      ");
    EXPECT_FALSE(IsSound(folder / "file")) << length;
  }
  const std::string too_long = "{}" + std::string(kMaxHeaderBytes - 1, ' ');
  EXPECT_NE(Refused(too_long), "");
  EXPECT_EQ(Refused(std::string_view(too_long).substr(0, kMaxHeaderBytes)), "");
}

TEST(Safetensors, Pipes) {
  TestFolder folder;
  const std::string path = folder / "pipe", whole = SmallFile();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const auto& [bytes, is_sound] :
       {std::pair(whole, true), std::pair(whole + "x", false),
        std::pair(whole.substr(0, whole.size() - 1), false), std::pair(whole.substr(0, 20), false),
        std::pair(std::string("\xff\xff\xff\xff\xff\xff\xff\xff"), false)}) {
    std::thread writer([&] { Put(path, bytes); });
    EXPECT_EQ(IsSound(path), is_sound) << bytes.size();
    writer.join();
  }
  // One without an end.
  EXPECT_FALSE(IsSound("/dev/zero"));
}

TEST(Safetensors, WhatCannotBeWritten) {
  TestFolder folder;
  const std::string path = folder / "file";
  auto code = [&](std::vector<NewArray> arrays, Pairs metadata = {}) {
    return Write(path, arrays, metadata).code();
  };
  const NewArray a = Array("a", ElementType::kU8, {1}, "x");
  EXPECT_EQ(code({a, a}), Code::kInvalidArgument);
  EXPECT_EQ(code({Array("\xff", ElementType::kU8, {1}, "x")}), Code::kInvalidArgument);
  EXPECT_EQ(code({Array("__metadata__", ElementType::kU8, {1}, "x")}), Code::kInvalidArgument);
  EXPECT_EQ(code({a}, {{"k", "1"}, {"k", "2"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({a}, {{"\xff", "1"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({a}, {{"k", "\xff"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({a}, {{"k", std::string(kMaxHeaderBytes, 'x')}}), Code::kInvalidArgument);
  for (ElementType type :
       {ElementType::kC128, ElementType::kS4, ElementType::kU2, ElementType::kF8E4M3,
        ElementType::kF8E3M4, ElementType::kF6E2M3FN, ElementType::kF8E4M3B11FNUZ}) {
    EXPECT_EQ(code({Array("a", type, {0}, "")}), Code::kUnimplemented) << TypeName(type);
  }
  EXPECT_EQ(folder.Names(), Names{});
}

TEST(Safetensors, AFailureLeavesTheOldFile) {
  TestFolder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(Write(path, std::vector{Array("a", ElementType::kU8, {1}, "x")}, {}).ok());
  const std::string old = Contents(path);
  const NewArray large = Array("a", ElementType::kU8, {1'000'000}, std::string(1'000'000, 'y'));
  // Elements that are not there.
  NewArray failing = Array("b", ElementType::kU8, {1}, "x");
  failing.elements = [] { return Result<const std::byte*>(FailedPrecondition("it is gone")); };
  const Status failed = Write(path, std::vector{large, failing}, {});
  EXPECT_EQ(failed.code(), Code::kFailedPrecondition);
  EXPECT_EQ(failed.message(), Cat("'", path, "': 'b': it is gone"));
  // A limit on the sizes of files.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 10'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = Write(path, std::vector{large}, {});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(full.code(), Code::kResourceExhausted) << full.ToString();
  // A folder without permission.
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  {
    AsNobody nobody;
    EXPECT_EQ(Write(path, std::vector{large}, {}).code(), Code::kPermissionDenied);
  }
  EXPECT_EQ(Contents(path), old);
  EXPECT_EQ(folder.Names(), Names{"file"});
}

TEST(Safetensors, AFileInUseIsReplaced) {
  TestFolder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(Write(path, std::vector{Array("a", ElementType::kU8, {2}, "xy")}, {}).ok());
  Result<Ref<File>> file = File::Open(path);
  ASSERT_TRUE(file.ok());
  NewArray same = Array("a", ElementType::kU8, {2}, "");
  same.elements = [&] { return (*file)->data((*file)->header().entries[0]).data(); };
  ASSERT_TRUE(Write(path, std::vector{same, Array("b", ElementType::kU8, {1}, "z")}, {}).ok());
  EXPECT_EQ(DataOf(**file, "a"), "xy");
  Result<Ref<File>> again = File::Open(path);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(DataOf(**again, "a"), "xy");
  EXPECT_EQ(DataOf(**again, "b"), "z");
}

}  // namespace
}  // namespace kiln::safetensors
