#include "ir/digest.h"

#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>

#include "base/varint.h"
#include "ir/instruction_map.h"

namespace kiln::ir {
namespace {

// Literals of more bytes take part by a digest of their own, made once for each.
constexpr int64_t kMostBytesInPlace = 256;

// Writes a text from which all could be read again, so that it is unambiguous: numbers end
// themselves, and lists, texts and variants follow their length or kind.
class Writer {
 public:
  explicit Writer(const Module& module) {
    const auto& computations = module.computations();
    for (size_t c = 0; c < computations.size(); ++c) numbers_[computations[c].get()] = c + 1;
    Put(StemOf(module.name()));
    Put(module.is_scheduled());
    Put(NumberOf(module.entry()));
    Put(module.aliases());
    Number(computations.size());
    for (const auto& c : computations) Put(*c, c.get() == module.entry());
  }

  // Without names; callees stand where they are first called.
  explicit Writer(const Computation& c) : is_form_(true) { Put(c, false); }

  std::string Text() && { return std::move(text_); }

  Digest Finish() {
    Flush();
    return hash_.Finish();
  }

 private:
  static constexpr size_t kMostBytes = 1 << 16;

  void Flush() {
    hash_.Update(text_);
    text_.clear();
  }
  void Number(uint64_t number) {
    // Most are short.
    number < 0x80 ? text_.push_back(static_cast<char>(number)) : AppendVarint(text_, number);
  }
  // Called from everywhere: not inlined for the code's size.
  [[gnu::noinline]] void Put(std::string_view text) {
    Number(text.size());
    text_ += text;
  }
  void Put(const std::string& text) { Put(std::string_view(text)); }
  void Put(const QuotedText& quoted) { Put(quoted.text); }
  void Put(double number) { text_.append(reinterpret_cast<const char*>(&number), sizeof(number)); }
  template <typename T>
  requires(std::is_enum_v<T> || std::is_integral_v<T>) void Put(T value) {
    Number(std::is_signed_v<T> ? ZigZag(static_cast<int64_t>(value))
                               : static_cast<uint64_t>(value));
  }
  template <typename T>
  void Put(const std::vector<T>& list) {
    Number(list.size());
    for (const T& value : list) Put(value);
  }
  template <typename... T>
  void PutAll(const T&... values) {
    (Put(values), ...);
  }

  void Put(const SliceDimension& s) { PutAll(s.start, s.limit, s.stride); }
  void Put(const PaddingDimension& p) { PutAll(p.low, p.high, p.interior); }
  void Put(const WindowDimension& w) {
    PutAll(w.size, w.stride, w.low, w.high, w.base_dilation, w.window_dilation, w.reversed);
  }
  void Put(const ConvolutionDimensions& c) {
    PutAll(c.input_batch, c.input_feature, c.input_spatial, c.kernel_input_feature,
           c.kernel_output_feature, c.kernel_spatial, c.output_batch, c.output_feature,
           c.output_spatial);
  }
  void Put(const OperandAlias& a) { PutAll(a.output_index, a.operand, a.operand_index); }
  void Put(const InputOutputAlias& a) {
    PutAll(a.output_index, a.parameter, a.parameter_index, a.must_alias);
  }
  void Put(const SymbolicNumber& s) { PutAll(s.key, s.position, s.value); }
  void Put(const Dimension& d) {
    PutAll(d.is_bounded(), d.size());
    if (d.is_symbolic()) Put(d.ToString());
  }
  void Put(const Shape& shape) {
    Put(shape.is_array() ? 0u : shape.is_tuple() ? 1u : 2u);
    if (shape.is_tuple()) Put(shape.elements());
    if (shape.is_array()) PutAll(shape.type(), shape.dimensions(), shape.minor_to_major());
  }
  void Put(const Attributes& attributes) {
    Number(attributes.entries().size());
    for (const auto& [key, value] : attributes.entries()) {
      Put(key);
      Number(value.index());
      std::visit([this](const auto& v) { Put(v); }, value);
    }
  }
  void Put(const Literal& literal) {
    Put(literal.shape());
    if (literal.shape().is_tuple()) return Put(literal.elements());
    const std::string_view bytes(reinterpret_cast<const char*>(literal.data()),
                                 static_cast<size_t>(literal.byte_size()));
    Number(bytes.size());
    if (literal.byte_size() <= kMostBytesInPlace) {
      text_ += bytes;
      return;
    }
    auto [known, is_new] = literals_.try_emplace(&literal);
    if (is_new) known->second = HashOf(bytes);
    text_.append(reinterpret_cast<const char*>(known->second.data()), known->second.size());
  }

  // 0: none of the module's.
  size_t NumberOf(const Computation* computation) const {
    const auto it = numbers_.find(computation);
    return it == numbers_.end() ? 0 : it->second;
  }

  void Put(const Computation& c, bool is_entry) {
    InstructionMap<uint64_t> places(c);
    uint64_t next = 0;
    for (const Instruction* i : c.instructions()) places[i] = ++next;
    auto place = [&](const Instruction* i) {
      const uint64_t* found = i ? places.Find(i) : nullptr;
      Number(found ? *found : 0);
    };
    auto list = [&](auto instructions) {
      Number(instructions.size());
      for (const Instruction* i : instructions) place(i);
    };
    Number(next);
    place(c.root());
    list(c.parameters());
    for (const Instruction* i : c.instructions()) {
      Put(i->opcode());
      Put(i->shape());
      list(i->operands());
      list(i->control_predecessors());
      Number(i->called().size());
      for (const Computation* called : i->called()) {
        Number(NumberOf(called));
        if (is_form_ && numbers_.try_emplace(called, numbers_.size() + 1).second) {
          Put(*called, false);
        }
      }
      Put(i->attributes());
      if (!is_form_) {
        const bool is_named = is_entry && i->opcode() == Opcode::kParameter;
        Put(is_named ? std::string_view(i->name()) : StemOf(i->name()));
        Put(i->op_name());
      }
      Put(i->shared_literal() != nullptr);
      if (i->shared_literal()) Put(i->literal());
      if (!is_form_ && text_.size() > kMostBytes) Flush();
    }
  }

  const bool is_form_ = false;
  Sha256 hash_;
  std::string text_;
  std::unordered_map<const Computation*, size_t> numbers_;
  std::unordered_map<const Literal*, Digest> literals_;
};

}  // namespace

std::string_view StemOf(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  const bool is_numbered = last != std::string_view::npos && last > 0 && name[last] == '.';
  return is_numbered && last + 1 < name.size() ? name.substr(0, last) : name;
}

Digest DigestOf(const Module& module) { return Writer(module).Finish(); }
std::string FormOf(const Computation& computation) { return Writer(computation).Text(); }

}  // namespace kiln::ir
