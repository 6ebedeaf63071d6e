// The program as data: an ordered tree of steps over slices of assigned buffers, and everything a
// device needs to run it. CPU entry code, GPU graphs, the emulator, ahead-of-time objects and
// serialisation are all made from this alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "program/library_gemm.h"
#include "tensor/literal.h"
#include "tensor/shape.h"

namespace kiln::program {

// A block of memory that is there when the program starts; slices point into it. The frame's
// buffers are the allocations, by index.
struct Allocation {
  enum class Kind : uint8_t {
    kParameter,  // leaf `number` of the arguments: read, never written unless it is donated
    kResult,     // leaf `number` of the results: the caller's memory or the device's
    kConstant,   // program.constants[number]
    kBound,      // written by `binding`, from frozen arguments
    kArena,      // temporaries: private to a run, contents undefined at its start
  };
  Kind kind = Kind::kArena;
  size_t number = 0;
  int64_t bytes = 0;
};
using AllocationId = Id<Allocation>;  // of Program::allocations
using Addresses = IdVector<AllocationId, std::byte*>;
// Allocations start at addresses that are multiples of this, and slices at such offsets.
inline constexpr int64_t kAlignment = 64;

struct Slice {
  AllocationId allocation;
  int64_t offset = 0, bytes = 0;
  bool operator==(const Slice&) const = default;
};

struct Kernel;
using KernelId = Id<Kernel>;  // of Program::kernels
struct LaunchInfo;
using LaunchId = Id<LaunchInfo>;  // of Program::launches

struct Step;
using Steps = std::vector<Step>;

// Runs a kernel. `args` go by the kernel's parameters, then the schedule's scratch where it has
// one. Of a pack they are the operand and the panels; of a gemm with packed operands the panels
// stand in the operands' places.
struct Launch {
  KernelId kernel;
  std::vector<Slice> args;
  LaunchId id;
  // Its code is inlined in its fused loop: no call. Of nests in one task, without scratch.
  bool inlined = false;
};
struct Copy {
  Slice from, to;
};
// A function outside generated code, by its name in the registry that the device resolves. `config`
// is a CallSignature (tensor/call_signature.h), and `args` are its operands, results and, on a CPU,
// scratch; a device that the function cannot get at has scratch on the host.
struct HostCall {
  std::string target;
  std::vector<Slice> args;
  std::string config;
  LaunchId id;
};
struct While {
  Steps condition;
  Slice predicate;  // one pred, written by the condition's steps
  Steps body;
  LaunchId id;  // its name in timelines
  // One piece of code, with kernels possibly inlined.
  bool fused = false;
  int64_t trips = -1;  // how often the body runs, whatever the predicate says; -1: not known
};
struct Conditional {
  Slice index;  // one pred (true is branch 0) or one s32 (out of range is the last branch)
  bool by_predicate = true;
  std::vector<Steps> branches;
};
// The branch selected by the value of a conditional's index.
size_t BranchAt(const std::byte* value, bool by_predicate, size_t branches);
struct Step {
  std::variant<Launch, Copy, HostCall, While, Conditional> what;
};

// A grid of a GPU's blocks, all of one size, with code of its own.
struct Grid {
  std::string symbol;
  int64_t blocks = 1;
  int threads = 1;           // of a block
  int64_t shared_bytes = 0;  // dynamic shared memory of a block
};

// The code of a launch. On a CPU the entry's code calls it, and nothing more is needed.
struct Kernel {
  std::string name;
  std::vector<Grid> grids;  // one after the other, with the same arguments
  // A library's gemm in the place of the grids: the device chooses when it loads.
  std::optional<LibraryGemm> library;
};

// The name of a launch, a call (its target) or a loop in timelines.
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
  // Its target (read by target::CheckRunsOn), and the KILN_FRAME_VERSION of its code.
  std::string target;
  int frame_version = 0;
  // Ends the symbols of its code, which no other program's has: 16 hexadecimal digits. Made of the
  // kernels or the text of the module, the steps and the constants.
  std::string id;
  Signature signature;
  // The required alignment by parameter leaf; empty: kAlignment.
  std::vector<int64_t> argument_alignments;
  IdVector<AllocationId, Allocation> allocations;
  std::vector<std::shared_ptr<const Literal>> constants;
  // By argument, without tokens: whether executions may donate it.
  std::vector<bool> donatable;
  // By argument: whether it is frozen, bound once for all runs (program/frozen.h). Empty: none is.
  std::vector<bool> frozen;
  // Run once when the program is loaded, before any execution: makes what depends on constants
  // alone (packed weights), and has no other memory. Writes allocations of kind kConstant that have
  // no literal (null).
  Steps prologue;
  // Run when frozen arguments are bound: makes what depends on them and on constants alone, in
  // allocations of kind kBound.
  Steps binding;
  Steps steps;
  IdVector<KernelId, Kernel> kernels;
  IdVector<LaunchId, LaunchInfo> launches;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes = 0;               // of the arena, the most that one kernel has for itself
  int64_t flops = 0, transcendentals = 0;  // by ir/analysis/cost.h, of the module as it was given
  // Whether these leave out work: the turns of loops, and custom calls.
  bool has_partial_cost = false;
  // How long a run takes on one thread of a CPU: a guess, which tells small programs from others.
  double nanoseconds = std::numeric_limits<double>::infinity();

  // For people and for dumps.
  std::string ToString() const;
};
// Launches, copies and calls in the program outside loops, each loop's and branch's counted once.
int64_t CountKernels(const Steps& steps);

// Code assembled for one architecture of GPUs, beside the portable code it was made of.
struct MachineCode {
  std::string architecture;         // "sm_90"
  std::vector<std::string> images;  // cubins, one for each piece of Artefact::code
};

// The result of a compilation: everything a device needs to load and run, and nothing tied to a
// process.
struct Artefact {
  Program program;
  // Relocatable object files, or PTX modules. Of REFERENCE the module as HLO text, the constants of
  // which are the program's where they are elided.
  std::vector<std::string> code;
  // Nothing: the device assembles the code when it loads it.
  std::optional<MachineCode> machine_code;
  int64_t compile_microseconds = 0;
  // Whether a device that has loaded it keeps what is needed to save it again
  // (runtime::LoadedExecutable::Save).
  bool keeps_code = false;
};

// On a CPU, the symbols of the native entry (kiln_entry_fn), of the prologue's, and of the binding
// steps of a group of frozen arguments.
std::string EntrySymbol(const Program& program);
std::string PrologueSymbol(const Program& program);
std::string BindingSymbol(const Program& program, size_t group);

}  // namespace kiln::program
