#include "tools/reduce/reduce.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "passes/control/computations.h"
#include "passes/passes.h"
#include "tools/reduce/rebuild.h"

namespace kiln::tools {
namespace {

using ir::Computation;
using ir::Instruction;

class Reducer {
 public:
  Reducer(const ir::Module& module, const Fails& fails, const ReduceOptions& options)
      : module_(module.Clone()), fails_(fails), tries_(options.max_tries) {}

  std::unique_ptr<ir::Module> Run() {
    OneResult();
    for (bool changed = true; changed && tries_ > 0;) {
      changed = CutAtInstruction();
      changed |= OneResult();
      changed |= FlattenControl();
      changed |= ReplaceMany();
      changed |= ReplaceEach();
      changed |= ShrinkSizes();
    }
    return std::move(module_);
  }

 private:
  bool Try(std::unique_ptr<ir::Module> candidate) {
    if (tries_ <= 0) return false;
    --tries_;
    if (!fails_(*candidate)) return false;
    module_ = std::move(candidate);
    return true;
  }
  bool Try(const Edits& edits) {
    auto candidate = Rebuild(*module_, edits);
    return candidate.ok() && Try(*std::move(candidate));
  }

  const Computation& entry() const { return *module_->entry(); }

  // Results: one alone, or else half of them, and so on.
  bool OneResult() {
    bool changed = false;
    while (entry().root()->opcode() == Opcode::kTuple && entry().root()->operand_count() > 1) {
      std::vector<const Instruction*> all(entry().root()->operands().begin(),
                                          entry().root()->operands().end());
      bool smaller = false;
      for (size_t k = 0; k < all.size() && !smaller; ++k) smaller = Try({.results = {all[k]}});
      for (size_t part = all.size() / 2; part > 0 && !smaller; part /= 2) {
        for (size_t at = 0; at < all.size() && !smaller; at += part) {
          auto rest = all;
          rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at),
                     rest.begin() + static_cast<std::ptrdiff_t>(std::min(at + part, all.size())));
          if (!rest.empty()) smaller = Try({.results = rest});
        }
      }
      if (!smaller) break;
      changed = true;
    }
    return changed;
  }

  // The first instruction that fails when it is the result.
  bool CutAtInstruction() {
    std::vector<const Instruction*> order;
    for (Instruction* i : entry().instructions()) {
      if (i->opcode() == Opcode::kParameter || i->IsConstant() || i->IsRoot()) continue;
      if (i->shape().is_array()) order.push_back(i);
    }
    for (const Instruction* i : order) {
      if (Try({.results = {i}})) return true;
    }
    return false;
  }

  // A call as its body, a conditional as one branch, a loop as its body once.
  bool FlattenControl() {
    bool changed = false;
    for (size_t k = 0; k < ControlOps(*module_).size();) {
      bool flat = false;
      size_t ways = ControlOps(*module_)[k]->called().size();
      // The failure may be in an unused part: then the whole op is the result.
      for (size_t way = 0; way < 2 * ways && !flat; ++way) {
        auto candidate = module_->Clone();
        Instruction* i = ControlOps(*candidate)[k];
        if (i->opcode() == Opcode::kWhile && way % ways == 0) continue;  // The condition.
        if (way >= ways && i->parent() != candidate->entry()) continue;
        if (way >= ways) i->parent()->set_root(i);
        std::vector<Instruction*> arguments(i->operands().begin(), i->operands().end());
        if (i->opcode() == Opcode::kConditional) arguments = {arguments[way % ways + 1]};
        Instruction* body =
            passes::CopyBody(i, *i->called(static_cast<int64_t>(way % ways)), arguments);
        Computation* c = i->parent();
        c->ReplaceAllUses(i, body);
        c->Remove(i);
        auto tidy = Tidy(std::move(candidate));
        flat = tidy && Try(std::move(tidy));
      }
      changed |= flat;
      if (!flat) ++k;
    }
    return changed;
  }

  static std::vector<Instruction*> ControlOps(ir::Module& module) {
    std::vector<Instruction*> found;
    for (const auto& c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        Opcode op = i->opcode();
        if (op == Opcode::kCall || op == Opcode::kConditional || op == Opcode::kWhile) {
          found.push_back(i);
        }
      }
    }
    return found;
  }

  static std::unique_ptr<ir::Module> Tidy(std::unique_ptr<ir::Module> module) {
    if (!passes::SimplifyTuples(*module, {}).ok()) return nullptr;
    auto rebuilt = Rebuild(*module, {});
    return rebuilt.ok() ? *std::move(rebuilt) : nullptr;
  }

  std::vector<const Instruction*> Replaceable() const {
    std::vector<const Instruction*> list;
    for (const auto& c : module_->computations()) {
      if (c.get() != module_->entry() && !IsBody(c.get())) continue;
      for (Instruction* i : c->instructions()) {
        if (i->opcode() == Opcode::kParameter || i->IsConstant()) continue;
        if (i->opcode() == Opcode::kTuple || i == module_->entry()->root()) continue;
        list.push_back(i);
      }
    }
    std::reverse(list.begin(), list.end());
    return list;
  }

  // Whether the computation is control flow's, and no reducer.
  bool IsBody(const Computation* c) const {
    for (Instruction* i : ControlOps(*module_)) {
      if (std::ranges::find(i->called(), c) != i->called().end()) return true;
    }
    return false;
  }

  // Parameters in the place of many instructions of the entry at once.
  bool ReplaceMany() {
    bool changed = false;
    for (size_t part = Replaceable().size() / 2; part > 1; part /= 2) {
      for (size_t at = 0; at < Replaceable().size();) {
        std::vector<const Instruction*> list = Replaceable();
        Edits edits;
        for (size_t k = at; k < std::min(at + part, list.size()); ++k) {
          bool in_entry = list[k]->parent() == module_->entry();
          if (in_entry && list[k]->shape().is_array()) {
            edits.replaced[list[k]] = {Replacement::Kind::kParameter};
          }
        }
        if (!edits.replaced.empty() && Try(edits)) {
          changed = true;
        } else {
          at += part;
        }
      }
    }
    return changed;
  }

  // An instruction after the other, from the results up: one of its operands, a constant or a
  // parameter in its place.
  bool ReplaceEach() {
    bool changed = false;
    for (size_t k = 0; k < Replaceable().size() && tries_ > 0;) {
      const Instruction* i = Replaceable()[k];
      bool replaced = false;
      auto attempt = [&](Replacement replacement) {
        if (!replaced) replaced = Try({.replaced = {{i, replacement}}});
      };
      // Where something is replaced the module is another, and `i` is gone.
      for (int64_t o = 0; !replaced && o < i->operand_count(); ++o) {
        if (i->operand(o)->shape().SameTypeAndDimensions(i->shape())) {
          attempt({Replacement::Kind::kOperand, o});
        }
      }
      const bool spread =
          !replaced && i->opcode() == Opcode::kBroadcast && i->operand(0)->IsConstant();
      if (!replaced && i->shape().is_array() && !spread) {
        const bool in_entry = i->parent() == module_->entry();
        attempt({Replacement::Kind::kZero});
        attempt({Replacement::Kind::kOne});
        if (in_entry) attempt({Replacement::Kind::kParameter});
      }
      changed |= replaced;
      if (!replaced) ++k;
    }
    return changed;
  }

  // Every size that occurs becomes as small as it can.
  bool ShrinkSizes() {
    bool changed = false;
    std::set<int64_t> done;
    for (;;) {
      std::set<int64_t, std::greater<>> sizes;
      for (const auto& c : module_->computations()) {
        for (Instruction* i : c->instructions()) {
          if (!i->shape().is_array()) continue;
          for (int64_t size : i->shape().dims()) {
            if (size > 1 && !done.contains(size)) sizes.insert(size);
          }
        }
      }
      if (sizes.empty() || tries_ <= 0) return changed;
      const int64_t size = *sizes.begin();
      done.insert(size);
      for (int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{3}, size / 4, size / 2, size - 1}) {
        if (smaller < 1 || smaller >= size) continue;
        if (Try({.sizes = {{size, smaller}}})) {
          changed = true;
          break;
        }
      }
    }
  }

  std::unique_ptr<ir::Module> module_;
  const Fails& fails_;
  int64_t tries_;
};

}  // namespace

std::unique_ptr<ir::Module> Reduce(const ir::Module& module, const Fails& fails,
                                   const ReduceOptions& options) {
  return Reducer(module, fails, options).Run();
}

}  // namespace kiln::tools
