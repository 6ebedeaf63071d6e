// What each pass changed in a module, by its HLO text between the passes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kiln::draw {

class Stages {
 public:
  // The text of the module (ir::ToHloText) behind a pass; the first one is that of the input.
  void Add(std::string_view pass, std::string_view text);

  bool empty() const { return json_.empty(); }
  // A JSON array with an object for each Add: "pass", the number of "instructions", and, if there
  // is a change, "ops" (each [opcode, count before, count]), "added", "removed" (each {"count",
  // "lines"}) and "changed" (with pairs of lines), the "text" where it is short, and "is_changed".
  std::string ToJson() const;

 private:
  struct Line {
    std::string text, opcode;
  };
  using Lines = std::unordered_map<std::string, Line>;  // by instruction's name

  // The change from lines_ to others, as members of an object. `order` has the names of the others.
  std::string ChangesTo(const Lines& lines, const std::vector<std::string>& order) const;

  std::string text_;
  Lines lines_;
  std::vector<std::string> order_;  // names, as in the text
  std::vector<std::string> json_;
  size_t text_bytes_ = 0;
};

}  // namespace kiln::draw
