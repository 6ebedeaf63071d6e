#include "program/program.h"

#include <cstring>

#include "base/strings.h"
#include "tensor/call_signature.h"

namespace kiln::program {
namespace {

constexpr std::string_view kKinds[] = {"parameter", "result", "constant", "bound", "arena"};

std::string SliceText(const Slice& s) {
  return Cat("a", s.allocation, "[", s.offset, ":", s.offset + s.bytes, "]");
}

std::string SlicesText(const std::vector<Slice>& slices) {
  std::string out;
  for (const Slice& s : slices) out += Cat(out.empty() ? "" : ", ", SliceText(s));
  return out;
}

struct StepPrinter {
  const Program& program;
  std::string& out;
  int depth = 1;

  std::string Indent() const { return std::string(2 * depth, ' '); }
  void Print(const Steps& steps) {
    ++depth;
    for (const Step& s : steps) std::visit(*this, s.what);
    --depth;
  }
  void operator()(const Launch& l) {
    out += Cat(Indent(), l.inlined ? "inline k" : "launch k", l.kernel, " ",
               program.kernels[l.kernel].name, "(", SlicesText(l.args), ")");
    if (l.id.valid()) out += Cat("  // ", Join(program.launches[l.id].op_names, ", "));
    out += "\n";
  }
  void operator()(const Copy& c) {
    out += Cat(Indent(), "copy ", SliceText(c.from), " to ", SliceText(c.to), "\n");
  }
  void operator()(const HostCall& c) {
    out += Cat(Indent(), "call ", c.target, "(", SlicesText(c.args), ")");
    if (c.id.valid()) out += Cat("  // ", Join(program.launches[c.id].op_names, ", "));
    out += "\n";
    auto signature = CallSignature::Decode(c.config);
    if (!signature.ok()) return;
    out += Cat(Indent(), "  ", *signature);
    if (!signature->attributes.empty()) out += Cat(", \"", EscapeC(signature->attributes), "\"");
    out += "\n";
  }
  void operator()(const While& w) {
    out += Cat(Indent(), w.fused ? "fused while" : "while");
    if (w.trips >= 0) out += Cat(", ", w.trips, " times");
    if (w.id.valid()) out += Cat("  // ", Join(program.launches[w.id].op_names, ", "));
    out += "\n";
    Print(w.condition);
    out += Cat(Indent(), "is true at ", SliceText(w.predicate), " do\n");
    Print(w.body);
  }
  void operator()(const Conditional& c) {
    out += Cat(Indent(), c.by_predicate ? "if " : "switch ", SliceText(c.index), "\n");
    for (size_t i = 0; i < c.branches.size(); ++i) {
      out += Cat(Indent(), "branch ", i, "\n");
      Print(c.branches[i]);
    }
  }
};

}  // namespace

size_t BranchAt(const std::byte* value, bool by_predicate, size_t branches) {
  if (by_predicate) return *value != std::byte{0} ? 0 : 1;
  int32_t index;
  std::memcpy(&index, value, sizeof(index));
  bool inside = index >= 0 && static_cast<size_t>(index) < branches;
  return inside ? static_cast<size_t>(index) : branches - 1;
}

std::string EntrySymbol(const Program& program) { return Cat("kiln_entry_", program.id); }
std::string PrologueSymbol(const Program& program) { return Cat("kiln_prologue_", program.id); }
std::string BindingSymbol(const Program& program, size_t group) {
  return Cat("kiln_binding", group, "_", program.id);
}

std::string Program::ToString() const {
  std::string out = Cat("program ", name, "\n");
  if (!target.empty()) out += Cat("  target: ", target, "\n");
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    out += Cat("  parameter ", i, ": ", signature.parameters[i]);
    if (i < signature.parameter_names.size()) out += Cat(" ", signature.parameter_names[i]);
    if (i < frozen.size() && frozen[i]) out += ", frozen";
    out += "\n";
  }
  for (size_t i = 0; i < signature.results.size(); ++i) {
    out += Cat("  result ", i, ": ", signature.results[i], "\n");
  }
  out += Cat("  arena: ", arena_bytes, " bytes\n");
  for (AllocationId id : allocations.ids()) {
    const Allocation& a = allocations[id];
    out += Cat("  a", id, ": ", kKinds[static_cast<int>(a.kind)], " ", a.number, ", ", a.bytes,
               " bytes\n");
  }
  StepPrinter printer{*this, out, 0};
  if (!prologue.empty()) {
    out += "prologue\n";
    printer.Print(prologue);
  }
  if (!binding.empty()) {
    out += "binding\n";
    printer.Print(binding);
  }
  out += "steps\n";
  printer.Print(steps);
  for (KernelId id : kernels.ids()) {
    for (const Grid& grid : kernels[id].grids) {
      out += Cat("grid of k", id, ": ", grid.symbol, ", blocks ", grid.blocks, ", threads ",
                 grid.threads, ", shared bytes ", grid.shared_bytes, "\n");
    }
    if (kernels[id].library) out += Cat("or a library's gemm: ", *kernels[id].library, "\n");
  }
  return out;
}

}  // namespace kiln::program
