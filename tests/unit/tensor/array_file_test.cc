// Files of arrays: NumPy's forms, what is refused, and what is written.
#include "tensor/array_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "support/folder.h"
#include "tensor/safetensors.h"

namespace kiln {
namespace {

std::string Number(uint64_t number, size_t bytes) {
  return {reinterpret_cast<const char*>(&number), bytes};
}

std::string Npy(std::string_view descr, std::string_view order, std::string_view shape,
                std::string_view data) {
  const std::string header =
      Cat("{'descr': '", descr, "', 'fortran_order': ", order, ", 'shape': ", shape, ", }\n");
  return Cat(std::string_view("\x93NUMPY\x01\x00", 8), Number(header.size(), 2), header, data);
}

// An archive of stored members; `method` as in the format.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& members, int method = 0) {
  std::string bytes, directory;
  for (const auto& [name, data] : members) {
    const std::string common =
        Cat(Number(20, 2), Number(0, 2), Number(static_cast<uint64_t>(method), 2), Number(0, 8),
            Number(data.size(), 4), Number(data.size(), 4), Number(name.size(), 2));
    directory += Cat(std::string_view("PK\1\2"), Number(20, 2), common, Number(0, 2 + 2 + 2 + 2),
                     Number(0, 4), Number(bytes.size(), 4), name);
    bytes += Cat(std::string_view("PK\3\4"), common, Number(0, 2), name, data);
  }
  return Cat(bytes, directory, std::string_view("PK\5\6"), Number(0, 4), Number(members.size(), 2),
             Number(members.size(), 2), Number(directory.size(), 4), Number(bytes.size(), 4),
             Number(0, 2));
}

class ArrayFile : public ::testing::Test {
 protected:
  std::string Put(std::string_view bytes) {
    std::ofstream(folder_ / "file", std::ios::binary) << bytes;
    return folder_ / "file";
  }
  // The arrays as text, or the error without the path.
  std::string Read(std::string_view bytes) {
    const std::string path = Put(bytes);
    auto arrays = ReadArrays(path);
    if (!arrays.ok()) {
      std::string text = arrays.status().ToString();
      const size_t at = text.find(path);
      EXPECT_NE(at, std::string::npos) << text;
      if (at != std::string::npos) text.erase(at, path.size());
      const size_t colon = text.find(": : ");
      return colon == std::string::npos ? text : text.erase(colon, 2);
    }
    std::string text;
    for (const FileArray& a : *arrays) {
      text += Cat(a.name, a.is_bits ? " bits " : " ", a.literal.shape(), a.literal.ToString(), ";");
    }
    return text;
  }

  TestFolder folder_;
};

TEST_F(ArrayFile, NpyOfEachKind) {
  EXPECT_EQ(Read(Npy("<i2", "False", "(2, 2)",
                     Cat(Number(1, 2), Number(2, 2), Number(3, 2), Number(0xfffc, 2)))),
            " s16[2,2]{ { 1, 2 }, { 3, -4 } };");
  EXPECT_EQ(Read(Npy("|b1", "False", "(3,)", std::string_view("\0\1\2", 3))), " pred[3]{0, 1, 1};");
  EXPECT_EQ(Read(Npy("<f4", "False", "()", Number(0x3fc00000, 4))), " f32[]1.5;");
  EXPECT_EQ(Read(Npy("<f8", "False", "(0, 7)", "")),
            Cat(" f64[0,7]", Literal(Shape(ElementType::kF64, {0, 7})).ToString(), ";"));
  EXPECT_EQ(Read(Npy("<c8", "False", "(1,)", Cat(Number(0x3fc00000, 4), Number(0x40000000, 4)))),
            " c64[1]{(1.5, 2)};");
  EXPECT_EQ(Read(Npy("|V2", "False", "(1,)", Number(0x3fc0, 2))), " bits u16[1]{16320};");
}

TEST_F(ArrayFile, OtherOrdersAreConverted) {
  EXPECT_EQ(Read(Npy("|i1", "True", "(2, 3)", "\1\2\3\4\5\6")),
            " s8[2,3]{ { 1, 3, 5 }, { 2, 4, 6 } };");
  EXPECT_EQ(Read(Npy(">u4", "False", "(2,)", std::string_view("\0\0\1\2\0\0\0\3", 8))),
            " u32[2]{258, 3};");
  // Each part of a complex number by itself.
  EXPECT_EQ(Read(Npy(">c8", "False", "(1,)", std::string_view("\x3f\xc0\0\0\x40\0\0\0", 8))),
            " c64[1]{(1.5, 2)};");
  EXPECT_EQ(Read(Npy(">u2", "True", "(2, 2)", std::string_view("\0\1\0\2\0\3\0\4", 8))),
            " u16[2,2]{ { 1, 3 }, { 2, 4 } };");
}

TEST_F(ArrayFile, ElementsStayInTheFile) {
  const Literal value =
      Literal::Array<float>(Shape(ElementType::kF32, {3}), std::vector<float>{1, 2, 3});
  ASSERT_TRUE(WriteNpy(folder_ / "x.npy", value).ok());
  auto arrays = ReadArrays(folder_ / "x.npy");
  ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
  EXPECT_TRUE((*arrays)[0].literal.is_borrowed());
  EXPECT_EQ((*arrays)[0].literal, value);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(std::as_const((*arrays)[0].literal).data()) % 64, 0u);
}

TEST_F(ArrayFile, WrittenArraysReadBack) {
  for (ElementType type :
       {ElementType::kPred, ElementType::kS8, ElementType::kU64, ElementType::kF16,
        ElementType::kBF16, ElementType::kF64, ElementType::kC64, ElementType::kC128,
        ElementType::kF8E4M3FN, ElementType::kS4, ElementType::kF4E2M1FN}) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {5}, {2, 0}, {3, 2}}) {
      const Shape shape(type, std::span<const int64_t>(dims));
      const Literal value = Literal(shape).shape().num_elements() == 0 ? Literal(shape) : [&] {
        Literal made(shape);
        for (int64_t k = 0; k < made.byte_size(); ++k) {
          made.data()[k] = static_cast<std::byte>(k % 2);
        }
        return made;
      }();
      ASSERT_TRUE(WriteNpy(folder_ / "x.npy", value).ok());
      auto arrays = ReadArrays(folder_ / "x.npy");
      ASSERT_TRUE(arrays.ok()) << shape.ToString() << arrays.status().ToString();
      const FileArray& array = (*arrays)[0];
      const auto back = array.is_bits || array.literal.shape().type() == type
                            ? AsShape(array, shape)
                            : Result<Literal>(array.literal);
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      if (back->shape().type() == type) EXPECT_EQ(*back, value) << shape.ToString();
    }
  }
}

TEST_F(ArrayFile, BitsAreWhatTheProgramWants) {
  FileArray array{
      "", Literal::Array<uint16_t>(Shape(ElementType::kU16, {1}), std::vector<uint16_t>{0x3fc0}),
      true};
  auto bf16 = AsShape(array, Shape(ElementType::kBF16, {1}));
  ASSERT_TRUE(bf16.ok());
  EXPECT_EQ(bf16->ToString(), "{1.5}");
  EXPECT_FALSE(AsShape(array, Shape(ElementType::kF8E5M2, {1})).ok());
  EXPECT_FALSE(AsShape(array, Shape(ElementType::kBF16, {2})).ok());
  array.is_bits = false;
  EXPECT_TRUE(AsShape(array, Shape(ElementType::kBF16, {1})).ok());
  // A number is no bits of another type that NumPy has.
  auto refused = AsShape(array, Shape(ElementType::kF16, {1}));
  EXPECT_EQ(refused.status().ToString(), "INVALID_ARGUMENT: u16[1] in the place of f16[1]");
  FileArray bytes{
      "", Literal::Array<uint8_t>(Shape(ElementType::kU8, {2}), std::vector<uint8_t>{0xff, 0x17}),
      true};
  EXPECT_EQ(AsShape(bytes, Shape(ElementType::kS4, {2}))->ToString(), "{-1, 7}");
  EXPECT_EQ(AsShape(bytes, Shape(ElementType::kU4, {2}))->ToString(), "{15, 7}");
}

TEST_F(ArrayFile, Npz) {
  const std::string a = Npy("|u1", "False", "(2,)", "\1\2"), b = Npy("<i4", "False", "()", "abc");
  EXPECT_EQ(Read(Zip({{"w.npy", a}, {"sub/x", a}})), "w u8[2]{1, 2};sub/x u8[2]{1, 2};");
  EXPECT_EQ(Read(Zip({})), "");
  EXPECT_EQ(Read(Zip({{"b.npy", b}})),
            "INVALID_ARGUMENT: b.npy: has 3 bytes of elements, s32[] takes 4");
  EXPECT_EQ(Read(Zip({{"w.npy", a}}, 8)),
            "UNIMPLEMENTED: w.npy is compressed; numpy.savez writes archives that are not");
}

TEST_F(ArrayFile, Safetensors) {
  const std::string header =
      R"({"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"q":{"dtype":"F4","shape":[2],"data_offsets":[4,5]}})";
  EXPECT_EQ(Read(Cat(Number(header.size(), 8), header, "\xc0\x3f\x80\x3f\x21")),
            "w bf16[2]{1.5, 1};q f4e2m1fn[2]{0.5, 1};");
}

TEST_F(ArrayFile, WhatIsRefused) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "is no regular file, or empty"},
      {"\x93NUMPY\x01", "is no .npy"},
      {Npy("<f4", "False", "(2,)", "1234"), "has 4 bytes of elements, f32[2] takes 8"},
      {Npy("<f4", "False", "(1,)", "12345"), "has 5 bytes of elements, f32[1] takes 4"},
      {Npy("<f4", "False", "(4611686018427387904, 4)", ""), "INVALID_ARGUMENT"},
      {Npy("<f4", "False", "(-1,)", ""), "byte 61: expected a size"},
      {Npy("<f4", "Maybe", "(1,)", "1234"), "expected True or False"},
      {Npy("<U4", "False", "(1,)", "1234"), "UNIMPLEMENTED: the type '<U4'"},
      {Npy("<f16", "False", "(1,)", "1234"), "UNIMPLEMENTED: the type '<f16'"},
      {Npy("", "False", "(1,)", "1234"), "UNIMPLEMENTED: the type ''"},
      {Npy("<f4', 'descr': '<f4", "False", "(1,)", "1234"), "each once"},
      {Cat(std::string_view("\x93NUMPY\x01\x00\xff\xff", 10), "{}"), "the header is cut off"},
      {Cat(std::string_view("\x93NUMPY\x04\x00\x02\x00\x00\x00", 12), "{}"), "version 4"},
      {"PK\3\4 and no more", "an archive without a directory"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_NE(Read(bytes).find(expected), std::string::npos) << Read(bytes);
  }
  EXPECT_EQ(ReadArrays(folder_ / "none").status().code(), Code::kNotFound);
}

TEST_F(ArrayFile, DamagedArchives) {
  const std::string good =
      Zip({{"a.npy", Npy("|u1", "False", "(2,)", "\1\2")}, {"b", Npy("|u1", "False", "()", "\1")}});
  ASSERT_EQ(Read(good), "a u8[2]{1, 2};b u8[]1;");
  // Any cut and any changed byte: never a crash, and nothing from outside of the archive.
  const auto check = [](const std::string& archive) {
    auto entries = ReadZip(archive);
    if (!entries.ok()) return;
    for (const ZipEntry& entry : *entries) {
      EXPECT_GE(entry.bytes.data(), archive.data());
      EXPECT_LE(entry.bytes.data() + entry.bytes.size(), archive.data() + archive.size());
      auto header = ParseNpyHeader(entry.bytes);
      if (header.ok()) EXPECT_LE(header->data, entry.bytes.size());
    }
  };
  for (size_t size = 0; size < good.size(); ++size) check(good.substr(0, size));
  for (size_t at = 0; at < good.size(); ++at) {
    for (char flip : {'\x01', '\x80', '\xff'}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      check(bad);
    }
  }
  // Many members that are the same bytes.
  const std::string one = Zip({{"a", Npy("|u1", "False", "(2,)", "\1\2")}});
  const size_t directory = one.rfind("PK\1\2"), end = one.rfind("PK\5\6");
  const std::string entry = one.substr(directory, end - directory);
  std::string twice = Cat(one.substr(0, end), entry, one.substr(end));
  twice.replace(twice.rfind("PK\5\6") + 10, 2, Number(2, 2));
  EXPECT_EQ(Read(twice), "a u8[2]{1, 2};a u8[2]{1, 2};");
  std::string many = one.substr(0, end);
  for (int k = 1; k < 50; ++k) many += entry;
  many += one.substr(end);
  many.replace(many.rfind("PK\5\6") + 10, 2, Number(50, 2));
  EXPECT_EQ(Read(many), "INVALID_ARGUMENT: a overlaps another member");
}

}  // namespace
}  // namespace kiln
