// SHA-256 against the examples of FIPS 180-4 and lengths around a block.

#include "base/hash.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Hash, StandardExamples) {
  EXPECT_EQ(HexText(HashOf("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexText(HashOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexText(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexText(HashOf(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, PiecesMakeTheSame) {
  for (size_t length : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 200}) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>(i * 37);
    Sha256 bytes, halves;
    for (char c : text) bytes.Update({&c, 1});
    halves.Update(std::string_view(text).substr(0, length / 2));
    halves.Update(std::string_view(text).substr(length / 2));
    const Digest whole = HashOf(text);
    EXPECT_EQ(bytes.Finish(), whole) << length;
    EXPECT_EQ(halves.Finish(), whole) << length;
  }
}

TEST(Hash, InstructionsMakeTheSame) {
  std::string text;
  for (size_t i = 0; i < 1000; ++i) text += static_cast<char>(i * i % 251);
  for (size_t length = 0; length <= text.size(); ++length) {
    Sha256 portable = Sha256::Portable();
    portable.Update(std::string_view(text).substr(0, length));
    EXPECT_EQ(portable.Finish(), HashOf(std::string_view(text).substr(0, length))) << length;
  }
}

TEST(Hash, FieldsDoNotRunTogether) {
  Sha256 one, other;
  one.UpdateField("ab");
  one.UpdateField("c");
  other.UpdateField("a");
  other.UpdateField("bc");
  EXPECT_NE(one.Finish(), other.Finish());
}

}  // namespace
}  // namespace kiln
