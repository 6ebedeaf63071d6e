#include "compiler/lower.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/strings.h"
#include "compiler/bundle.h"
#include "compiler/chain_launch.h"
#include "compiler/compile_step.h"
#include "compiler/identify.h"
#include "compiler/packing.h"
#include "compiler/written.h"
#include "ir/analysis/alias.h"
#include "ir/analysis/cost.h"
#include "ir/analysis/frozen.h"
#include "ir/host_call.h"
#include "kernel/build.h"
#include "kernel/bundle.h"
#include "kernel/chain.h"
#include "kernel/contraction.h"
#include "kernel/fusible.h"
#include "passes/control/inductions.h"
#include "passes/memory/buffer_assignment.h"
#include "runtime/lib/function.h"
#include "tensor/layouts.h"

namespace kiln::compiler {
namespace {

using ir::Computation;
using ir::Instruction;
using passes::Buffer;
using passes::BufferAssignment;

// Letters, digits and '_': the characters of symbols in object files and PTX.
std::string SymbolName(std::string_view name) {
  std::string symbol(name);
  for (char& c : symbol) {
    bool fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!fine) c = '_';
  }
  return symbol;
}

// A constant's elements as its layout puts them into memory; a literal's are in row-major order.
std::shared_ptr<const Literal> InMemoryOrder(const Instruction& constant) {
  const Shape& shape = constant.shape();
  const Literal& literal = constant.literal();
  if (shape.is_row_major() || shape.num_elements() == 0) return constant.shared_literal();
  Literal memory(shape);
  CopyToLayout(shape, literal.data(), memory.data());
  return std::make_shared<const Literal>(std::move(memory));
}

class Lowering {
 public:
  Lowering(const ir::Module& module, const Backend& backend, kernel::FusionAnalysis& analysis,
           const Interrupt& interrupt)
      : module_(module), backend_(backend), analysis_(analysis), interrupt_(interrupt) {}

  Result<Lowered> Run(std::span<const passes::FrozenPart> parts) {
    program_.name = module_.name();
    AddSignature(parts);
    for (const passes::FrozenPart& part : parts) KILN_RETURN_IF_ERROR(LowerPart(part));
    at_ = std::move(main_);
    at_.aliases = program_.signature.aliases;
    KILN_RETURN_IF_ERROR(Assign(module_));
    at_.arena = program_.allocations.Add(
        {program::Allocation::Kind::kArena, 0, at_.assignment.arena_bytes});
    program_.arena_bytes = at_.assignment.arena_bytes;
    for (const auto& [instruction, b] : at_.assignment.scratch) {
      const Buffer& scratch = at_.assignment.buffers[b];
      if (scratch.kind != Buffer::Kind::kArena) continue;
      program_.scratch_bytes = std::max(program_.scratch_bytes, scratch.bytes);
    }
    KILN_RETURN_IF_ERROR(EmitModule(module_, program_.steps));
    // The graph is checked where it comes in; this is a check of all that came after.
    KILN_RETURN_IF_ERROR(CheckWritten(lowered_));
    Identify(lowered_, backend_.target(), KernelTexts());
    backend_.Finish(lowered_);
    lowered_.assignment = std::move(at_.assignment);
    return std::move(lowered_);
  }

 private:
  // Where the values of one module are: of the program's, or of a part of it.
  struct Place {
    BufferAssignment assignment;
    std::vector<program::AllocationId> parameters, results;  // by leaf
    std::vector<int> aliases;  // of each result, as program::Signature::aliases
    program::AllocationId arena;
  };

  // Arguments, results, and what parts make of frozen arguments.
  void AddSignature(std::span<const passes::FrozenPart> parts) {
    using Kind = program::Allocation::Kind;
    program::Signature& s = program_.signature;
    s = SignatureOf(module_);
    size_t arguments = s.parameters.size();
    if (!parts.empty()) {
      // The parameters behind the program's own are arrays.
      arguments -=
          module_.entry()->parameters().size() - static_cast<size_t>(parts.front().first_parameter);
    }
    for (size_t i = 0; i < s.parameters.size(); ++i) {
      const Kind kind = i < arguments ? Kind::kParameter : Kind::kBound;
      main_.parameters.push_back(
          program_.allocations.Add({kind, i < arguments ? i : 0, s.parameters[i].byte_size()}));
    }
    s.parameters.resize(arguments);
    s.parameter_names.resize(arguments);
    program_.frozen = ir::FrozenLeaves(module_);
    if (!program_.frozen.empty()) program_.frozen.resize(arguments);
    for (size_t i = 0; i < s.results.size(); ++i) {
      main_.results.push_back(
          program_.allocations.Add({Kind::kResult, i, s.results[i].byte_size()}));
    }
  }

  // What is made of some frozen arguments when they are bound.
  Status LowerPart(const passes::FrozenPart& part) {
    at_ = {};
    for (const int64_t argument : part.arguments) {
      at_.parameters.push_back(main_.parameters[static_cast<size_t>(argument)]);
    }
    const size_t results = static_cast<size_t>(LeafCount(part.module->entry()->root()->shape()));
    // The program's own leaves are those before the first parameter that a part makes.
    const size_t first = program_.signature.parameters.size() + bound_;
    bound_ += results;
    for (size_t r = 0; r < results; ++r) at_.results.push_back(main_.parameters[first + r]);
    at_.aliases.assign(results, -1);
    KILN_RETURN_IF_ERROR(Assign(*part.module));
    at_.arena = program_.allocations.Add(
        {program::Allocation::Kind::kBound, 0, at_.assignment.arena_bytes});
    return EmitModule(*part.module, program_.binding);
  }

  // Builds a module's kernels, and finds the buffers of its values.
  Status Assign(const ir::Module& module) {
    KILN_RETURN_IF_ERROR(BuildKernels(*module.entry()));
    KILN_ASSIGN_OR_RETURN(at_.assignment, passes::AssignBuffers(module, Options()));
    for (const Buffer& b : at_.assignment.buffers) {
      if (b.kind != Buffer::Kind::kConstant || constant_of_.contains(b.constant)) continue;
      constant_of_[b.constant] = program_.allocations.Add(
          {program::Allocation::Kind::kConstant, program_.constants.size(), b.bytes});
      program_.constants.push_back(InMemoryOrder(*b.constant));
    }
    return OkStatus();
  }

  Status EmitModule(const ir::Module& module, program::Steps& steps) {
    if (backend_.counts_trips()) inductions_ = passes::InductionsOf(module);
    KILN_RETURN_IF_ERROR(Emit(*module.entry(), steps));
    EmitResults(*module.entry()->root(), steps);
    return OkStatus();
  }

  passes::AssignmentOptions Options() {
    passes::AssignmentOptions options;
    options.alignment = program::kAlignment;
    options.may_share = [this](const Instruction& i, int64_t operand, int64_t output) {
      auto it = kernel_of_.find(&i);
      if (it == kernel_of_.end() || chains_.contains(&i)) {
        return kernel::MayShareBuffer(i, operand, output, analysis_);
      }
      std::vector<const Instruction*> inputs = InputsOf(i);
      // Of a fusion the parameters are the operands, one by one.
      auto input = i.opcode() == Opcode::kFusion ? inputs.begin() + operand
                                                 : std::ranges::find(inputs, i.operand(operand));
      return kernel::KernelMayShare(i, kernels_[it->second].kernel,
                                    kernel::ParamId(input - inputs.begin()), output);
    };
    options.updated_operand = kernel::UpdatedOperand;
    options.scratch_bytes = [this](const Instruction& i) -> int64_t {
      if (auto it = calls_.find(&i); it != calls_.end()) {
        return backend_.calls_have_scratch() ? it->second.scratch_bytes : 0;
      }
      if (parts_.contains(&i)) return 0;
      if (auto it = chains_.find(&i); it != chains_.end()) return it->second.scratch_bytes;
      return KernelScratch(i);
    };
    options.aliases = at_.aliases;
    return options;
  }

  static bool IsKernel(const Instruction& i) {
    if (ir::IsAlias(i) || ir::IsHostCall(i)) return false;
    // Of tokens only results of the program are left, which are no memory.
    return i.opcode() == Opcode::kFusion || !HasTrait(i.opcode(), kStructural);
  }

  // The values that a kernel's input parameters are: each operand of a single op once.
  static std::vector<const Instruction*> InputsOf(const Instruction& i) {
    if (i.opcode() == Opcode::kFusion) return {i.operands().begin(), i.operands().end()};
    return kernel::GroupOf(i).inputs;
  }

  // Every kernel first: buffer assignment asks for their scratch.
  Status BuildKernels(const Computation& c) {
    for (Instruction* i : c.instructions()) {
      if (i->opcode() == Opcode::kWhile || i->opcode() == Opcode::kConditional) {
        for (const Computation* callee : i->called()) KILN_RETURN_IF_ERROR(BuildKernels(*callee));
      }
      if (ir::IsHostCall(*i)) KILN_RETURN_IF_ERROR(AddCall(*i));
      if (!IsKernel(*i)) continue;
      KILN_RETURN_IF_ERROR(interrupt_.Check());
      if (kernel::IsChain(*i)) {
        KILN_RETURN_IF_ERROR(AddChain(*i));
        continue;
      }
      if (!kernel::IsBundle(*i)) {
        KILN_RETURN_IF_ERROR(AddKernel(*i, InputsOf(*i)));
        continue;
      }
      KILN_ASSIGN_OR_RETURN(std::vector<kernel::BundlePart> parts, kernel::PartsOf(*i));
      for (const kernel::BundlePart& part : parts) {
        KILN_RETURN_IF_ERROR(AddKernel(*part.kernel, InputsOf(*i, part)));
      }
      parts_[i] = std::move(parts);
    }
    return OkStatus();
  }

  Status AddCall(const Instruction& i) {
    CallSignature signature = ir::CallSignatureOf(i);
    const auto* entry = runtime::lib::FindInLibrary(ir::HostCallTarget(i));
    if (entry && entry->scratch_bytes) {
      KILN_ASSIGN_OR_RETURN(signature.scratch_bytes, entry->scratch_bytes(signature));
    }
    calls_.emplace(&i, std::move(signature));
    return OkStatus();
  }

  Status AddChain(const Instruction& i) {
    KILN_ASSIGN_OR_RETURN(kernel::Chain chain, kernel::BuildChain(i, analysis_));
    std::vector<bool> constant;
    for (int64_t o : chain.gemm.operands) constant.push_back(ir::IsFixed(*i.operand(o)));
    KILN_ASSIGN_OR_RETURN(
        ChainKernels kernels,
        ScheduleChainKernels(SymbolName(i.name()), std::move(chain), backend_.scheduler(), constant,
                             analysis_.ScheduleOf(i, constant)));
    auto add = [&](kernel::ScheduledKernel kernel, std::string text) {
      auto [it, fresh] = kernel_by_text_.try_emplace(std::move(text), kernels_.next());
      if (fresh) kernels_.push_back(std::move(kernel));
      return it->second;
    };
    op_names_[&i] = kernels.chain.kernel.op_names;
    auto& parts = std::get<kernel::CpuChain>(kernels.chain.schedule).parts;
    // Different chains have equal parts.
    std::string gemm = Cat("gemm of a chain ", KernelText(kernels.gemm));
    std::string rows = Cat("rows of a chain ", KernelText(kernels.rows),
                           std::get<kernel::CpuNestSchedule>(kernels.rows.schedule).ToString());
    parts[0].kernel = add(std::move(kernels.gemm), std::move(gemm));
    parts[1].kernel = add(std::move(kernels.rows), std::move(rows));
    kernel_of_[&i] = add(std::move(kernels.chain), std::move(kernels.text));
    chains_.emplace(&i, std::move(kernels.layout));
    return OkStatus();
  }

  static std::vector<const Instruction*> InputsOf(const Instruction& bundle,
                                                  const kernel::BundlePart& part) {
    std::vector<const Instruction*> inputs;
    for (int64_t o : part.operands) inputs.push_back(bundle.operand(o));
    return inputs;
  }

  // Equal kernels are one, if the same of their operands are fixed.
  Status AddKernel(const Instruction& i, const std::vector<const Instruction*>& inputs) {
    const Result<kernel::Kernel>& known = analysis_.KernelOf(i);
    KILN_RETURN_IF_ERROR(known.status());
    std::vector<bool> fixed;
    std::string text = analysis_.TextOf(i);
    for (const Instruction* input : inputs) {
      fixed.push_back(ir::IsFixed(*input));
      text += fixed.back() ? '1' : '0';
    }
    auto is_constant = [&](kernel::ParamId param) {
      return param.index() < fixed.size() && fixed[param.index()];
    };
    auto [it, fresh] = kernel_by_text_.try_emplace(std::move(text), kernels_.next());
    op_names_[&i] = known->op_names;
    if (fresh) {
      kernel::Kernel kernel = *known;
      kernel.name = SymbolName(i.name());
      KILN_ASSIGN_OR_RETURN(kernel::ScheduledKernel scheduled,
                            backend_.scheduler().Schedule(std::move(kernel), is_constant));
      kernels_.push_back(std::move(scheduled));
    }
    kernel_of_[&i] = it->second;
    return OkStatus();
  }

  // By kernel its text: equal text, equal kernels.
  std::vector<std::string_view> KernelTexts() const {
    std::vector<std::string_view> texts(kernels_.size());
    for (const auto& [text, id] : kernel_by_text_) texts[id.index()] = text;
    return texts;
  }

  int64_t KernelScratch(const Instruction& i) const {
    auto it = kernel_of_.find(&i);
    if (it == kernel_of_.end()) return 0;
    const kernel::ScheduledKernel& k = kernels_[it->second];
    return PackedLhsBytes(k) + kernel::ScratchBytes(k.schedule);
  }

  program::AllocationId ResultAt(int leaf) const { return at_.results[static_cast<size_t>(leaf)]; }

  program::Slice SliceOf(int buffer) const {
    const Buffer& b = at_.assignment.buffers[buffer];
    switch (b.kind) {
      case Buffer::Kind::kParameter:
        // Where it is a result's memory it is known as that.
        return {b.result >= 0 ? ResultAt(b.result) : at_.parameters[static_cast<size_t>(b.number)],
                0, b.bytes};
      case Buffer::Kind::kResult:
        return {ResultAt(b.number), b.offset, b.bytes};
      case Buffer::Kind::kConstant:
        return {constant_of_.at(b.constant), 0, b.bytes};
      case Buffer::Kind::kArena:
        return {at_.arena, b.offset, b.bytes};
    }
    return {};
  }

  static void EmitCopy(const program::Slice& from, const program::Slice& to,
                       program::Steps& steps) {
    if (!(from == to) && from.bytes > 0) steps.push_back({program::Copy{from, to}});
  }

  Status Emit(const Computation& c, program::Steps& steps) {
    for (Instruction* i : c.instructions()) {
      if (i->opcode() == Opcode::kWhile) {
        KILN_RETURN_IF_ERROR(EmitWhile(*i, steps));
      } else if (i->opcode() == Opcode::kConditional) {
        KILN_RETURN_IF_ERROR(EmitConditional(*i, steps));
      } else if (ir::IsHostCall(*i)) {
        EmitCall(*i, steps);
      } else if (IsKernel(*i)) {
        KILN_RETURN_IF_ERROR(EmitLaunch(*i, steps));
      }
    }
    return OkStatus();
  }

  void EmitCall(const Instruction& i, program::Steps& steps) {
    const CallSignature& signature = calls_.at(&i);
    std::vector<program::Slice> results;
    ForEachArray(
        i, [&](int64_t leaf) { results.push_back(SliceOf(at_.assignment.leaves.at(&i)[leaf])); });
    // An operand in whose memory a part of the result is meant to be is there, or is copied there.
    std::map<std::pair<int64_t, int64_t>, program::Slice> moved;
    for (const ir::CallAlias& alias : ir::CallAliases(i)) {
      auto slice_of = [&](const Instruction* value, int64_t leaf) {
        return SliceOf(at_.assignment.leaves.at(value)[leaf]);
      };
      program::Slice to = slice_of(&i, alias.output);
      EmitCopy(slice_of(i.operand(alias.operand), alias.leaf), to, steps);
      moved[{alias.operand, alias.leaf}] = to;
    }
    program::HostCall call{.target = ir::HostCallTarget(i), .config = signature.Encode()};
    for (int64_t o = 0; o < i.operand_count(); ++o) {
      ForEachArray(*i.operand(o), [&](int64_t leaf) {
        auto it = moved.find({o, leaf});
        call.args.push_back(
            it != moved.end() ? it->second : SliceOf(at_.assignment.BufferOf(i.operand(o), leaf)));
      });
    }
    call.args.insert(call.args.end(), results.begin(), results.end());
    if (auto it = at_.assignment.scratch.find(&i); it != at_.assignment.scratch.end()) {
      call.args.push_back(SliceOf(it->second));
    }
    program::LaunchInfo info{.kernel_name = call.target,
                             .op_names = {i.op_name().empty() ? i.name() : i.op_name()},
                             .is_call = true};
    for (const std::vector<Shape>* shapes : {&signature.operands, &signature.results}) {
      for (const Shape& shape : *shapes) info.bytes += shape.byte_size();
    }
    info.flops = ir::OperationsOf(i).flops;
    call.id = program_.launches.Add(std::move(info));
    steps.push_back({std::move(call)});
  }

  // Calls f with the numbers of the leaves that are no tokens.
  template <typename F>
  static void ForEachArray(const Instruction& value, F&& f) {
    int64_t number = 0;
    ForEachLeaf(value.shape(), [&](const Shape& leaf, std::span<const int64_t>) {
      if (leaf.is_array()) f(number);
      ++number;
    });
  }

  Status EmitLaunch(const Instruction& i, program::Steps& steps) {
    const std::vector<int>& leaves = at_.assignment.leaves.at(&i);
    program::Slice scratch;
    if (auto it = at_.assignment.scratch.find(&i); it != at_.assignment.scratch.end()) {
      scratch = SliceOf(it->second);
    }
    if (chains_.contains(&i)) {
      EmitChain(i, leaves, scratch, steps);
      return OkStatus();
    }
    auto bundle = parts_.find(&i);
    if (bundle == parts_.end()) {
      AddLaunch(
          MakeLaunch(kernel_of_.at(&i), SlicesOf(InputsOf(i)), SlicesOf(leaves), scratch, steps),
          op_names_.at(&i), steps);
      return OkStatus();
    }
    std::vector<PartLaunch> parts;
    program::Launch together;
    for (const kernel::BundlePart& part : bundle->second) {
      std::vector<int> results;
      for (int64_t r : part.results) results.push_back(leaves[r]);
      program::Launch launch = MakeLaunch(kernel_of_.at(part.kernel), SlicesOf(InputsOf(i, part)),
                                          SlicesOf(results), {}, steps);
      together.args.insert(together.args.end(), launch.args.begin(), launch.args.end());
      parts.push_back({launch.kernel, op_names_.at(part.kernel)});
    }
    KILN_ASSIGN_OR_RETURN(kernel::ScheduledKernel kernel,
                          BundleOf(SymbolName(i.name()), backend_.scheduler(), kernels_, parts));
    std::vector<std::string> op_names = kernel.kernel.op_names;
    together.kernel = AddBundle(std::move(kernel));
    AddLaunch(std::move(together), std::move(op_names), steps);
    return OkStatus();
  }

  // Equal bundles are one.
  program::KernelId AddBundle(kernel::ScheduledKernel bundle) {
    std::string text = "bundle";
    for (const kernel::KernelPart& part : kernel::PartsOf(bundle.schedule)) {
      text += Cat(" ", part.kernel);
    }
    auto [it, fresh] = kernel_by_text_.try_emplace(std::move(text), kernels_.next());
    if (fresh) kernels_.push_back(std::move(bundle));
    return it->second;
  }

  // The gemm's launch as if alone, with its items' scratch in the chain's scratch, followed by the
  // arguments of the rows' kernel.
  void EmitChain(const Instruction& i, const std::vector<int>& leaves, program::Slice scratch,
                 program::Steps& steps) {
    const ChainLayout& layout = chains_.at(&i);
    const program::KernelId kernel = kernel_of_.at(&i);
    const auto& schedule = std::get<kernel::CpuChain>(kernels_[kernel].schedule);
    const program::KernelId gemm = schedule.parts[0].kernel;
    auto slice_of = [&](const ChainLayout::Place& place) -> program::Slice {
      switch (place.kind) {
        case ChainLayout::Place::Kind::kOperand:
          return SliceOf(at_.assignment.BufferOf(i.operand(place.number)));
        case ChainLayout::Place::Kind::kResult:
          return SliceOf(leaves[place.number]);
        case ChainLayout::Place::Kind::kScratch:
          break;
      }
      return {scratch.allocation, scratch.offset + place.number, place.bytes};
    };
    auto slices_of = [&](const std::vector<ChainLayout::Place>& places) {
      std::vector<program::Slice> slices;
      for (const ChainLayout::Place& place : places) slices.push_back(slice_of(place));
      return slices;
    };
    program::Slice packed{scratch.allocation, scratch.offset, layout.gemm_scratch};
    program::Launch launch = MakeLaunch(gemm, slices_of(layout.gemm_inputs),
                                        slices_of(layout.gemm_results), packed, steps);
    launch.kernel = kernel;
    for (const program::Slice& s : slices_of(layout.rows_args)) launch.args.push_back(s);
    AddLaunch(std::move(launch), op_names_.at(&i), steps);
  }

  std::vector<program::Slice> SlicesOf(const std::vector<const Instruction*>& values) const {
    std::vector<program::Slice> slices;
    for (const Instruction* value : values)
      slices.push_back(SliceOf(at_.assignment.BufferOf(value)));
    return slices;
  }
  std::vector<program::Slice> SlicesOf(const std::vector<int>& buffers) const {
    std::vector<program::Slice> slices;
    for (int b : buffers) slices.push_back(SliceOf(b));
    return slices;
  }

  // Steps that go before are added to `steps`.
  program::Launch MakeLaunch(program::KernelId kernel, std::vector<program::Slice> inputs,
                             const std::vector<program::Slice>& results, program::Slice scratch,
                             program::Steps& steps) {
    program::Launch launch;
    launch.kernel = kernel;
    launch.args = std::move(inputs);
    launch.args.insert(launch.args.end(), results.begin(), results.end());
    const auto& params = kernels_[launch.kernel].kernel.params;
    for (const kernel::Param& p : params) {
      if (p.same_as.valid()) launch.args.push_back(launch.args[p.same_as.index()]);
    }
    // The parts of an output not written by a kernel must exist.
    for (kernel::ParamId p : params.ids()) {
      const kernel::ParamId from = params[p].in_place_of;
      if (from.valid()) EmitCopy(launch.args[from.index()], launch.args[p.index()], steps);
    }
    // The kernel's scratch: the packed left operand, then its own.
    if (int64_t packed = PackedLhsBytes(kernels_[launch.kernel]); packed > 0) {
      program::Slice panels{scratch.allocation, scratch.offset, packed};
      Pack(launch, kernel::CpuGemm::Role::kPackLhs, panels, steps);
      scratch.offset += packed;
      scratch.bytes -= packed;
    }
    if (int64_t packed = PackedRhsBytes(kernels_[launch.kernel]); packed > 0) {
      program::Slice panels{scratch.allocation, scratch.offset, packed};
      Pack(launch, kernel::CpuGemm::Role::kPackRhs, panels, steps);
      scratch.offset += packed;
      scratch.bytes -= packed;
    }
    if (scratch.bytes > 0) launch.args.push_back(scratch);
    PackConstantRhs(launch);
    return launch;
  }

  void AddLaunch(program::Launch launch, std::vector<std::string> op_names, program::Steps& steps) {
    const kernel::Kernel& kernel = kernels_[launch.kernel].kernel;
    launch.id = program_.launches.Add({kernel.name, std::move(op_names),
                                       kernel.bytes_read + kernel.bytes_written,
                                       kernel.flops + kernel.transcendentals});
    steps.push_back({std::move(launch)});
  }

  // Adds a launch that packs an operand of `gemm`, and puts the panels in the operand's place.
  void Pack(program::Launch& gemm, kernel::CpuGemm::Role role, const program::Slice& panels,
            program::Steps& steps) {
    // Of the kernel, which a new one may move.
    const std::shared_ptr<const kernel::Contraction> contraction =
        std::get<kernel::CpuGemm>(kernels_[gemm.kernel].schedule).contraction;
    bool left = role == kernel::CpuGemm::Role::kPackLhs;
    const size_t param = (left ? contraction->a_param : contraction->b_param).index();
    auto [it, fresh] = packing_kernels_.try_emplace({gemm.kernel, left}, kernels_.next());
    if (fresh) kernels_.push_back(PackingKernel(kernels_[gemm.kernel], role));
    program::Launch pack;
    pack.kernel = it->second;
    pack.args = {gemm.args[param], panels};
    if (const auto& prologue = left ? contraction->a_prologue : contraction->b_prologue) {
      const kernel::Stage& stage = kernels_[gemm.kernel].kernel.stages.front();
      for (kernel::NodeId other : prologue->others) {
        const kernel::ParamId p = stage.nodes[other].param;
        pack.args.push_back(gemm.args[p.index()]);
      }
    }
    gemm.args[param] = panels;
    AddLaunch(std::move(pack), kernels_[it->second].kernel.op_names, steps);
  }

  // A right operand that is a constant is packed when the program is loaded, a frozen one when it
  // is bound.
  void PackConstantRhs(program::Launch& launch) {
    const kernel::ScheduledKernel& k = kernels_[launch.kernel];
    const auto* gemm = std::get_if<kernel::CpuGemm>(&k.schedule);
    if (!gemm || gemm->schedule->b != kernel::GemmB::kPrepacked) return;
    const std::shared_ptr<const kernel::Contraction> contraction = gemm->contraction;
    if (!contraction->problem.b_constant) return;
    int64_t bytes = gemm->schedule->packed_b_bytes;
    program::Slice source = launch.args[contraction->b_param.index()];
    std::pair key(launch.kernel, std::vector{source.allocation});
    if (const auto& prologue = contraction->b_prologue) {
      for (kernel::NodeId other : prologue->others) {
        const kernel::ParamId p = k.kernel.stages.front().nodes[other].param;
        key.second.push_back(launch.args[p.index()].allocation);
      }
    }
    auto [it, fresh] = packed_constants_.try_emplace(std::move(key), program_.allocations.next());
    program::Slice panels{it->second, 0, bytes};
    if (!fresh) {
      launch.args[contraction->b_param.index()] = panels;
      return;
    }
    using Kind = program::Allocation::Kind;
    if (std::ranges::all_of(it->first.second, [&](program::AllocationId id) {
          return program_.allocations[id].kind == Kind::kConstant;
        })) {
      program_.allocations.push_back({Kind::kConstant, program_.constants.size(), bytes});
      program_.constants.push_back(nullptr);
      Pack(launch, kernel::CpuGemm::Role::kPackRhs, panels, program_.prologue);
    } else {
      program_.allocations.push_back({Kind::kBound, 0, bytes});
      Pack(launch, kernel::CpuGemm::Role::kPackRhs, panels, program_.binding);
    }
  }

  // state = operand; while (condition(state)) state = body(state).
  Status EmitWhile(const Instruction& i, program::Steps& steps) {
    const std::vector<int>& state = at_.assignment.leaves.at(&i);
    const std::vector<int>& initial = at_.assignment.leaves.at(i.operand(0));
    for (size_t leaf = 0; leaf < state.size(); ++leaf) {
      EmitCopy(SliceOf(initial[leaf]), SliceOf(state[leaf]), steps);
    }
    program::While loop;
    KILN_RETURN_IF_ERROR(Emit(*i.called(0), loop.condition));
    loop.predicate = SliceOf(at_.assignment.BufferOf(i.called(0)->root()));
    KILN_RETURN_IF_ERROR(Emit(*i.called(1), loop.body));
    const std::vector<int>& next = at_.assignment.leaves.at(i.called(1)->root());
    const std::vector<int>& temporaries = at_.assignment.loop_temporaries.at(&i);
    for (size_t leaf = 0; leaf < state.size(); ++leaf) {
      if (temporaries[leaf] >= 0) {
        EmitCopy(SliceOf(next[leaf]), SliceOf(temporaries[leaf]), loop.body);
      }
    }
    for (size_t leaf = 0; leaf < state.size(); ++leaf) {
      int from = temporaries[leaf] >= 0 ? temporaries[leaf] : next[leaf];
      EmitCopy(SliceOf(from), SliceOf(state[leaf]), loop.body);
    }
    if (auto it = inductions_.find(&i); it != inductions_.end()) {
      loop.trips = it->second.trip_count.value_or(loop.trips);
    }
    loop.id = program_.launches.Add({SymbolName(i.name()), {i.name()}, 0, 0});
    steps.push_back({std::move(loop)});
    return OkStatus();
  }

  Status EmitConditional(const Instruction& i, program::Steps& steps) {
    program::Conditional conditional;
    conditional.index = SliceOf(at_.assignment.BufferOf(i.operand(0)));
    conditional.by_predicate = IsPred(i.operand(0)->shape().type());
    const std::vector<int>& results = at_.assignment.leaves.at(&i);
    for (const Computation* branch : i.called()) {
      program::Steps& branch_steps = conditional.branches.emplace_back();
      KILN_RETURN_IF_ERROR(Emit(*branch, branch_steps));
      const std::vector<int>& from = at_.assignment.leaves.at(branch->root());
      for (size_t leaf = 0; leaf < results.size(); ++leaf) {
        EmitCopy(SliceOf(from[leaf]), SliceOf(results[leaf]), branch_steps);
      }
    }
    steps.push_back({std::move(conditional)});
    return OkStatus();
  }

  // Results that are parameters, constants, or another result again. Values in the memory of a
  // result are read before the result is written there.
  void EmitResults(const Instruction& root, program::Steps& steps) {
    const std::vector<int>& results = at_.assignment.leaves.at(&root);
    auto to = [&](size_t leaf) {
      int64_t bytes = at_.assignment.buffers[results[leaf]].bytes;
      return program::Slice{ResultAt(static_cast<int>(leaf)), 0, bytes};
    };
    const auto& temporaries = at_.assignment.result_temporaries;
    auto is_home = [&](size_t leaf) { return at_.assignment.buffers[results[leaf]].result >= 0; };
    auto is_aliased = [&](size_t leaf) { return at_.aliases[leaf] >= 0; };
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (auto it = temporaries.find(static_cast<int64_t>(leaf)); it != temporaries.end()) {
        EmitCopy(SliceOf(results[leaf]), SliceOf(it->second), steps);
      } else if (is_home(leaf) && !is_aliased(leaf)) {
        EmitCopy(SliceOf(results[leaf]), to(leaf), steps);
      }
    }
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (!is_home(leaf)) EmitCopy(SliceOf(results[leaf]), to(leaf), steps);
    }
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (auto it = temporaries.find(static_cast<int64_t>(leaf)); it != temporaries.end()) {
        EmitCopy(SliceOf(it->second), to(leaf), steps);
      }
    }
  }

  const ir::Module& module_;
  const Backend& backend_;
  kernel::FusionAnalysis& analysis_;
  const Interrupt interrupt_;
  Lowered lowered_;
  program::Program& program_ = lowered_.program;
  codegen::ScheduledKernels& kernels_ = lowered_.kernels;
  Place at_;          // of the module at hand
  Place main_;        // of the program's, as far as it is known while parts are lowered
  size_t bound_ = 0;  // results of the parts so far
  std::unordered_map<std::string, program::KernelId> kernel_by_text_;
  std::unordered_map<const Instruction*, program::KernelId> kernel_of_;
  std::unordered_map<const Instruction*, program::AllocationId> constant_of_;
  std::unordered_map<const Instruction*, std::vector<std::string>> op_names_;
  std::unordered_map<const Instruction*, std::vector<kernel::BundlePart>> parts_;  // of bundles
  std::unordered_map<const Instruction*, ChainLayout> chains_;
  std::unordered_map<const Instruction*, CallSignature> calls_;
  std::unordered_map<const Instruction*, ir::Induction> inductions_;  // of loops
  // (gemm, left operand) -> packing kernel.
  std::map<std::pair<program::KernelId, bool>, program::KernelId> packing_kernels_;
  // (gemm, constants) -> their packed forms.
  std::map<std::pair<program::KernelId, std::vector<program::AllocationId>>, program::AllocationId>
      packed_constants_;
};

}  // namespace

program::Signature SignatureOf(const ir::Module& module) {
  program::Signature signature;
  const Computation& entry = *module.entry();
  for (const Instruction* p : entry.parameters()) {
    bool several = p->shape().is_tuple();
    // Where a program tells a name that HLO's names cannot be, it is the op's.
    const std::string& name = p->op_name().empty() ? p->name() : p->op_name();
    ForEachLeaf(p->shape(), [&](const Shape& leaf, std::span<const int64_t> path) {
      signature.parameters.push_back(leaf);
      signature.parameter_names.push_back(several ? Cat(name, ".", Join(path, ".")) : name);
    });
  }
  signature.result_shape = entry.root()->shape();
  ForEachLeaf(entry.root()->shape(), [&](const Shape& leaf, std::span<const int64_t>) {
    signature.results.push_back(leaf);
  });
  signature.aliases.assign(signature.results.size(), -1);
  signature.must_alias.assign(signature.results.size(), false);
  for (const ir::InputOutputAlias& alias : module.aliases()) {
    const Shape& source = entry.parameter(alias.parameter)->shape();
    int64_t in = LeafAt(source, alias.parameter_index);
    for (int64_t p = 0; p < alias.parameter; ++p) in += LeafCount(entry.parameter(p)->shape());
    const int64_t out = LeafAt(entry.root()->shape(), alias.output_index);
    const int64_t count = LeafCount(*PartAt(source, alias.parameter_index));
    for (int64_t k = 0; k < count; ++k) {
      size_t result = static_cast<size_t>(out + k), parameter = static_cast<size_t>(in + k);
      // Memory is shared only where it is in one order.
      bool taken = signature.aliases[result] >= 0 ||
                   std::ranges::find(signature.aliases, static_cast<int>(parameter)) !=
                       signature.aliases.end();
      if (taken || !(signature.results[result] == signature.parameters[parameter])) continue;
      signature.aliases[result] = static_cast<int>(parameter);
      signature.must_alias[result] = alias.must_alias;
    }
  }
  return signature;
}

Result<Lowered> Lower(const ir::Module& module, const Backend& backend,
                      kernel::FusionAnalysis& analysis, const Interrupt& interrupt,
                      std::span<const passes::FrozenPart> parts) {
  return Lowering(module, backend, analysis, interrupt).Run(parts);
}

}  // namespace kiln::compiler
