// The program as data: an ordered tree of steps over slices of assigned buffers. CPU entry code,
// GPU graphs, the emulator, ahead-of-time objects and serialisation are all made from this alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {
struct Contraction;      // kernel/contraction.h
struct GemmSchedule;     // kernel/schedule/cpu/gemm.h
struct CpuSortSchedule;  // kernel/schedule/cpu/sort.h
}  // namespace kiln::kernel

namespace kiln::plan {

// A block of memory that is there when the program starts; slices point into it. The frame's
// buffers are the allocations, by index.
struct Allocation {
  enum class Kind : uint8_t {
    kParameter,  // leaf `number` of the arguments: read, never written unless it is donated
    kResult,     // leaf `number` of the results: the caller's memory or the device's
    kConstant,   // program.constants[number]
    kArena,      // temporaries: private to a run, contents undefined at its start
  };
  Kind kind = Kind::kArena;
  int number = 0;
  int64_t bytes = 0;
};
// Allocations start at addresses that are multiples of this, and slices at such offsets.
inline constexpr int64_t kAlignment = 64;

struct Slice {
  int allocation = -1;
  int64_t offset = 0, bytes = 0;
  bool operator==(const Slice&) const = default;
};

// A kernel of a bundle or chain. Its arguments are the bundle's from `first_arg` on, and its items
// are the bundle's from `first_item` on, of which each of its own counts for `weight`.
struct BundlePart {
  int kernel = -1;  // index into Program::kernels
  int first_arg = 0;
  int64_t first_item = 0, weight = 1;
  kernel::GpuSchedule gpu;  // on a GPU, where it is the bundle's own
};

// How the two kernels of a chain alternate: for each block of rows the product's items of the
// block, then the other kernel's one item. Items of the chain are so many blocks.
struct ChainBlocks {
  int64_t blocks = 1, per_item = 1;
  // An argument in scratch of which each item has a piece, `item_bytes` long, for one block. The
  // kernels find a block's part `block_bytes` further than the part of the block before.
  struct Piece {
    int arg = 0;  // of the chain's
    int64_t item_bytes = 0, block_bytes = 0;
  };
  std::vector<Piece> pieces;
};

// A kernel with the schedule for the program's target.
struct ScheduledKernel {
  // How a packed operand of a matrix product is made: its own kernel before the product's. A bundle
  // is kernels of the program side by side, a chain a product and another one after it.
  enum class Form : uint8_t { kNest, kGemm, kPackLhs, kPackRhs, kBundle, kChain };
  kernel::Kernel kernel;
  Form form = Form::kNest;
  kernel::CpuNestSchedule cpu;                          // kNest on a CPU
  std::shared_ptr<const kernel::CpuSortSchedule> sort;  // of a sort, in place of `cpu`
  // Of kGemm, kPackLhs and kPackRhs on a CPU.
  std::shared_ptr<const kernel::Contraction> contraction;
  std::shared_ptr<const kernel::GemmSchedule> gemm;
  // Of kBundle and kChain, whose kernels have no stages. Of a chain's parts a block is `weight`
  // items.
  std::vector<BundlePart> parts;
  ChainBlocks chain;
  kernel::GpuSchedule gpu;  // on a GPU, and then none of the others
  // On a CPU.
  int64_t items = 1;      // [0, items) are independent
  int64_t max_tasks = 1;  // pieces worth their dispatch
  bool finish = false;    // one more call, [items, items + 1), after all others
};

struct Step;
using Steps = std::vector<Step>;

// Runs a kernel. `args` go by the kernel's parameters, then the schedule's scratch where it has
// one. Of a pack they are the operand and the panels; of a product with packed operands the panels
// stand in the operands' places.
struct Launch {
  int kernel = -1;
  std::vector<Slice> args;
  int id = -1;  // index into Program::launches
  // Its code stands in the fused loop that it is in: no call. Of nests in one task, without
  // scratch.
  bool inlined = false;
};
struct Copy {
  Slice from, to;
};
// A function outside generated code, by its name in the registry that the device resolves. `config`
// is a CallSignature (tensor/call_signature.h), and `args` are its operands, results and, on a CPU,
// scratch; a device that the function cannot get at has scratch on the host.
struct Call {
  std::string target;
  std::vector<Slice> args;
  std::string config;
  int id = -1;  // index into Program::launches
};
struct While {
  Steps condition;
  Slice predicate;  // one pred, written by the condition's steps
  Steps body;
  int id = -1;  // index into Program::launches: its name in timelines
  // One piece of code, in which kernels may stand inlined.
  bool fused = false;
  int64_t trips = -1;  // how often the body runs, whatever the predicate says; -1: not known
};
struct Conditional {
  Slice index;  // one pred (true is branch 0) or one s32 (out of range is the last branch)
  bool by_predicate = true;
  std::vector<Steps> branches;
};
// The branch that the value of a conditional's index says, of so many.
size_t BranchAt(const std::byte* value, bool by_predicate, size_t branches);
struct Step {
  std::variant<Launch, Copy, Call, While, Conditional> what;
};

// What a launch, a call (there the target) or a loop is called in timelines.
struct LaunchInfo {
  std::string kernel_name;
  std::vector<std::string> op_names;
  int64_t bytes = 0, flops = 0;
  bool is_call = false;
};

// Arguments and results are leaves: tuples are flattened, in order.
struct Signature {
  std::vector<Shape> parameters;
  std::vector<std::string> parameter_names;
  std::vector<Shape> results;
  Shape result_shape;  // as the module has it, perhaps a tuple
  // result leaf -> parameter leaf whose memory it is in, or -1. When a run begins the two are one
  // memory (the argument is donated), or the argument has been copied to the result.
  std::vector<int> aliases;
  // Of a result leaf with an alias: whether the argument must be donated.
  std::vector<bool> must_alias;
};

struct Program {
  std::string name;
  target::Kind target = target::Kind::kCpu;
  Signature signature;
  std::vector<Allocation> allocations;
  std::vector<std::shared_ptr<const Literal>> constants;
  // Run once when the program is loaded, before any execution: makes what depends on constants
  // alone (packed weights). Writes allocations of kind kConstant that have no literal (null).
  Steps prologue;
  Steps steps;
  std::vector<ScheduledKernel> kernels;
  std::vector<LaunchInfo> launches;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes = 0;               // of the arena, the most that one kernel has for itself
  int64_t flops = 0, transcendentals = 0;  // by ir/cost.h, of the module as it was given

  // For people and for dumps.
  std::string ToString() const;
};
// Launches, copies and calls in the program outside loops, each loop's and branch's counted once.
int64_t CountKernels(const Steps& steps);

// What compiling gives: all that a device needs to load and run, and nothing that ties it to a
// process. For REFERENCE the verified module, elsewhere plan and code.
struct Artefact {
  target::Target target;
  Program program;
  std::vector<std::string> objects;          // relocatable object files, or PTX modules
  std::shared_ptr<const ir::Module> module;  // of REFERENCE only
  int64_t compile_microseconds = 0;
};
// On a GPU, the symbol of the code of one of a kernel's launches.
std::string GpuSymbol(const Program& program, int kernel, size_t launch);
// On a CPU, the symbol of the native entry (kiln_entry_fn), and of the prologue's.
inline constexpr char kEntrySymbol[] = "kiln_entry";
inline constexpr char kPrologueSymbol[] = "kiln_prologue";

}  // namespace kiln::plan
