// HLO's frontend attributes: texts by key that whoever made an instruction attached to it. The
// compiler keeps them and does not read them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ref.h"

namespace kiln::ir {

// Immutable, so that many instructions share one: those of a scope, and copies of a graph.
class FrontendAttributes : public Counted<FrontendAttributes> {
 public:
  using Entry = std::pair<std::string, std::string>;  // a key and its text

  // Of equal keys the last one counts.
  explicit FrontendAttributes(std::vector<Entry> entries);
  // By key, each once.
  std::span<const Entry> entries() const { return entries_; }
  // Null if there is none.
  const std::string* Find(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
};

// Null: there are none. What it refers to has an entry.
using FrontendAttributesRef = Ref<const FrontendAttributes>;

FrontendAttributesRef MakeFrontendAttributes(std::vector<FrontendAttributes::Entry> entries);
// The same with the text for the key, or without the key.
FrontendAttributesRef WithFrontendAttribute(const FrontendAttributesRef& attributes,
                                            std::string_view key,
                                            std::optional<std::string_view> text);

// The keys that sessions read.
//
// The device that runs the op, as the user wrote it: "GPU:0".
inline constexpr std::string_view kDeviceAttribute = "kiln.device";
// "true": compile it, "false": never do. TensorFlow's name, as are the next ones.
inline constexpr std::string_view kCompileAttribute = "_XlaCompile";
// Ops of different scopes are not compiled together.
inline constexpr std::string_view kScopeAttribute = "_XlaScope";
// Of a call, "true": it is compiled as a whole, or fails.
inline constexpr std::string_view kMustCompileAttribute = "_XlaMustCompile";

}  // namespace kiln::ir
