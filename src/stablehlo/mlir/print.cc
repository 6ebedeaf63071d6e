#include "stablehlo/mlir/print.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "stablehlo/mlir/floats.h"
#include "stablehlo/mlir/records.h"

namespace kiln::mlir {
namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

void AppendHexByte(std::string& out, char c) {
  out += kHexDigits[(c >> 4) & 15];
  out += kHexDigits[c & 15];
}

// In quotes, with unprintable characters as two hexadecimal digits.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ||
        static_cast<unsigned char>(c) >= 0x7f) {
      out += '\\';
      AppendHexByte(out, c);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

bool IsBareWord(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '$') return false;
  }
  return true;
}

// "f", "m::f": each part is a symbol of its own.
std::string SymbolText(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = text.find("::");
    const std::string_view part = text.substr(0, end);
    out += Cat("@", IsBareWord(part) ? std::string(part) : Quoted(part));
    if (end == std::string_view::npos) return out;
    out += "::";
    text.remove_prefix(end + 2);
  }
}

std::string HexBits(uint64_t bits, int64_t size) {
  std::string out = "0x";
  for (int64_t i = size - 1; i >= 0; --i) AppendHexByte(out, static_cast<char>(bits >> (8 * i)));
  return out;
}

uint64_t LoadBits(const char* from, int64_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(size));
  return bits;
}

std::string FloatElementText(FloatKind kind, uint64_t bits) {
  const double value = DecodeFloat(kind, bits);
  if (!std::isfinite(value)) return HexBits(bits, (FormatOf(kind).bits + 7) / 8);
  // A float has fewer digits than a double with the same value.
  if (kind != FloatKind::kF32) return FloatText(value);
  std::string text = Cat(static_cast<float>(value));
  const size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos) {
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

std::string ElementText(const Type& type, const char* from) {
  const int64_t size = ElementBytes(type);
  if (type.is(TypeKind::kComplex)) {
    return Cat("(", ElementText(*type.element, from), ",",
               ElementText(*type.element, from + size / 2), ")");
  }
  const uint64_t bits = LoadBits(from, size);
  if (type.is(TypeKind::kFloat)) return FloatElementText(type.float_kind, bits);
  if (type.is_bool()) return bits != 0 ? "true" : "false";
  if (type.signedness == Signedness::kUnsigned) return Cat(bits);
  const int shift = static_cast<int>(64 - 8 * size);
  return Cat(static_cast<int64_t>(bits << shift) >> shift);
}

// Nested lists of the elements from dimension `d` on.
void AppendList(const Attribute& attribute, size_t d, size_t& at, std::string& out) {
  const Type& tensor = *attribute.type;
  if (d == tensor.dimensions.size()) {
    out += ElementText(*tensor.element, attribute.elements().data() + at);
    at += static_cast<size_t>(ElementBytes(*tensor.element));
    return;
  }
  out += "[";
  for (int64_t i = 0; i < tensor.dimensions[d]; ++i) {
    if (i > 0) out += ", ";
    AppendList(attribute, d + 1, at, out);
  }
  out += "]";
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void Print(const Operation& operation, size_t indent);
  void Print(const Attribute& attribute);
  std::string Take() { return std::move(out_); }

 private:
  void PrintElements(const Attribute& attribute);
  void PrintFields(const AttributeList& fields);
  void PrintField(const Attribute& field);
  void PrintRegion(const Region& region, size_t indent);
  std::string NameOf(const Value* value);
  void PrintTypes(const std::vector<Value*>& values);

  const PrintOptions& options_;
  std::string out_;
  // In the order of the values, independent of the tree's origin.
  std::unordered_map<const Value*, int64_t> numbers_;
};

void Printer::PrintElements(const Attribute& attribute) {
  out_ += "dense<";
  const Type& element = *attribute.type->element;
  if (attribute.elements().empty()) {
    // Nothing.
  } else if (attribute.splat) {
    out_ += ElementText(element, attribute.bytes.data());
  } else if (attribute.type->num_elements() <= options_.max_listed_elements) {
    size_t at = 0;
    AppendList(attribute, 0, at, out_);
  } else {
    out_ += "\"0x";
    for (char c : attribute.elements()) AppendHexByte(out_, c);
    out_ += "\"";
  }
  out_ += Cat("> : ", *attribute.type);
}

void Printer::PrintFields(const AttributeList& fields) {
  bool first = true;
  for (const NamedAttribute& field : fields) {
    if (!first) out_ += ", ";
    first = false;
    out_ += IsBareWord(field.name) ? std::string(field.name) : Quoted(field.name);
    if (field.value->is(AttributeKind::kUnit)) continue;
    out_ += " = ";
    Print(*field.value);
  }
}

// Fields of records have no types beside them, and "?" in their lists.
void Printer::PrintField(const Attribute& field) {
  if (field.is(AttributeKind::kInteger)) {
    out_ += Cat(field.integer);
  } else if (field.is(AttributeKind::kFloat)) {
    out_ += FloatText(field.number);
  } else if (std::optional<std::vector<int64_t>> list = IntsOf(field)) {
    out_ += "[";
    for (size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += (*list)[i] == kDynamic ? "?" : Cat((*list)[i]);
    }
    out_ += "]";
  } else {
    Print(field);
  }
}

void Printer::Print(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kUnit:
      out_ += "unit";
      return;
    case AttributeKind::kBool:
      out_ += attribute.boolean ? "true" : "false";
      return;
    case AttributeKind::kInteger:
      if (attribute.type->signedness == Signedness::kUnsigned) {
        out_ += Cat(static_cast<uint64_t>(attribute.integer), " : ", *attribute.type);
      } else {
        out_ += Cat(attribute.integer, " : ", *attribute.type);
      }
      return;
    case AttributeKind::kFloat: {
      const FloatKind kind = attribute.type->float_kind;
      out_ += Cat(FloatElementText(kind, EncodeFloat(kind, attribute.number).value_or(0)), " : ",
                  *attribute.type);
      return;
    }
    case AttributeKind::kString:
      out_ += Quoted(attribute.text);
      return;
    case AttributeKind::kSymbol:
      out_ += SymbolText(attribute.text);
      return;
    case AttributeKind::kType:
      out_ += attribute.type->ToString();
      return;
    case AttributeKind::kArray: {
      out_ += "[";
      bool first = true;
      for (const Attribute* item : attribute.items) {
        if (!first) out_ += ", ";
        first = false;
        Print(*item);
      }
      out_ += "]";
      return;
    }
    case AttributeKind::kDictionary:
      out_ += "{";
      PrintFields(attribute.fields);
      out_ += "}";
      return;
    case AttributeKind::kDenseArray: {
      out_ += Cat("array<", *attribute.type);
      const auto size = static_cast<size_t>(ElementBytes(*attribute.type));
      for (size_t at = 0; at < attribute.bytes.size(); at += size) {
        out_ += at == 0 ? ": " : ", ";
        out_ += ElementText(*attribute.type, attribute.bytes.data() + at);
      }
      out_ += ">";
      return;
    }
    case AttributeKind::kElements:
      PrintElements(attribute);
      return;
    case AttributeKind::kEnum: {
      const size_t dot = attribute.name.find('.');
      if (attribute.name == "stablehlo.result_accuracy_mode") {
        out_ += Cat("#", attribute.name, "<", attribute.text, ">");
        return;
      }
      out_ += Cat("#", attribute.name.substr(0, dot), "<", attribute.name.substr(dot + 1), " ",
                  attribute.text, ">");
      return;
    }
    case AttributeKind::kRecord: {
      const bool bounds = attribute.name == "stablehlo.bounds";
      out_ += Cat("#", bounds ? "stablehlo.type_extensions" : attribute.name,
                  attribute.name == "stablehlo.conv" ? "<raw " : "<");
      bool first = true;
      for (std::string_view word : Split(RecordFields(attribute.name), ' ')) {
        const std::string_view field = word.substr(0, word.find(':'));
        const Attribute* value = Find(attribute.fields, field);
        if (!value) continue;
        out_ += Cat(first ? "" : ", ", field, " = ");
        first = false;
        PrintField(*value);
      }
      out_ += ">";
      return;
    }
    case AttributeKind::kOpaque:
      out_ += attribute.text;
      return;
  }
}

std::string Printer::NameOf(const Value* value) {
  // Values are numbered at their definition, so a value without a number is not in the tree.
  auto found = numbers_.find(value);
  return found == numbers_.end() ? "%<<undefined>>" : Cat("%", found->second);
}

void Printer::PrintTypes(const std::vector<Value*>& values) {
  out_ += "(";
  for (size_t i = 0; i < values.size(); ++i) {
    out_ += Cat(i > 0 ? ", " : "", *values[i]->type);
  }
  out_ += ")";
}

void Printer::PrintRegion(const Region& region, size_t indent) {
  out_ += "{\n";
  for (size_t i = 0; i < region.blocks.size(); ++i) {
    const Block& block = *region.blocks[i];
    if (i > 0 || !block.arguments.empty() || block.operations.empty()) {
      out_ += Cat(std::string(indent, ' '), "^bb", i);
      for (size_t a = 0; a < block.arguments.size(); ++a) {
        const auto number = static_cast<int64_t>(numbers_.size());
        numbers_[block.arguments[a]] = number;
        out_ += Cat(a == 0 ? "(%" : ", %", number, ": ", *block.arguments[a]->type);
      }
      out_ += block.arguments.empty() ? ":\n" : "):\n";
    }
    for (const Operation* operation : block.operations) Print(*operation, indent + 2);
  }
  out_ += std::string(indent, ' ') + "}";
}

void Printer::Print(const Operation& operation, size_t indent) {
  out_ += std::string(indent, ' ');
  for (size_t i = 0; i < operation.results.size(); ++i) {
    const auto number = static_cast<int64_t>(numbers_.size());
    numbers_[operation.results[i]] = number;
    out_ += Cat(i > 0 ? ", %" : "%", number);
  }
  out_ += Cat(operation.results.empty() ? "" : " = ", Quoted(operation.name), "(");
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    out_ += Cat(i > 0 ? ", " : "", NameOf(operation.operands[i]));
  }
  out_ += ")";
  for (size_t i = 0; i < operation.regions.size(); ++i) {
    out_ += i > 0 ? ", " : " (";
    PrintRegion(*operation.regions[i], indent);
  }
  if (!operation.regions.empty()) out_ += ")";
  if (!operation.attributes.empty()) {
    out_ += " {";
    PrintFields(operation.attributes);
    out_ += "}";
  }
  out_ += " : ";
  PrintTypes(operation.operands);
  out_ += " -> ";
  PrintTypes(operation.results);
  if (options_.sources && operation.source) out_ += Cat(" ", *operation.source);
  out_ += "\n";
}

}  // namespace

std::string Source::ToString() const {
  const std::string place = file.empty() ? "" : Cat(Quoted(file), ":", line, ":", column);
  if (name.empty()) return Cat("loc(", place.empty() ? "unknown" : place, ")");
  return place.empty() ? Cat("loc(", Quoted(name), ")")
                       : Cat("loc(", Quoted(name), "(", place, "))");
}

std::string Source::Describe() const {
  if (file.empty()) return name;
  return Cat(name, name.empty() ? "" : " at ", file, ":", line);
}

std::string ToText(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.Print(*module.root(), 0);
  return printer.Take();
}

std::string ToText(const Attribute& attribute, const PrintOptions& options) {
  Printer printer(options);
  printer.Print(attribute);
  return printer.Take();
}

}  // namespace kiln::mlir
