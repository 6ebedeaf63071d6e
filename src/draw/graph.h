// A module as boxes and links with a layout: what its forms as a picture share.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "draw/layout.h"
#include "ir/ir.h"

namespace kiln::draw {

// What an instruction did in a run of its program, in all.
struct Work {
  int64_t count = 0, nanoseconds = 0, bytes = 0, flops = 0;
};
// By instruction's name.
using WorkByName = std::unordered_map<std::string, Work>;

struct Node {
  const ir::Instruction* instruction = nullptr;
  std::vector<std::string> lines;  // in its box: the op, the name, where it comes from, its work
  std::string shape;               // on its links: below the box, if it has users
  Box box;                         // while it is closed
  std::vector<int> called;         // the groups that it opens to
  const Work* work = nullptr;      // null: not known
};

// A computation. Links are from operands (each once per user) and control predecessors.
struct Group {
  const ir::Computation* computation = nullptr;
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<bool> is_control;  // of links
  Layout layout;
};

// Refers to the module and the work, which must outlive it unchanged.
struct Graph {
  std::vector<Group> groups;  // in the module's order
  int entry = 0;
};
Graph GraphOf(const ir::Module& module, const WorkByName& work = {});

// "12.3 us".
std::string TimeText(int64_t nanoseconds);
// "4.1 MB".
std::string BytesText(int64_t bytes);

// Of the font of boxes, which has characters of one width.
inline constexpr double kFontSize = 11, kCharacterWidth = 6.62, kLineHeight = 14, kPadding = 6;
// Of the same font on links.
inline constexpr double kSmallFontSize = 9, kSmallCharacterWidth = 5.42;

}  // namespace kiln::draw
