// The stand-in's kernels that set conditions of graphs: their PTX, instruction by instruction, as
// one thread does it. It knows the instructions that such kernels are made of.
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "state.h"

namespace kiln::device::cuda {
namespace {

class Thread {
 public:
  Thread(State& state, const GraphNodeObject& node) : state_(state), node_(node) {
    // Instructions are separated by semicolons; labels and braces stand on lines of their own.
    std::istringstream text(node.function->body);
    for (std::string line; std::getline(text, line);) {
      for (char& c : line) {
        if (std::strchr(",;()[]\t", c) != nullptr) c = ' ';
      }
      std::istringstream words(line);
      std::vector<std::string> split;
      for (std::string word; words >> word;) split.push_back(word);
      if (!split.empty()) lines_.push_back(split);
    }
  }

  Error Run() {
    for (size_t steps = 0; at_ < lines_.size() && steps < 1000; ++steps) {
      std::vector<std::string> words = lines_[at_++];
      if (words[0][0] == '@') {
        if (Value(words[0].substr(1)) == 0) continue;
        words.erase(words.begin());
      }
      if (words[0] == "ret") return Error::kSuccess;
      if (Error error = Do(words); error != Error::kSuccess) return error;
    }
    return Error::kInvalidPc;
  }

 private:
  uint64_t Value(const std::string& operand) {
    return operand[0] == '%' ? registers_[operand] : std::strtoull(operand.c_str(), nullptr, 0);
  }

  Error Load(const std::string& to, uint64_t address, size_t bytes) {
    if (state_.Holder(address, static_cast<int64_t>(bytes)) == nullptr) {
      return Error::kIllegalAddress;
    }
    if (address % bytes != 0) return Error::kMisalignedAddress;
    uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<void*>(address), bytes);
    registers_[to] = value;
    return Error::kSuccess;
  }

  Error Do(const std::vector<std::string>& words) {
    const std::string& op = words[0];
    auto value = [&](size_t i) { return Value(words[i]); };
    auto word = [&](size_t i) { return static_cast<uint32_t>(Value(words[i])); };
    if (op[0] == '.' || op == "{" || op == "}" || op.back() == ':') return Error::kSuccess;
    if (op == "ld.param.u64" || op == "ld.param.u32") {
      const auto& parameters = node_.function->parameters;
      for (size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].first != words[2]) continue;
        if (parameters[i].second != (op == "ld.param.u64" ? 8u : 4u)) return Error::kInvalidPtx;
        registers_[words[1]] = node_.args[i];
        return Error::kSuccess;
      }
      return Error::kInvalidPtx;
    }
    if (op == "bra" || op == "bra.uni") {
      for (size_t i = 0; i < lines_.size(); ++i) {
        if (lines_[i][0] != words[1] + ":") continue;
        at_ = i;
        return Error::kSuccess;
      }
      return Error::kInvalidPtx;
    }
    if (op == "ld.global.u32") return Load(words[1], value(2), 4);
    if (op == "ld.global.u8") return Load(words[1], value(2), 1);
    uint64_t& to = registers_[words[1]];
    if (op == "cvta.to.global.u64" || op == "st.param.b64" || op == "st.param.b32") {
      to = value(2);
    } else if (op == "setp.eq.u32") {
      to = word(2) == word(3);
    } else if (op == "setp.ne.u32") {
      to = word(2) != word(3);
    } else if (op == "sub.u32") {
      to = word(2) - word(3);
    } else if (op == "min.u32") {
      to = std::min(word(2), word(3));
    } else if (op == "selp.u32") {
      to = value(4) != 0 ? word(2) : word(3);
    } else if (op == "call.uni" && words[1] == "cudaGraphSetConditional") {
      // Handles are those of graphs that there are.
      auto known = state_.conditionals.find(registers_[words[2]]);
      if (known == state_.conditionals.end()) return Error::kIllegalAddress;
      known->second.value = static_cast<unsigned>(registers_[words[3]]);
    } else {
      return Error::kIllegalInstruction;
    }
    return Error::kSuccess;
  }

  State& state_;
  const GraphNodeObject& node_;
  std::vector<std::vector<std::string>> lines_;
  std::map<std::string, uint64_t> registers_;
  size_t at_ = 0;
};

}  // namespace

Error InterpretKernel(State& state, const GraphNodeObject& node) {
  return Thread(state, node).Run();
}

}  // namespace kiln::device::cuda
