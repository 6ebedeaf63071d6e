// What the reader of portable bytecode says of wrong input, and that none of it takes much time or
// memory; and the corpus of portable artifacts, against the text that each has beside it.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/mlir/print.h"
#include "stablehlo/text/text.h"
#include "support/bytecode_builder.h"
#include "support/labels.h"

namespace kiln::stablehlo {
namespace {

using Op = BytecodeBuilder::Op;

Status ReadStatus(std::string_view bytes) { return ReadBytecode(bytes).status(); }

// The status has this code, and all these parts in its message.
void ExpectError(const Status& status, Code code, std::initializer_list<std::string_view> parts) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  for (std::string_view part : parts) {
    EXPECT_NE(status.message().find(part), std::string_view::npos)
        << status.ToString() << "\nhas not: " << part;
  }
}

// A module whose function has this attribute.
std::string WithAttribute(BytecodeBuilder& b, uint64_t attribute) {
  const uint64_t ends = b.Operation("vhlo", "return_v1");
  const std::string ir = b.Module(0, {}, {}, {b.Encode({.name = ends})}, {{"test", attribute}});
  return b.Finish(ir);
}

std::string Sample() {
  BytecodeBuilder b;
  const uint64_t f32 = b.VhloType(VarInt(4));
  const uint64_t tensor = b.VhloType(VarInt(20) + SignedVarInts({2}) + VarInt(f32));
  Op constant{.name = b.Operation("vhlo", "constant_v1"), .results = {tensor}};
  constant.properties = {
      {"value", b.Vhlo(VarInt(15) + VarInt(tensor) + Blob({"\0\0\x80\x3f\0\0\0\x40", 8}))}};
  constant.location =
      b.Builtin(VarInt(11) + VarInt(b.BuiltinString("a.py")) + VarInt(7) + VarInt(3));
  Op add{.name = b.Operation("vhlo", "add_v1"), .operands = {0, 1}, .results = {tensor}};
  add.others = {{"test.note", b.VhloString("a note")}};
  Op loop{.name = b.Operation("vhlo", "while_v1"), .operands = {2}, .results = {tensor}};
  const uint64_t ends = b.Operation("vhlo", "return_v1");
  loop.regions = {b.Region(1, {tensor}, {b.Encode({.name = ends, .operands = {4}})}),
                  b.Region(1, {tensor}, {b.Encode({.name = ends, .operands = {4}})})};
  b.Resource("blob", VarInt(1) + Blob("abc"));
  const std::string ir = b.Module(4, {tensor}, {tensor},
                                  {b.Encode(constant), b.Encode(add), b.Encode(loop),
                                   b.Encode({.name = ends, .operands = {3}})});
  return b.Finish(ir);
}

TEST(StablehloBytecodeErrors, Versions) {
  auto with_producer = [](std::string_view producer) {
    BytecodeBuilder b;
    b.producer = std::string(producer);
    return ReadStatus(WithAttribute(b, b.VhloString("")));
  };
  for (std::string_view producer :
       {"StableHLO_v0.9.0", "StableHLO_v1.20.0", "StableHLO_v1.20.7", "MLIR20.0.0git", ""}) {
    EXPECT_TRUE(with_producer(producer).ok()) << producer;
  }
  ExpectError(with_producer("StableHLO_v9.9.9"), Code::kUnimplemented,
              {"VHLO version 9.9.9 is newer than 1.20.0"});
  ExpectError(with_producer("StableHLO_v1.21.0"), Code::kUnimplemented, {"1.21.0 is newer"});
  ExpectError(with_producer("StableHLO_v0.8.0"), Code::kUnimplemented,
              {"0.8.0 is older than 0.9.0"});
  ExpectError(with_producer("StableHLO_vnew"), Code::kInvalidArgument, {"'StableHLO_vnew'"});
  BytecodeBuilder b(7);
  ExpectError(ReadStatus(WithAttribute(b, b.VhloString(""))), Code::kUnimplemented,
              {"byte 4: the bytecode's format 7 is newer than 6"});
}

TEST(StablehloBytecodeErrors, UnknownNamesAndCodes) {
  BytecodeBuilder op;
  ExpectError(
      ReadStatus(
          op.Finish(op.Block({}, {op.Encode({.name = op.Operation("vhlo", "constant_v99")})}))),
      Code::kUnimplemented, {"byte ", "found 'vhlo.constant_v99', which no version of vhlo"});
  BytecodeBuilder plain;
  ExpectError(ReadStatus(plain.Finish(
                  plain.Block({}, {plain.Encode({.name = plain.Operation("stablehlo", "add")})}))),
              Code::kUnimplemented,
              {"found 'stablehlo.add'; this bytecode is not a portable artifact"});
  BytecodeBuilder attribute;
  ExpectError(ReadStatus(WithAttribute(attribute, attribute.Vhlo(VarInt(26)))),
              Code::kInvalidArgument,
              {"byte ", "found the code 26; expected one of vhlo's attributes"});
  BytecodeBuilder type;
  type.VhloType(VarInt(43));
  ExpectError(ReadStatus(WithAttribute(type, type.VhloString(""))), Code::kInvalidArgument,
              {"byte ", "found the code 43; expected one of vhlo's types"});
  BytecodeBuilder value;
  ExpectError(ReadStatus(WithAttribute(value, value.Vhlo(VarInt(13) + VarInt(0)))),
              Code::kInvalidArgument,
              {"found the value 0; expected one of stablehlo.rng_distribution"});
  BytecodeBuilder more;
  ExpectError(ReadStatus(WithAttribute(more, more.Vhlo(VarInt(2) + VarInt(1) + "x"))),
              Code::kInvalidArgument, {"found 1 bytes more; expected the end of an attribute"});
  BytecodeBuilder builtin;
  ExpectError(ReadStatus(WithAttribute(builtin, builtin.Builtin(VarInt(23)))),
              Code::kInvalidArgument,
              {"found the code 23; expected one of the builtin attributes"});
}

// The offset is that of the byte that is wrong.
TEST(StablehloBytecodeErrors, Offsets) {
  BytecodeBuilder b;
  const std::string bytes = WithAttribute(b, b.Vhlo("\x0d\x7f\x7f"));
  const size_t at = bytes.find("\x0d\x7f\x7f");
  ExpectError(ReadStatus(bytes), Code::kInvalidArgument, {Cat("byte ", at + 1, ": found ")});
}

TEST(StablehloBytecodeErrors, ThingsInsideThemselves) {
  BytecodeBuilder b;
  ExpectError(ReadStatus(WithAttribute(b, b.Vhlo(VarInt(1) + VarInts({0})))),
              Code::kInvalidArgument, {"contains itself"});
  BytecodeBuilder types;
  types.VhloType(VarInt(1) + VarInt(1));
  types.VhloType(VarInt(1) + VarInt(0));
  ExpectError(ReadStatus(WithAttribute(types, types.VhloString(""))), Code::kInvalidArgument,
              {"contains itself"});
  BytecodeBuilder deep;
  for (uint64_t i = 0; i < 5000; ++i) deep.Vhlo(VarInt(1) + VarInts({i + 1}));
  ExpectError(ReadStatus(WithAttribute(deep, deep.VhloString(""))), Code::kResourceExhausted,
              {"inside each other more than 120 deep"});
  // The other way round nothing is read by recursion, but the attributes are as deep.
  BytecodeBuilder up;
  uint64_t last = up.VhloString("");
  for (int i = 0; i < 5000; ++i) last = up.Vhlo(VarInt(1) + VarInts({last}));
  ExpectError(ReadStatus(WithAttribute(up, last)), Code::kResourceExhausted, {"100 deep"});
  // Each is two of the one before.
  BytecodeBuilder wide;
  last = wide.VhloString("");
  for (int i = 0; i < 60; ++i) last = wide.Vhlo(VarInt(1) + VarInts({last, last}));
  ExpectError(ReadStatus(WithAttribute(wide, last)), Code::kResourceExhausted, {"parts"});
}

TEST(StablehloBytecodeErrors, Values) {
  auto with = [](std::vector<uint64_t> operands, uint64_t values) {
    BytecodeBuilder b;
    const uint64_t f32 = b.VhloType(VarInt(4));
    const uint64_t tensor = b.VhloType(VarInt(20) + SignedVarInts({}) + VarInt(f32));
    Op add{.name = b.Operation("vhlo", "add_v1"), .operands = operands, .results = {tensor}};
    return ReadStatus(b.Finish(b.Module(values, {tensor}, {tensor}, {b.Encode(add)})));
  };
  EXPECT_TRUE(with({0, 0}, 2).ok());
  ExpectError(with({0, 1}, 2), Code::kInvalidArgument,
              {"found value 1; expected a value that is defined before"});
  ExpectError(with({0, 2}, 2), Code::kInvalidArgument, {"found value 2"});
  ExpectError(with({0, 0}, 1), Code::kInvalidArgument, {"found one value more"});
  ExpectError(with({0, 0}, 3), Code::kInvalidArgument, {"expected 1 values more"});
  ExpectError(with({0, 0}, uint64_t{1} << 40), Code::kInvalidArgument,
              {"found 1099511627776 values; expected at most "});
}

TEST(StablehloBytecodeErrors, Operations) {
  BytecodeBuilder b;
  Op slice{.name = b.Operation("vhlo", "slice_v1")};
  slice.others = {{"limit_indices", b.VhloString("")}};
  ExpectError(ReadStatus(b.Finish(b.Block({}, {b.Encode(slice)}))), Code::kInvalidArgument,
              {"found 'stablehlo.slice' without 'start_indices'; expected all its attributes"});
  BytecodeBuilder kind;
  const uint64_t text = kind.VhloString("");
  Op broadcast{.name = kind.Operation("vhlo", "broadcast_v1")};
  broadcast.properties = {{"broadcast_sizes", text}};
  ExpectError(ReadStatus(kind.Finish(kind.Block({}, {kind.Encode(broadcast)}))),
              Code::kInvalidArgument, {"expected elements as 'broadcast_sizes'"});
  BytecodeBuilder many;
  const uint64_t i64 = many.VhloType(VarInt(14));
  const uint64_t type = many.VhloType(VarInt(20) + SignedVarInts({int64_t{1} << 50}) + VarInt(i64));
  Op sizes{.name = many.Operation("vhlo", "broadcast_v1")};
  sizes.properties = {
      {"broadcast_sizes", many.Vhlo(VarInt(15) + VarInt(type) + Blob("\1\0\0\0\0\0\0\0"))}};
  ExpectError(ReadStatus(many.Finish(many.Block({}, {many.Encode(sizes)}))), Code::kInvalidArgument,
              {});
  BytecodeBuilder properties;
  Op other{.name = properties.Operation("my", "op")};
  other.properties = {{"", properties.VhloString("")}};
  ExpectError(ReadStatus(properties.Finish(properties.Block({}, {properties.Encode(other)}))),
              Code::kUnimplemented, {"the properties of 'my.op' are not implemented"});
  BytecodeBuilder nested;
  Op module{.name = nested.Operation("builtin", "module"), .isolated = true};
  for (int i = 0; i < 3; ++i) module.regions = {nested.Region(0, {}, {nested.Encode(module)})};
  ExpectError(ReadStatus(nested.Finish(nested.Block({}, {nested.Encode(module)}))),
              Code::kUnimplemented, {"modules inside modules"});
}

TEST(StablehloBytecodeErrors, RegionsInRegions) {
  BytecodeBuilder b;
  const uint64_t name = b.Operation("my", "op");
  std::string op = b.Encode({.name = name});
  for (int i = 0; i < 20000; ++i) op = b.Encode({.name = name, .regions = {b.Region(0, {}, {op})}});
  ExpectError(ReadStatus(b.Finish(b.Block({}, {op}))), Code::kResourceExhausted,
              {"regions are nested more than 100 deep"});
}

// The same long string, again and again.
TEST(StablehloBytecodeErrors, CopiesArePaidFor) {
  BytecodeBuilder b;
  const std::string text(1 << 16, 'x');
  for (int i = 0; i < 1 << 14; ++i) b.VhloString(text);
  ExpectError(ReadStatus(WithAttribute(b, b.VhloString(""))), Code::kResourceExhausted,
              {"strings and blobs are used again so often"});
  // A dictionary that all operations have.
  BytecodeBuilder wide;
  std::vector<std::pair<std::string, uint64_t>> names;
  std::vector<std::pair<std::string_view, uint64_t>> fields;
  const uint64_t unit = wide.Builtin(VarInt(7));
  for (int i = 0; i < 2000; ++i) names.emplace_back(Cat("n", i), unit);
  for (const auto& [key, value] : names) fields.emplace_back(key, value);
  const uint64_t dictionary = wide.Dictionary(fields);
  const std::string op =
      VarInt(wide.Operation("my", "op")) + "\1" + VarInt(wide.Unknown()) + VarInt(dictionary);
  ExpectError(ReadStatus(wide.Finish(wide.Block({}, std::vector<std::string>(20000, op)))),
              Code::kResourceExhausted, {"operations have so many attributes"});
}

TEST(StablehloBytecodeErrors, EveryTruncation) {
  const std::string sample = Sample();
  ASSERT_TRUE(ReadStatus(sample).ok()) << ReadStatus(sample).ToString();
  for (size_t size = 0; size < sample.size(); ++size) {
    const Status status = ReadStatus(std::string_view(sample).substr(0, size));
    ExpectError(status, Code::kInvalidArgument, {"byte ", "found ", "expected "});
  }
}

TEST(StablehloBytecodeErrors, EveryBit) {
  std::string sample = Sample();
  for (size_t i = 0; i < sample.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      sample[i] = static_cast<char>(sample[i] ^ (1 << bit));
      if (auto module = ReadBytecode(sample); module.ok()) mlir::ToText(**module);
      sample[i] = static_cast<char>(sample[i] ^ (1 << bit));
    }
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsTold = false;
#else
constexpr bool kMemoryIsTold = true;
#endif

// The most memory that the process had since the last call of Begin, in megabytes.
class PeakMemory {
 public:
  static void Begin() { std::ofstream("/proc/self/clear_refs") << "5"; }
  static int64_t Get() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      constexpr std::string_view kKey = "VmHWM:";
      if (line.starts_with(kKey)) return std::atoll(line.c_str() + kKey.size()) / 1024;
    }
    return 0;
  }
};

// Cuts, flips, bytes that are other ones, more or fewer: no input takes long or much.
void Damage(const std::vector<std::string>& seeds, int count) {
  std::mt19937_64 random(20);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  PeakMemory::Begin();
  const int64_t before = PeakMemory::Get();
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    std::string bytes = seeds[below(seeds.size())];
    switch (below(4)) {
      case 0:
        bytes.resize(below(bytes.size()));
        break;
      case 1:
        for (size_t n = 1 + below(4); n > 0; --n) {
          char& c = bytes[below(bytes.size())];
          c = static_cast<char>(c ^ 1 << below(8));
        }
        break;
      case 2:
        for (size_t n = 1 + below(4); n > 0; --n) {
          bytes[below(bytes.size())] = static_cast<char>(random());
        }
        break;
      default:
        bytes.insert(below(bytes.size()), below(9), static_cast<char>(random()));
        bytes.erase(below(bytes.size()), below(9));
    }
    const auto begin = std::chrono::steady_clock::now();
    auto module = ReadBytecode(bytes);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(seconds.count(), 5) << i;
    if (module.ok()) {
      ++taken;
      mlir::ToText(**module);
    } else {
      EXPECT_FALSE(module.status().message().empty());
    }
  }
  EXPECT_LT(taken, count / 2);
  if (kMemoryIsTold) {
    EXPECT_LT(PeakMemory::Get() - before, 100);
  }
}

TEST(StablehloBytecodeErrors, Damage) { Damage({Sample()}, 20000); }

// The folder's pairs; nothing where it is not at hand.
std::vector<std::filesystem::path> Artifacts() {
  std::vector<std::filesystem::path> files;
  const char* root = std::getenv("KILN_CONFORMANCE_DIR");
  if (!root || !*root) return files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(root) / "vhlo")) {
    if (entry.path().extension() == ".bc") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The files write out two values that are meant where nothing is written, and one attribute that
// the tree keeps as text with white space in it.
std::string WithoutDefaults(std::string text) {
  ReplaceAll(text, "api_version = 1 : i32, ", "");
  ReplaceAll(
      text,
      "{result_accuracy = #stablehlo.result_accuracy<atol = 0.0, rtol = 0.0, ulps = 0, mode = "
      "#stablehlo.result_accuracy_mode<DEFAULT>>} ",
      "");
  constexpr std::string_view kMesh = "#stablehlo.replica_group_mesh_axes<";
  for (size_t at = text.find(kMesh); at != std::string::npos; at = text.find(kMesh, at + 1)) {
    const size_t end = text.find("}", at);
    std::string joined;
    for (char c : text.substr(at, end - at)) {
      const bool space = c == ' ' || c == '\n';
      const bool open = joined.ends_with('<') || joined.ends_with('[') || joined.ends_with(' ');
      if (space && open) continue;
      if ((c == '>' || c == ']') && joined.ends_with(' ')) joined.pop_back();
      joined += space ? ' ' : c;
    }
    text.replace(at, end - at, joined);
  }
  return text;
}

TEST(CorpusStablehloBytecode, TreesAreThoseOfTheText) {
  const auto files = Artifacts();
  if (files.empty()) GTEST_SKIP() << "KILN_CONFORMANCE_DIR is not set: 7 files were not looked at";
  int equal = 0;
  for (const auto& file : files) {
    const std::string bytes = ReadFile(file);
    if (file.filename().string().starts_with("invalid")) {
      ExpectError(ReadStatus(bytes), Code::kUnimplemented, {"VHLO version 2.0.0 is newer than"});
      // Were it not for the version, its operation would be named.
      std::string older = bytes;
      older.replace(older.find("v2.0.0"), 6, "v1.0.0");
      ExpectError(ReadStatus(older), Code::kUnimplemented, {"byte 125: found 'vhlo.constant_v99'"});
      continue;
    }
    auto module = ReadBytecode(bytes);
    ASSERT_TRUE(module.ok()) << file << ": " << module.status().ToString();
    auto text = ReadText(ReadFile(std::filesystem::path(file).replace_extension()));
    ASSERT_TRUE(text.ok()) << file << ": " << text.status().ToString();
    EXPECT_EQ(mlir::ToText(**module), WithoutDefaults(mlir::ToText(**text))) << file;
    ++equal;
  }
  std::cout << equal << " of " << files.size() << " files are the modules that their text shows\n";
  EXPECT_GE(equal, 6);
}

TEST(CorpusStablehloBytecode, Damage) {
  std::vector<std::string> seeds;
  for (const auto& file : Artifacts()) seeds.push_back(ReadFile(file));
  if (seeds.empty()) GTEST_SKIP() << "KILN_CONFORMANCE_DIR is not set: 7 files were not looked at";
  Damage(seeds, 5000);
}

KILN_LABEL(corpus, "CorpusStablehloBytecode");

}  // namespace
}  // namespace kiln::stablehlo
