// Mutations of text: words that stand for types, ops, numbers, names and lists, exchanged.
#include <algorithm>
#include <regex>
#include <string_view>

#include "mutate.h"

namespace kiln::fuzz {
namespace {

constexpr const char* kNumbers[] = {"0",
                                    "1",
                                    "2",
                                    "3",
                                    "4",
                                    "7",
                                    "8",
                                    "16",
                                    "31",
                                    "33",
                                    "64",
                                    "65",
                                    "127",
                                    "256",
                                    "-1",
                                    "-2",
                                    "-128",
                                    "1000000",
                                    "2147483647",
                                    "2147483648",
                                    "4294967296",
                                    "4611686018427387904",
                                    "9223372036854775807",
                                    "-9223372036854775808"};
constexpr const char* kHloTypes[] = {"pred", "s4",  "s8",   "s16",      "s32",    "s64",  "u4",
                                     "u8",   "u16", "u32",  "u64",      "f16",    "bf16", "f32",
                                     "f64",  "c64", "c128", "f8e4m3fn", "f8e5m2", "token"};
constexpr const char* kMlirTypes[] = {"i1",   "i8",           "i16",      "i32", "i64",  "ui8",
                                      "ui16", "ui32",         "ui64",     "f16", "bf16", "f32",
                                      "f64",  "complex<f32>", "f8E4M3FN", "i4",  "index"};
constexpr const char* kLists[] = {"{}", "{0}", "{1}", "{0,1}", "{1,0}", "{2,1,0}", "{0,0}", "{-1}"};
constexpr const char* kArrays[] = {"[]", "[0]", "[1]", "[0, 1]", "[1, 0]", "[2, 1, 0]", "[-1]"};

struct Place {
  size_t at, length;
};

std::vector<Place> Places(const std::string& text, const std::regex& pattern) {
  std::vector<Place> places;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern);
       it != std::sregex_iterator(); ++it) {
    places.push_back({static_cast<size_t>(it->position()), static_cast<size_t>(it->length())});
  }
  return places;
}

const std::regex& HloType() {
  static const std::regex pattern(R"(\b(pred|[suf]\d+|bf16|c64|c128|f8e\w+)(?=\[))");
  return pattern;
}
const std::regex& MlirType() {
  static const std::regex pattern(R"(\b(u?i\d+|b?f\d+)(?=[>,]))");
  return pattern;
}
const std::regex& HloOp() {
  static const std::regex pattern(R"(\b[a-z][a-z\-]+(?=\())");
  return pattern;
}
const std::regex& MlirOp() {
  static const std::regex pattern(R"((stablehlo|chlo)\.\w+)");
  return pattern;
}
const std::regex& Number() {
  static const std::regex pattern(R"(-?\b\d+\b)");
  return pattern;
}
const std::regex& Name() {
  static const std::regex pattern(R"(%[\w.\-]+)");
  return pattern;
}
const std::regex& List() {
  static const std::regex pattern(R"(\{[\d, ]*\})");
  return pattern;
}
const std::regex& Array() {
  static const std::regex pattern(R"(\[[\d, \-]*\])");
  return pattern;
}

}  // namespace

std::string Mutator::Text(const std::string& text, const std::string& other, bool is_hlo) {
  auto replace = [&](const Place& place, std::string_view with) {
    return std::string(text).replace(place.at, place.length, with);
  };
  auto one_of = [&](const auto& choices) -> std::string_view {
    return choices[Below(std::size(choices))];
  };
  // One place, and what stands in another.
  auto exchange = [&](const std::regex& pattern, const std::string& source) {
    const std::vector<Place> to = Places(text, pattern), from = Places(source, pattern);
    if (to.empty() || from.empty()) return text;
    const Place& taken = from[Below(from.size())];
    return replace(to[Below(to.size())], std::string_view(source).substr(taken.at, taken.length));
  };
  auto put = [&](const std::regex& pattern, const auto& choices) {
    const std::vector<Place> places = Places(text, pattern);
    return places.empty() ? text : replace(places[Below(places.size())], one_of(choices));
  };
  switch (Below(9)) {
    case 0:
    case 1:
      return put(Number(), kNumbers);
    case 2:
      return is_hlo ? put(HloType(), kHloTypes) : put(MlirType(), kMlirTypes);
    case 3:
      return exchange(is_hlo ? HloOp() : MlirOp(), Chance(50) ? text : other);
    case 4:
      return exchange(Name(), text);
    case 5:
      return is_hlo ? put(List(), kLists) : put(Array(), kArrays);
    case 6: {  // a number, everywhere
      const std::vector<Place> places = Places(text, Number());
      if (places.empty()) return text;
      const Place& place = places[Below(places.size())];
      const std::string number = text.substr(place.at, place.length);
      const std::string_view with = kNumbers[Below(12)];
      std::string out;
      size_t done = 0;
      for (const Place& p : places) {
        if (text.compare(p.at, p.length, number) != 0) continue;
        out.append(text, done, p.at - done).append(with);
        done = p.at + p.length;
      }
      return out.append(text, done);
    }
    case 7: {  // a line goes, comes twice, or comes from elsewhere
      std::vector<std::string> lines;
      auto split = [](const std::string& from) {
        std::vector<std::string> all;
        for (size_t at = 0; at <= from.size();) {
          const size_t end = std::min(from.find('\n', at), from.size());
          all.push_back(from.substr(at, end - at));
          at = end + 1;
        }
        return all;
      };
      lines = split(text);
      const auto at = lines.begin() + static_cast<std::ptrdiff_t>(Below(lines.size()));
      if (Chance(40)) {
        lines.erase(at);
      } else {
        const std::vector<std::string> from = Chance(50) ? lines : split(other);
        lines.insert(at, from[Below(from.size())]);
      }
      std::string out;
      for (const std::string& line : lines) out += line + "\n";
      return out;
    }
    default: {  // a piece goes, or comes several times
      const size_t at = Below(text.size()), length = 1 + Below(30);
      if (Chance(50)) return std::string(text).erase(at, length);
      std::string out = text;
      const std::string piece = text.substr(at, length);
      for (size_t k = 1 + Below(3); k > 0; --k) out.insert(at, piece);
      return out;
    }
  }
}

}  // namespace kiln::fuzz
