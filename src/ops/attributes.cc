#include "ops/attributes.h"

#include <algorithm>
#include <functional>

#include "base/strings.h"

namespace kiln {
namespace {

constexpr AttrInfo kInfos[] = {
#define KILN_ATTRIBUTE(Name, text, kind, doc) {Attr::k##Name, text, AttrKind::k##kind, doc},
#include "ops/attributes.def"
#undef KILN_ATTRIBUTE
};

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};

template <typename T>
const T& ValueOr(const AttrValue* value, const T& fallback) {
  const T* typed = value ? std::get_if<T>(value) : nullptr;
  return typed ? *typed : fallback;
}

void Mix(size_t& seed, size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2);
}

}  // namespace

Attributes::Attributes() = default;
Attributes::~Attributes() = default;
Attributes::Attributes(const Attributes& other) = default;
Attributes::Attributes(Attributes&& other) noexcept = default;
Attributes& Attributes::operator=(const Attributes& other) = default;
Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
bool Attributes::operator==(const Attributes& other) const = default;

std::string_view DirectionName(Direction direction) {
  return kDirections[static_cast<int>(direction)];
}

std::optional<Direction> DirectionByName(std::string_view name) {
  for (int i = 0; i < 6; ++i) {
    if (kDirections[i] == name) return static_cast<Direction>(i);
  }
  return std::nullopt;
}

Direction Flipped(Direction direction) {
  switch (direction) {
    case Direction::kEq:
    case Direction::kNe:
      return direction;
    case Direction::kGe:
      return Direction::kLe;
    case Direction::kGt:
      return Direction::kLt;
    case Direction::kLe:
      return Direction::kGe;
    case Direction::kLt:
      return Direction::kGt;
  }
  return direction;
}

const AttrInfo& InfoOf(Attr key) { return kInfos[static_cast<int>(key)]; }

const AttrInfo* AttrByName(std::string_view name) {
  for (const AttrInfo& info : kInfos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) Set(e.first, e.second);
}

void Attributes::Set(Attr key, AttrValue value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                             [](const Entry& e, Attr k) { return e.first < k; });
  if (at != entries_.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, {key, std::move(value)});
  }
}

void Attributes::Erase(Attr key) {
  std::erase_if(entries_, [key](const Entry& e) { return e.first == key; });
}

const AttrValue* Attributes::Find(Attr key) const {
  for (const Entry& e : entries_) {
    if (e.first == key) return &e.second;
  }
  return nullptr;
}

int64_t Attributes::Int(Attr key, int64_t absent) const {
  return ValueOr<int64_t>(Find(key), absent);
}

double Attributes::Float(Attr key) const { return ValueOr<double>(Find(key), 0); }

bool Attributes::Bool(Attr key) const { return ValueOr<bool>(Find(key), false); }

const Ints& Attributes::IntsOf(Attr key) const {
  static const Ints empty;
  return ValueOr(Find(key), empty);
}

Direction Attributes::DirectionOf(Attr key) const { return ValueOr(Find(key), Direction::kEq); }

const std::vector<SliceDimension>& Attributes::Slices(Attr key) const {
  static const std::vector<SliceDimension> empty;
  return ValueOr(Find(key), empty);
}

const std::vector<PaddingDimension>& Attributes::Padding(Attr key) const {
  static const std::vector<PaddingDimension> empty;
  return ValueOr(Find(key), empty);
}

const std::vector<WindowDimension>& Attributes::Window(Attr key) const {
  static const std::vector<WindowDimension> empty;
  return ValueOr(Find(key), empty);
}

const std::string& Attributes::Text(Attr key) const {
  static const std::string empty;
  const AttrValue* value = Find(key);
  const QuotedText* quoted = value ? std::get_if<QuotedText>(value) : nullptr;
  return quoted ? quoted->text : ValueOr(value, empty);
}

const std::vector<OperandAlias>& Attributes::Aliases(Attr key) const {
  static const std::vector<OperandAlias> empty;
  return ValueOr(Find(key), empty);
}

const SymbolicNumbers& Attributes::Symbolic() const {
  static const SymbolicNumbers empty;
  return ValueOr(Find(Attr::kSymbolic), empty);
}

const Dimension* Attributes::SymbolicAt(Attr key, int64_t position) const {
  // The last key of all: most instructions tell at once.
  if (entries_.empty() || entries_.back().first != Attr::kSymbolic) return nullptr;
  for (const SymbolicNumber& number : Symbolic()) {
    if (number.key == key && number.position == position) return &number.value;
  }
  return nullptr;
}

const Groups& Attributes::GroupsOf(Attr key) const {
  static const Groups empty;
  return ValueOr(Find(key), empty);
}

const ConvolutionDimensions& Attributes::Convolution(Attr key) const {
  static const ConvolutionDimensions empty;
  return ValueOr(Find(key), empty);
}

size_t Attributes::Hash() const {
  size_t seed = entries_.size();
  for (const Entry& e : entries_) {
    Mix(seed, static_cast<size_t>(e.first));
    Mix(seed, std::hash<std::string>()(AttrValueText(e.second)));
  }
  return seed;
}

namespace {

// Prints a value. Numbers that may be symbolic sizes are identified by their positions.
struct ValuePrinter {
  const Attributes* attributes = nullptr;  // null: there are none
  Attr key{};

  const Dimension* SymbolicAt(size_t position) const {
    return attributes ? attributes->SymbolicAt(key, static_cast<int64_t>(position)) : nullptr;
  }
  std::string Number(size_t position, int64_t plain) const {
    const Dimension* size = SymbolicAt(position);
    return size ? size->ToString() : Cat(plain);
  }

  std::string operator()(int64_t v) const { return Cat(v); }
  std::string operator()(const Ints& v) const {
    std::string out = "{";
    for (size_t i = 0; i < v.size(); ++i) out += Cat(i > 0 ? "," : "", Number(i, v[i]));
    return out + "}";
  }
  std::string operator()(bool v) const { return Cat(v); }
  std::string operator()(Direction v) const { return std::string(DirectionName(v)); }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(double v) const { return Cat(v); }
  std::string operator()(const Groups& v) const {
    std::string out = "{";
    for (size_t i = 0; i < v.size(); ++i) out += Cat(i > 0 ? ",{" : "{", Join(v[i], ","), "}");
    return out + "}";
  }
  std::string operator()(const ConvolutionDimensions& v) const { return v.ToString(); }
  std::string operator()(const QuotedText& v) const { return Cat("\"", EscapeC(v.text), "\""); }
  std::string operator()(const std::vector<OperandAlias>& v) const {
    std::string out = "{";
    for (const OperandAlias& a : v) {
      out += Cat(out.size() > 1 ? ", {" : "{", Join(a.output_index, ","), "}: (", a.operand, ", {",
                 Join(a.operand_index, ","), "})");
    }
    return out + "}";
  }
  std::string operator()(const SymbolicNumbers& v) const {
    std::string out = "{";
    for (const SymbolicNumber& n : v) {
      out += Cat(out.size() > 1 ? ", " : "", InfoOf(n.key).name, "[", n.position, "]=", n.value);
    }
    return out + "}";
  }
  // Strides and interior padding are written for all dimensions or for none.
  std::string operator()(const std::vector<SliceDimension>& v) const {
    bool strides = std::any_of(v.begin(), v.end(), [](const auto& s) { return s.stride != 1; });
    std::string out = "{";
    for (size_t i = 0; i < v.size(); ++i) {
      out +=
          Cat(i > 0 ? ", [" : "[", Number(3 * i, v[i].start), ":", Number(3 * i + 1, v[i].limit));
      if (strides) out += Cat(":", v[i].stride);
      out += "]";
    }
    return out + "}";
  }
  std::string operator()(const std::vector<PaddingDimension>& v) const {
    bool interior = std::any_of(v.begin(), v.end(), [](const auto& p) { return p.interior != 0; });
    // Names may have '_' and 'x' in them.
    auto number = [&](size_t position, int64_t plain) {
      const Dimension* size = SymbolicAt(position);
      return size ? Cat("(", *size, ")") : Cat(plain);
    };
    std::string out;
    for (size_t i = 0; i < v.size(); ++i) {
      out += Cat(i > 0 ? "x" : "", number(3 * i, v[i].low), "_", number(3 * i + 1, v[i].high));
      if (interior) out += Cat("_", v[i].interior);
    }
    return out;
  }
  // Defaults in all dimensions are omitted.
  std::string operator()(const std::vector<WindowDimension>& v) const {
    if (v.empty()) return "{}";
    std::string out = "{";
    auto add = [&](std::string_view name, const WindowDimension& usual, auto text) {
      bool differs = std::any_of(v.begin(), v.end(), [&](const WindowDimension& w) {
        return name == "size" || text(w) != text(usual);
      });
      if (!differs) return;
      out += Cat(out.size() > 1 ? " " : "", name, "=");
      for (size_t i = 0; i < v.size(); ++i) out += Cat(i > 0 ? "x" : "", text(v[i]));
    };
    add("size", {}, [](const WindowDimension& w) { return Cat(w.size); });
    add("stride", {}, [](const WindowDimension& w) { return Cat(w.stride); });
    add("pad", {}, [](const WindowDimension& w) { return Cat(w.low, "_", w.high); });
    add("lhs_dilate", {}, [](const WindowDimension& w) { return Cat(w.base_dilation); });
    add("rhs_dilate", {}, [](const WindowDimension& w) { return Cat(w.window_dilation); });
    add("rhs_reversal", {}, [](const WindowDimension& w) { return Cat(w.reversed ? 1 : 0); });
    return out + "}";
  }
};

}  // namespace

std::string AttrValueText(const AttrValue& value) { return std::visit(ValuePrinter{}, value); }

std::string AttributeText(const Attributes& attributes, Attr key) {
  const AttrValue* value = attributes.Find(key);
  return value ? std::visit(ValuePrinter{&attributes, key}, *value) : std::string();
}

}  // namespace kiln
