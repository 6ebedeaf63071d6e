#include "program/check.h"

#include <algorithm>
#include <bit>

#include "base/strings.h"
#include "program/steps.h"
#include "tensor/call_signature.h"

namespace kiln::program {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : p_(program) {}

  bool Signature() const {
    const program::Signature& s = p_.signature;
    const size_t parameters = s.parameters.size(), results = s.results.size();
    auto is_leaf = [](const Shape& shape) { return !shape.is_tuple(); };
    auto is_alignment = [](int64_t a) { return a > 0 && std::has_single_bit(uint64_t(a)); };
    return s.parameter_names.size() == parameters && s.aliases.size() == results &&
           s.must_alias.size() == results &&
           (p_.argument_alignments.empty() || p_.argument_alignments.size() == parameters) &&
           std::ranges::all_of(s.parameters, is_leaf) && std::ranges::all_of(s.results, is_leaf) &&
           std::ranges::all_of(p_.argument_alignments, is_alignment) &&
           p_.donatable.size() <= parameters && Aliases() && Frozen();
  }

  bool Memory() const {
    return p_.arena_bytes >= 0 && std::ranges::all_of(p_.allocations, [&](const Allocation& a) {
             return a.bytes >= 0 && Has(a);
           });
  }

  bool Kernels() const {
    return std::ranges::all_of(p_.kernels, [](const Kernel& kernel) {
      return std::ranges::all_of(kernel.grids, [](const Grid& grid) {
        return grid.blocks > 0 && grid.threads > 0 && grid.threads <= 1024 &&
               grid.shared_bytes >= 0;
      });
    });
  }

  // What is there when frozen arguments are bound.
  bool Binding() const {
    bool good = All(p_.binding);
    ForEachStep(p_.binding, [&](const Step& step, bool) {
      ForEachSlice(step, [&](const Slice& slice) { good = good && IsThereForBinding(slice); });
    });
    return good;
  }

  bool All(const Steps& steps) const {
    return std::ranges::all_of(steps, [&](const Step& step) {
      bool good = std::visit([&](const auto& what) { return Is(what); }, step.what);
      ForEachSlice(step, [&](const Slice& slice) { good = good && Is(slice); });
      ForEachList(step, [&](const Steps& inner, bool) { good = good && All(inner); });
      return good;
    });
  }

 private:
  bool IsThereForBinding(const Slice& slice) const {
    if (!Is(slice)) return false;
    const Allocation& a = p_.allocations[slice.allocation];
    return a.kind == Allocation::Kind::kConstant || a.kind == Allocation::Kind::kBound ||
           (a.kind == Allocation::Kind::kParameter && p_.frozen[a.number]);
  }

  // An argument's memory is its result's: two results in one would overwrite each other.
  bool Aliases() const {
    const program::Signature& s = p_.signature;
    std::vector<bool> taken(s.parameters.size());
    for (size_t r = 0; r < s.results.size(); ++r) {
      const int argument = s.aliases[r];
      if (argument < 0) continue;
      const auto a = static_cast<size_t>(argument);
      if (a >= taken.size() || taken[a]) return false;
      if (s.parameters[a].byte_size() != s.results[r].byte_size()) return false;
      taken[a] = true;
    }
    return true;
  }

  // Frozen arguments are in no result's memory, and have no other meaning than one array.
  bool Frozen() const {
    if (p_.frozen.empty()) return p_.binding.empty();
    if (p_.frozen.size() != p_.signature.parameters.size()) return false;
    for (const int argument : p_.signature.aliases) {
      if (argument >= 0 && p_.frozen[static_cast<size_t>(argument)]) return false;
    }
    return true;
  }

  // Whether the memory that it stands for has its bytes.
  bool Has(const Allocation& a) const {
    auto has = [&](const std::vector<Shape>& shapes) {
      return a.number < shapes.size() && a.bytes <= shapes[a.number].byte_size();
    };
    switch (a.kind) {
      case Allocation::Kind::kParameter:
        return has(p_.signature.parameters);
      case Allocation::Kind::kResult:
        return has(p_.signature.results);
      case Allocation::Kind::kConstant:
        return a.number < p_.constants.size() &&
               (!p_.constants[a.number] || a.bytes <= p_.constants[a.number]->byte_size());
      case Allocation::Kind::kBound:
        return !p_.frozen.empty();
      case Allocation::Kind::kArena:
        return a.bytes <= p_.arena_bytes;
    }
    return false;
  }

  template <typename T, typename Item>
  static bool Has(const IdVector<Id<T>, Item>& list, Id<T> id) {
    return id.valid() && id.index() < list.size();
  }
  bool IsLaunch(LaunchId id) const { return !id.valid() || Has(p_.launches, id); }

  bool Is(const Slice& s) const {
    if (!Has(p_.allocations, s.allocation)) return false;
    const int64_t bytes = p_.allocations[s.allocation].bytes;
    return s.offset >= 0 && s.bytes >= 0 && s.offset <= bytes && s.bytes <= bytes - s.offset;
  }
  bool Is(const Launch& launch) const {
    if (!Has(p_.kernels, launch.kernel) || !IsLaunch(launch.id)) return false;
    const auto& library = p_.kernels[launch.kernel].library;
    auto has = [&](const LibraryMatrix& m) {
      return m.argument >= 0 && static_cast<size_t>(m.argument) < launch.args.size();
    };
    return !library || (has(library->x) && has(library->y) && has(library->out_matrix));
  }
  bool Is(const Copy& copy) const { return copy.from.bytes == copy.to.bytes; }
  bool Is(const HostCall& call) const {
    if (!Has(p_.launches, call.id)) return false;
    const auto signature = CallSignature::Decode(call.config);
    if (!signature.ok()) return false;
    const size_t operands = signature->operands.size(), results = signature->results.size();
    if (call.args.size() < operands + results) return false;
    for (size_t i = 0; i < operands + results; ++i) {
      const Shape& shape = i < operands ? signature->operands[i] : signature->results[i - operands];
      if (call.args[i].bytes < shape.byte_size()) return false;
    }
    return true;
  }
  bool Is(const While& loop) const { return IsLaunch(loop.id) && loop.predicate.bytes == 1; }
  bool Is(const Conditional& c) const {
    return !c.branches.empty() && c.index.bytes == (c.by_predicate ? 1 : 4);
  }

  const Program& p_;
};

}  // namespace

Status CheckProgram(const Program& program) {
  const Checker checker(program);
  std::string_view wrong;
  if (!checker.Signature())
    wrong = "its arguments and results";
  else if (!checker.Memory())
    wrong = "its allocations";
  else if (!checker.Kernels())
    wrong = "its kernels";
  else if (!checker.All(program.prologue))
    wrong = "its prologue";
  else if (!checker.Binding())
    wrong = "what it makes of frozen arguments";
  else if (!checker.All(program.steps))
    wrong = "its steps";
  if (wrong.empty()) return OkStatus();
  return InvalidArgument("the saved program '", program.name, "' contradicts itself in ", wrong);
}

}  // namespace kiln::program
