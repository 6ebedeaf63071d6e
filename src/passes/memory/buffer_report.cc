// Buffer assignments as text.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/strings.h"
#include "passes/memory/buffer_assignment.h"

namespace kiln::passes {
namespace {

constexpr std::string_view kKinds[] = {"parameter", "result", "constant", "arena"};
// So many of the largest buffers, and names of each, are worth their lines.
constexpr size_t kMostBuffers = 20;
constexpr size_t kMostNames = 8;

// The values in each buffer.
std::vector<std::vector<std::string>> UsersOf(const BufferAssignment& assignment) {
  std::vector<std::vector<std::string>> users(assignment.buffers.size());
  auto add = [&](int b, std::string name) {
    if (b >= 0) users[static_cast<size_t>(b)].push_back(std::move(name));
  };
  for (const auto& [instruction, of] : assignment.leaves) {
    for (int b : of) add(b, instruction->name());
  }
  for (const auto& [instruction, b] : assignment.scratch) {
    add(b, Cat("scratch of ", instruction->name()));
  }
  for (const auto& [loop, of] : assignment.loop_temporaries) {
    for (int b : of) add(b, Cat("exchange in ", loop->name()));
  }
  for (const auto& [leaf, b] : assignment.result_temporaries)
    add(b, Cat("exchange of result ", leaf));
  for (auto& names : users) {
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  return users;
}

// The bytes that come into use at a position, less those whose last use was before it.
std::map<int64_t, int64_t> Changes(const BufferAssignment& assignment) {
  std::map<int64_t, int64_t> changes;
  for (const Buffer& b : assignment.buffers) {
    if (b.kind != Buffer::Kind::kArena || b.bytes == 0) continue;
    changes[b.begin] += b.bytes;
    changes[b.end + 1] -= b.bytes;
  }
  return changes;
}

// Where most temporaries are live.
struct Peak {
  int64_t position = 0, bytes = 0;
};
Peak PeakOf(const std::map<int64_t, int64_t>& changes) {
  Peak peak;
  int64_t live = 0;
  for (auto [position, bytes] : changes) {
    live += bytes;
    if (live > peak.bytes) peak = {position, live};
  }
  return peak;
}

std::string NameAt(const BufferAssignment& assignment, int64_t position) {
  for (const auto& [instruction, place] : assignment.position) {
    if (place == position) return instruction->name();
  }
  return "nothing";
}

}  // namespace

std::string BufferAssignment::LargestAtPeak(size_t most) const {
  const Peak peak = PeakOf(Changes(*this));
  std::vector<size_t> live;
  for (size_t b = 0; b < buffers.size(); ++b) {
    const bool is_live = buffers[b].begin <= peak.position && peak.position <= buffers[b].end;
    if (buffers[b].kind == Buffer::Kind::kArena && is_live) live.push_back(b);
  }
  std::ranges::stable_sort(live, std::greater(), [this](size_t b) { return buffers[b].bytes; });
  const std::vector<std::vector<std::string>> users = UsersOf(*this);
  std::string out = Cat("at '", NameAt(*this, peak.position), "' ");
  for (size_t k = 0; k < std::min(most, live.size()); ++k) {
    const size_t b = live[k];
    out +=
        Cat(k > 0 ? ", " : "", users[b].empty() ? "" : users[b].front(), " has ", buffers[b].bytes);
  }
  return Cat(out, live.size() > most ? ", …" : "");
}

std::string BufferAssignment::ToString() const {
  std::string out = Cat("arena: ", arena_bytes, " bytes\n");
  std::vector<std::vector<std::string>> users = UsersOf(*this);
  for (size_t b = 0; b < buffers.size(); ++b) {
    const Buffer& buffer = buffers[b];
    out +=
        Cat("buffer ", b, ": ", kKinds[static_cast<int>(buffer.kind)], " ",
            buffer.kind == Buffer::Kind::kArena ? buffer.offset : buffer.number, ", ", buffer.bytes,
            " bytes, live ", buffer.begin, "..", buffer.end, ": ", Join(users[b], ", "), "\n");
  }
  return out;
}

std::string BufferAssignment::MemoryReport() const {
  const std::map<int64_t, int64_t> changes = Changes(*this);
  const Peak peak = PeakOf(changes);
  std::string out = Cat("\nMost temporaries live at once: ", peak.bytes, " bytes in an arena of ",
                        arena_bytes, ", at ", NameAt(*this, peak.position), "\n");
  if (peak.bytes > 0) {
    out += "Live temporaries by position:\n";
    std::map<int64_t, std::string_view> names;
    for (const auto& [instruction, place] : position) names[place] = instruction->name();
    int64_t live = 0;
    for (auto [place, bytes] : changes) {
      live += bytes;
      auto named = names.find(place);
      out += Cat("  ", place, ": ", live, named == names.end() ? "" : " ",
                 named == names.end() ? std::string_view() : named->second, "\n");
    }
  }
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  if (order.size() > kMostBuffers) order.resize(kMostBuffers);
  std::vector<std::vector<std::string>> users = UsersOf(*this);
  out += "Largest buffers:\n";
  for (size_t b : order) {
    std::vector<std::string>& names = users[b];
    size_t left = names.size() > kMostNames ? names.size() - kMostNames : 0;
    names.resize(names.size() - left);
    out += Cat("  ", buffers[b].bytes, " bytes, ", kKinds[static_cast<int>(buffers[b].kind)],
               ", live ", buffers[b].begin, "..", buffers[b].end, ": ", Join(names, ", "));
    if (left > 0) out += Cat(" and ", left, " more");
    out += "\n";
  }
  return out;
}

}  // namespace kiln::passes
