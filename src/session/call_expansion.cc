#include "session/call_expansion.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "ir/analysis/effects.h"
#include "session/marks.h"

namespace kiln::session {

using ir::Instruction;

namespace {

// More control predecessors than this are gathered by a node, so that their number times the number
// of waiting nodes stays linear.
constexpr size_t kMostDirect = 8;

// Parameters and constants do nothing that could wait, or be waited for.
bool CanWait(Opcode opcode) { return opcode != Opcode::kParameter && opcode != Opcode::kConstant; }

}  // namespace

bool IsPlainCall(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kCall && !JitMarkOf(instruction).must_compile;
}

CallExpansion::CallExpansion(const ir::Module& module, std::span<const std::string> targets)
    : target_names_(targets.begin(), targets.end()) {
  bodies_.push_back({});
  open_.emplace_back(*module.entry(), 0);
  Expand(module);
}

CallExpansion::Node CallExpansion::node(int32_t number) const {
  const Row& row = nodes_[static_cast<size_t>(number)];
  return {row.source,     row.body,         row.kind,
          row.has_effect, At(row.operands), At(row.control_predecessors)};
}

void CallExpansion::Expand(const ir::Module& module) {
  const Instruction* root = module.entry()->root();
  while (!open_.empty()) {
    Frame& frame = open_.back();
    if (frame.next == frame.end) {
      if (open_.size() == 1) root_ = frame.node_of.at(root);
      Close();
      continue;
    }
    const Instruction* i = *frame.next++;
    if (IsPlainCall(*i)) {
      Open(*i);
    } else {
      const int32_t number = frame.node_of[i] = NodeFor(*i);
      if (IsTarget(*i)) targets_.push_back(number);
    }
  }
}

void CallExpansion::Open(const Instruction& call) {
  std::vector<int32_t> waits_for = Gathered(PredecessorsOf(call), call, Kind::kBegin);
  const int32_t outer_gate = open_.back().gate;
  bodies_.push_back({&call, open_.back().body});
  open_.emplace_back(*call.called(0), static_cast<int32_t>(bodies_.size() - 1));
  Frame& frame = open_.back();
  frame.first_node = size();
  frame.gate = waits_for.empty() ? outer_gate : static_cast<int32_t>(open_.size() - 1);
  frame.waits_for = std::move(waits_for);
}

void CallExpansion::Close() {
  const Frame frame = std::move(open_.back());
  open_.pop_back();
  if (open_.empty()) return;
  const Instruction& call = *bodies_[static_cast<size_t>(frame.body)].call;
  Frame& caller = open_.back();
  const int32_t root = frame.node_of.at(call.called(0)->root());
  caller.node_of[&call] = root;
  caller.last_effect = std::max(caller.last_effect, frame.last_effect);
  const bool is_target = IsTarget(call);
  if (call.control_successors().empty() && !is_target) return;
  std::vector<int32_t> ends = EndsOf(frame, root);
  if (is_target) targets_.insert(targets_.end(), ends.begin(), ends.end());
  if (call.control_successors().empty()) return;
  caller.ends.emplace(&call, Gathered(std::move(ends), call, Kind::kEnd));
}

bool CallExpansion::IsTarget(const Instruction& i) const {
  return open_.size() == 1 && !target_names_.empty() && target_names_.contains(i.name());
}

// The nodes that end last: those of the result, and the last side effect, after which come no
// others because side effects keep their order.
std::vector<int32_t> CallExpansion::EndsOf(const Frame& frame, int32_t root) const {
  std::vector<int32_t> ends, left = {root};
  std::unordered_set<int32_t> seen = {root};
  while (!left.empty()) {
    const int32_t number = left.back();
    left.pop_back();
    const Row& row = nodes_[static_cast<size_t>(number)];
    if (row.kind == Kind::kCopy && row.source->opcode() == Opcode::kTuple) {
      for (int32_t element : At(row.operands)) {
        if (seen.insert(element).second) left.push_back(element);
      }
      const auto before = At(row.control_predecessors);
      ends.insert(ends.end(), before.begin(), before.end());
    } else if (row.can_wait) {
      ends.push_back(number);
    }
  }
  if (frame.last_effect >= 0) ends.push_back(frame.last_effect);
  // Nodes of the body wait for the call's predecessors already.
  const bool waits = std::ranges::any_of(ends, [&](int32_t n) { return n >= frame.first_node; });
  if (!waits) ends.insert(ends.end(), frame.waits_for.begin(), frame.waits_for.end());
  return ends;
}

std::vector<int32_t> CallExpansion::PredecessorsOf(const Instruction& instruction) const {
  std::vector<int32_t> nodes;
  const Frame& frame = open_.back();
  for (const Instruction* before : instruction.control_predecessors()) {
    if (auto it = frame.ends.find(before); it != frame.ends.end()) {
      nodes.insert(nodes.end(), it->second.begin(), it->second.end());
      continue;
    }
    const int32_t number = frame.node_of.at(before);
    if (nodes_[static_cast<size_t>(number)].can_wait) nodes.push_back(number);
  }
  return nodes;
}

// Each once, in order; a single one that waits for them where they are many.
std::vector<int32_t> CallExpansion::Gathered(std::vector<int32_t> nodes, const Instruction& call,
                                             Kind kind) {
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
  if (nodes.size() <= kMostDirect) return nodes;
  return {Add(call, kind, {}, std::move(nodes))};
}

int32_t CallExpansion::NodeFor(const Instruction& i) {
  Frame& frame = open_.back();
  if (i.opcode() == Opcode::kParameter && open_.size() > 1) {
    const Instruction& call = *bodies_[static_cast<size_t>(frame.body)].call;
    const Frame& caller = open_[open_.size() - 2];
    return caller.node_of.at(call.operand(i.attributes().Int(Attr::kParameterNumber)));
  }
  if (const int32_t element = ElementAcross(i); element >= 0) return element;
  std::vector<int32_t> operands;
  operands.reserve(i.operands().size());
  for (const Instruction* operand : i.operands()) operands.push_back(frame.node_of.at(operand));
  return Add(i, Kind::kCopy, operands, PredecessorsOf(i));
}

// The node of an element of a tuple where the tuple is made on the other side of a call, so that
// elements are needed, and are on devices, one by one; -1: it is none.
int32_t CallExpansion::ElementAcross(const Instruction& i) const {
  if (i.opcode() != Opcode::kGetTupleElement || i.operand(0)->opcode() == Opcode::kTuple ||
      !i.control_predecessors().empty()) {
    return -1;
  }
  const int32_t number = open_.back().node_of.at(i.operand(0));
  const Row& tuple = nodes_[static_cast<size_t>(number)];
  if (tuple.kind != Kind::kCopy || tuple.source->opcode() != Opcode::kTuple ||
      !tuple.source->control_predecessors().empty()) {
    return -1;
  }
  return At(tuple.operands)[static_cast<size_t>(i.attributes().Int(Attr::kIndex))];
}

int32_t CallExpansion::Add(const Instruction& source, Kind kind, std::span<const int32_t> operands,
                           std::vector<int32_t> control_predecessors) {
  Frame& frame = open_.back();
  const bool can_wait = kind != Kind::kCopy || CanWait(source.opcode());
  if (can_wait) {
    // What waits for a node of a body waits by it for what that body waits for.
    int32_t latest = -1;
    auto look = [&](int32_t n) {
      if (nodes_[static_cast<size_t>(n)].can_wait) latest = std::max(latest, n);
    };
    std::ranges::for_each(operands, look);
    std::ranges::for_each(control_predecessors, look);
    for (int32_t gate = frame.gate; gate >= 0;) {
      const Frame& waiting = open_[static_cast<size_t>(gate)];
      if (latest >= waiting.first_node) break;
      control_predecessors.insert(control_predecessors.end(), waiting.waits_for.begin(),
                                  waiting.waits_for.end());
      latest = std::max(latest, waiting.waits_for.back());
      gate = open_[static_cast<size_t>(gate) - 1].gate;
    }
  }
  auto keep = [&](std::span<const int32_t> numbers) {
    const size_t begin = links_.size();
    links_.insert(links_.end(), numbers.begin(), numbers.end());
    return Range{begin, links_.size()};
  };
  const int32_t number = size();
  const bool has_effect = kind == Kind::kCopy && HasEffect(source);
  if (has_effect) frame.last_effect = number;
  const Range values = keep(operands), before = keep(control_predecessors);
  nodes_.push_back({&source, frame.body, kind, has_effect, can_wait, values, before});
  return number;
}

bool CallExpansion::HasEffect(const Instruction& i) {
  if (i.called().empty()) return ir::HasSideEffect(i);
  auto it = has_effect_.find(&i);
  if (it == has_effect_.end()) it = has_effect_.emplace(&i, ir::HasSideEffect(i)).first;
  return it->second;
}

}  // namespace kiln::session
