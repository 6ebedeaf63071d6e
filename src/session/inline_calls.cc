#include "session/inline_calls.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "ir/computation_copies.h"
#include "ir/frontend_attributes.h"
#include "passes/growth.h"
#include "session/call_expansion.h"
#include "session/values.h"

namespace kiln::session {
namespace {

using ir::Computation;
using ir::FrontendAttributesRef;
using ir::Instruction;

// The frontend attributes of ops of bodies; equal ones are shared.
class Marks {
 public:
  explicit Marks(bool reads_marks) : reads_marks_(reads_marks) {}

  // Those of an op, `own`, called by an op with `call`.
  FrontendAttributesRef Of(const FrontendAttributesRef& own, const FrontendAttributesRef& call) {
    if (reads_marks_ && !call) return own;
    auto [it, is_new] = known_.try_emplace({own.get(), call.get()});
    if (is_new) it->second = Merge(own, call);
    return it->second;
  }

 private:
  FrontendAttributesRef Merge(FrontendAttributesRef own, const FrontendAttributesRef& call) const {
    for (std::string_view key :
         {ir::kDeviceAttribute, ir::kCompileAttribute, ir::kScopeAttribute}) {
      const std::string* mine = own ? own->Find(key) : nullptr;
      if (reads_marks_ && mine && !mine->empty()) continue;
      const std::string* given = call ? call->Find(key) : nullptr;
      if (!given && (!mine || reads_marks_)) continue;
      own = WithFrontendAttribute(own, key,
                                  given ? std::optional<std::string_view>(*given) : std::nullopt);
    }
    return own;
  }

  const bool reads_marks_;
  std::map<std::pair<const ir::FrontendAttributes*, const ir::FrontendAttributes*>,
           FrontendAttributesRef>
      known_;
};

// The names of ops of bodies.
class InlinedNames {
 public:
  // For up to so many ops.
  InlinedNames(const Computation& entry, size_t ops) {
    op_names_.reserve(ops);
    for (const Instruction* i : entry.instructions()) {
      names_.insert(i->name());
      if (!i->op_name().empty()) ++UsesOf(i->op_name());
    }
  }

  // None of the entry's; a module makes it unique.
  std::string Name(std::string_view body, std::string_view own) const {
    std::string name = Cat(body, "_", own);
    while (names_.contains(name)) name += '_';
    return name;
  }
  std::string OpName(std::string_view body, std::string_view own) {
    std::string name = Cat(body, "/", own);
    for (int64_t& uses = UsesOf(name); uses++ > 0;) {
      std::string other = Cat(name, "_", uses - 1);
      if (UsesOf(other)++ == 0) return other;
    }
    return name;
  }

 private:
  int64_t& UsesOf(std::string_view name) { return op_names_[std::hash<std::string_view>()(name)]; }

  std::unordered_set<std::string_view> names_;
  // By hash, because there are many long ones. One of the same hash gets a number without need.
  std::unordered_map<size_t, int64_t> op_names_;
};

std::string_view OriginOf(const Instruction& i) {
  return i.op_name().empty() ? i.name() : std::string_view(i.op_name());
}

class Inliner {
 public:
  Inliner(const ir::Module& from, const InlineOptions& options)
      : from_(from),
        options_(options),
        expansion_(from, options.targets),
        marks_(options.reads_marks),
        names_(*from.entry(), static_cast<size_t>(expansion_.size())),
        made_(static_cast<size_t>(expansion_.size())),
        module_(std::make_unique<ir::Module>(from.name())),
        callees_(*module_) {}

  std::unique_ptr<ir::Module> Run() && {
    FindNeeded();
    DescribeBodies();
    // Callees stand before their caller.
    ForEachNeeded([this](const CallExpansion::Node& node, size_t) {
      if (node.kind == CallExpansion::Kind::kCopy) callees_.AddCallees(*node.source);
    });
    entry_ = module_->AddComputation(from_.entry()->name());
    module_->set_entry(entry_);
    ForEachNeeded(
        [this](const CallExpansion::Node& node, size_t number) { made_[number] = Make(node); });
    entry_->set_root(made_[static_cast<size_t>(expansion_.root())]);
    return std::move(module_);
  }

 private:
  // What the ops of a body get from the call.
  struct Context {
    std::string name, op_name;
    FrontendAttributesRef marks;
  };

  void FindNeeded() {
    needed_.resize(made_.size());
    for (int32_t target : expansion_.targets()) needed_[target] = true;
    for (int32_t n = expansion_.size() - 1; n >= 0; --n) {
      const CallExpansion::Node node = expansion_.node(n);
      const bool is_kept = node.source->opcode() == Opcode::kParameter &&
                           node.source->attributes().Int(Attr::kParameterNumber) <
                               static_cast<int64_t>(options_.kept_parameters);
      if (!needed_[n] && !node.has_effect && !is_kept && n != expansion_.root()) continue;
      needed_[n] = true;
      for (int32_t operand : node.operands) needed_[operand] = true;
      for (int32_t before : node.control_predecessors) needed_[before] = true;
    }
  }

  // Callers come before the bodies of their calls.
  void DescribeBodies() {
    // Names of calls in calls would together take the square of the depth.
    constexpr size_t kLongest = 512;
    for (const CallExpansion::Body& body : expansion_.bodies()) {
      if (!body.call) {
        contexts_.push_back({});
        continue;
      }
      const Context& outer = contexts_[static_cast<size_t>(body.caller)];
      Context context;
      context.marks = body.caller == 0 ? body.call->frontend_attributes()
                                       : marks_.Of(body.call->frontend_attributes(), outer.marks);
      if (body.caller == 0) {
        context.name = body.call->name();
        context.op_name = OriginOf(*body.call);
      } else if (outer.name.size() + outer.op_name.size() > kLongest) {
        context.name = outer.name;
        context.op_name = outer.op_name;
      } else {
        context.name = Cat(outer.name, "_", body.call->name());
        context.op_name = Cat(outer.op_name, "/", OriginOf(*body.call));
      }
      contexts_.push_back(std::move(context));
    }
  }

  template <typename F>
  void ForEachNeeded(F f) {
    for (int32_t n = 0; n < expansion_.size(); ++n) {
      if (needed_[static_cast<size_t>(n)]) f(expansion_.node(n), static_cast<size_t>(n));
    }
  }

  Instruction* Make(const CallExpansion::Node& node) {
    std::vector<Instruction*> operands;
    operands.reserve(node.operands.size());
    for (int32_t operand : node.operands) operands.push_back(made_[static_cast<size_t>(operand)]);
    const bool is_copy = node.kind == CallExpansion::Kind::kCopy;
    if (is_copy && node.source == from_.entry()->root()) operands = Distinct(std::move(operands));
    ir::InstructionSpec spec =
        is_copy ? ir::CopySpec(*node.source, std::move(operands))
                : ir::InstructionSpec{.opcode = Opcode::kAfterAll, .shape = Shape::Token()};
    for (Computation*& callee : spec.called) callee = callees_.Of(callee);
    if (spec.opcode == Opcode::kParameter) {
      spec.attributes.Set(Attr::kParameterNumber,
                          static_cast<int64_t>(entry_->parameters().size()));
    }
    if (!is_copy || node.body > 0) Describe(node, spec);
    Instruction* made = entry_->Create(std::move(spec));
    for (int32_t before : node.control_predecessors) {
      // Nodes are in order, so there is no cycle.
      (void)entry_->AddControlDependency(made_[static_cast<size_t>(before)], made);
    }
    return made;
  }

  // Gives names and marks to what is not of the entry.
  void Describe(const CallExpansion::Node& node, ir::InstructionSpec& spec) {
    const Context& body = contexts_[static_cast<size_t>(node.body)];
    std::string name = node.source->name(), origin(OriginOf(*node.source));
    if (node.kind != CallExpansion::Kind::kCopy) {
      const char* suffix = node.kind == CallExpansion::Kind::kBegin ? "begin" : "end";
      name = Cat(name, "_", suffix);
      origin = Cat(origin, "/", suffix);
    }
    const FrontendAttributesRef& own = node.source->frontend_attributes();
    spec.frontend_attributes = node.body > 0 ? marks_.Of(own, body.marks) : own;
    spec.name = node.body > 0 ? names_.Name(body.name, name) : std::move(name);
    spec.op_name = node.body > 0 ? names_.OpName(body.op_name, origin) : std::move(origin);
  }

  // Each result has its own memory.
  std::vector<Instruction*> Distinct(std::vector<Instruction*> results) {
    std::unordered_set<const Instruction*> seen;
    for (Instruction*& result : results) {
      if (!seen.insert(result).second) result = CopyOf(result, nullptr);
    }
    return results;
  }

  const ir::Module& from_;
  const InlineOptions& options_;
  const CallExpansion expansion_;
  Marks marks_;
  InlinedNames names_;
  std::vector<bool> needed_;            // by node
  std::vector<Context> contexts_;       // by body
  std::vector<Instruction*> made_;      // by node
  std::unique_ptr<ir::Module> module_;  // the result
  Computation* entry_ = nullptr;
  ir::ComputationCopies callees_;
};

}  // namespace

Result<std::unique_ptr<ir::Module>> InlineCalls(std::unique_ptr<ir::Module> module,
                                                const InlineOptions& options) {
  const Computation& entry = *module->entry();
  if (!entry.MayHold(Opcode::kCall) ||
      std::ranges::none_of(entry.instructions(),
                           [](const Instruction* i) { return IsPlainCall(*i); })) {
    return module;
  }
  // As a pipeline has it.
  passes::PassContext context;
  context.max_instructions = std::max(context.max_instructions, 4 * module->instruction_count());
  KILN_RETURN_IF_ERROR(passes::CheckCopies(*module, context));
  return Inliner(*module, options).Run();
}

}  // namespace kiln::session
