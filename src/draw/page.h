// A page for a browser, complete in itself: graphs of a module in which fusions open, with a search
// and the text, and the passes with what each changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "draw/graph.h"
#include "draw/stages.h"
#include "ir/ir.h"
#include "ir/text.h"

namespace kiln::draw {

class Page {
 public:
  // The title is any text, such as the module's name.
  explicit Page(std::string_view title) : title_(title) {}

  // Shows a module under a name ("before"), with the work of a run. It may change afterwards.
  void AddGraph(std::string_view name, const ir::Module& module,
                const ir::PrintOptions& options = {}, const WorkByName& work = {});
  // The passes; none: the page does not speak of them.
  Stages& stages() { return stages_; }

  std::string ToHtml() const;

 private:
  // The number of a text in a table of the page.
  static size_t NumberOf(std::string text, std::vector<std::string>& table,
                         std::unordered_map<std::string, size_t>& numbers);
  void AddNode(const Node& node, const ir::PrintOptions& options, std::string& json);
  void AddGroup(const Group& group, const ir::PrintOptions& options, std::string& json);

  std::string title_;
  std::vector<std::string> graphs_;  // JSON
  Stages stages_;
  // Texts that are many nodes', as JSON.
  std::vector<std::string> ops_, shapes_;
  std::unordered_map<std::string, size_t> op_numbers_, shape_numbers_;
};

// The page of a module by itself.
std::string ToHtml(const ir::Module& module, const ir::PrintOptions& options = {});

}  // namespace kiln::draw
