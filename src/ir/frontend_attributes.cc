#include "ir/frontend_attributes.h"

#include <algorithm>

namespace kiln::ir {

FrontendAttributes::FrontendAttributes(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::ranges::stable_sort(entries_, {}, &Entry::first);
  auto at = entries_.begin();
  for (size_t i = 0; i < entries_.size(); ++i) {
    const bool is_last = i + 1 == entries_.size() || entries_[i].first != entries_[i + 1].first;
    if (!is_last) continue;
    if (&*at != &entries_[i]) *at = std::move(entries_[i]);
    ++at;
  }
  entries_.erase(at, entries_.end());
}

const std::string* FrontendAttributes::Find(std::string_view key) const {
  for (const auto& [name, text] : entries_) {
    if (name == key) return &text;
  }
  return nullptr;
}

FrontendAttributesRef MakeFrontendAttributes(std::vector<FrontendAttributes::Entry> entries) {
  if (entries.empty()) return {};
  return MakeRef<const FrontendAttributes>(std::move(entries));
}

FrontendAttributesRef WithFrontendAttribute(const FrontendAttributesRef& attributes,
                                            std::string_view key,
                                            std::optional<std::string_view> text) {
  std::vector<FrontendAttributes::Entry> entries;
  if (attributes) entries.assign(attributes->entries().begin(), attributes->entries().end());
  if (text) {
    entries.emplace_back(key, *text);
  } else {
    std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
  }
  return MakeFrontendAttributes(std::move(entries));
}

}  // namespace kiln::ir
