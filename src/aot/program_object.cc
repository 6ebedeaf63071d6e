#include "aot/program_object.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "aot/names.h"
#include "aot/targets.h"
#include "base/hash.h"
#include "base/strings.h"
#include "device/cpu/stack_sizes.h"
#include "kiln/types.h"
#include "program/steps.h"
#include "rt/format.h"
#include "rt/parts.h"
#include "runtime/custom_calls.h"
#include "tensor/call_signature.h"

namespace kiln::aot {
namespace {

using program::Allocation;
using Kind = ElfObject::Kind;
using Place = ElfObject::Place;

// Objects of this machine describe programs of other machines.
static_assert(sizeof(void*) == 8 && alignof(kiln_aot_code) == 8);

// What code may refer to: LLVM's helpers, and the table of addresses.
constexpr std::string_view kExternals[] = {"memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_"};

// Frames of the run time itself.
constexpr int64_t kOwnStackBytes = 16 << 10;

// Writes the description.
class Description {
 public:
  explicit Description(ElfObject& object) : object_(object) {}

  // Equal constants of versions are there once.
  Place Bytes(std::string_view bytes, int64_t alignment) {
    Place& place = known_[{HashOf(bytes), alignment}];
    if (place.symbol == 0) place = object_.AddBytes(Kind::kReadOnly, bytes, alignment);
    return place;
  }
  Place Text(std::string_view text) { return Bytes(std::string(text) + '\0', 1); }
  Place Numbers(const std::vector<int64_t>& numbers) {
    return Bytes({reinterpret_cast<const char*>(numbers.data()), 8 * numbers.size()}, 8);
  }

  // A table of structs, with the places that pointers in it lead to.
  template <typename T>
  class Table {
   public:
    explicit Table(size_t count) : rows_(count) {}
    T& operator[](size_t i) { return rows_[i]; }
    const std::vector<T>& rows() const { return rows_; }
    // `pointer` is a member of row i, or of a part of it.
    template <typename P>
    void Set(size_t i, P* const& pointer, Place place) {
      const auto* row = reinterpret_cast<const char*>(&rows_[i]);
      const int64_t offset = reinterpret_cast<const char*>(&pointer) - row;
      pointers_.push_back({static_cast<int64_t>(i * sizeof(T)) + offset, place});
    }
    Place Write(ElfObject& object) const {
      if (rows_.empty()) return {};
      const Place place = object.AddBytes(
          Kind::kRelocated, {reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(T)},
          8);
      for (const auto& [offset, to] : pointers_) {
        if (to.symbol != 0) object.PutPointer(place, offset, to);
      }
      return place;
    }

   private:
    std::vector<T> rows_;
    std::vector<std::pair<int64_t, Place>> pointers_;
  };

  struct ArrayDetails {
    std::string_view name;
    int64_t alignment = program::kAlignment, alias = -1;
  };
  template <typename F>
  Place Arrays(const std::vector<Shape>& shapes, const F& details_of) {
    Table<kiln_aot_array> table(shapes.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Shape& shape = shapes[i];
      const ArrayDetails details = details_of(i);
      kiln_aot_array& array = table[i];
      array.dtype = shape.is_token() ? KILN_TOKEN : static_cast<int32_t>(shape.type());
      array.rank = static_cast<int32_t>(shape.rank());
      array.byte_size = shape.byte_size();
      array.alignment = details.alignment;
      array.alias = details.alias;
      std::vector<int64_t> order = shape.minor_to_major();
      for (int64_t d = shape.rank() - 1; shape.is_row_major() && d >= 0; --d) order.push_back(d);
      table.Set(i, array.name, Text(details.name));
      table.Set(i, array.dims, Numbers(shape.dims()));
      table.Set(i, array.minor_to_major, Numbers(order));
    }
    return table.Write(object_);
  }

  Place Buffers(const program::Program& program, Table<kiln_aot_buffer>& table);
  Result<Place> Calls(const program::Program& program, int64_t& count);

 private:
  ElfObject& object_;
  std::map<std::pair<Digest, int64_t>, Place> known_;
};

Place Description::Buffers(const program::Program& program, Table<kiln_aot_buffer>& table) {
  for (program::AllocationId id : program.allocations.ids()) {
    const Allocation& allocation = program.allocations[id];
    kiln_aot_buffer& buffer = table[id.index()];
    buffer.number = static_cast<int64_t>(allocation.number);
    buffer.bytes = allocation.bytes;
    switch (allocation.kind) {
      case Allocation::Kind::kParameter:
        buffer.kind = KILN_AOT_PARAMETER;
        break;
      case Allocation::Kind::kResult:
        buffer.kind = KILN_AOT_RESULT;
        break;
      case Allocation::Kind::kArena:
      case Allocation::Kind::kBound:  // none: nothing is frozen ahead of time
        buffer.kind = KILN_AOT_ARENA;
        break;
      case Allocation::Kind::kConstant: {
        const auto& literal = program.constants[allocation.number];
        buffer.kind = literal ? KILN_AOT_CONSTANT : KILN_AOT_MADE;
        if (!literal || allocation.bytes == 0) break;
        table.Set(id.index(), buffer.data,
                  Bytes({reinterpret_cast<const char*>(literal->data()),
                         static_cast<size_t>(literal->byte_size())},
                        program::kAlignment));
        break;
      }
    }
  }
  return table.Write(object_);
}

Result<Place> Description::Calls(const program::Program& program, int64_t& count) {
  std::map<program::LaunchId, const program::HostCall*> calls;
  for (const program::HostCall* call : program::HostCallSteps(program)) calls[call->id] = call;
  count = std::ssize(calls);
  Table<kiln_aot_call_step> table(calls.size());
  size_t i = 0;
  for (const auto& [id, call] : calls) {
    KILN_ASSIGN_OR_RETURN(const CallSignature signature, CallSignature::Decode(call->config));
    kiln_aot_call_step& step = table[i];
    step.launch = id.value();
    step.signature_bytes = std::ssize(call->config);
    step.call.attributes_length = signature.attributes.size();
    step.call.operand_count = static_cast<int32_t>(signature.operands.size());
    step.call.result_count = static_cast<int32_t>(signature.results.size());
    step.call.api_version = static_cast<int32_t>(signature.api_version);
    step.call.has_side_effect = signature.has_side_effect;
    table.Set(i, step.signature, Bytes(call->config, 1));
    table.Set(i, step.call.name, Text(runtime::CallName(program.launches[call->id])));
    table.Set(i, step.call.target, Text(call->target));
    table.Set(i, step.call.attributes, Text(signature.attributes));
    table.Set(i, step.call.operands,
              Arrays(signature.operands, [](size_t) { return ArrayDetails(); }));
    table.Set(i, step.call.results, Arrays(signature.results, [&](size_t result) {
                ArrayDetails details;
                for (const auto& [aliased, operand] : signature.aliases) {
                  if (aliased == result) details.alias = static_cast<int64_t>(operand);
                }
                return details;
              }));
    const std::string_view library = rt::LibrarySymbol(call->target);
    if (!library.empty()) {
      table.Set(i, step.library, object_.External(library));
    } else {
      table.Set(i, step.function, object_.External(CName(call->target)));
    }
    ++i;
  }
  return table.Write(object_);
}

// Whether the run time, or the program that links the object, may have the function that a call of
// the program `name` calls.
Status CheckTarget(std::string_view name, const program::Program& program,
                   const program::HostCall& call) {
  if (!rt::LibrarySymbol(call.target).empty()) return OkStatus();
  for (std::string_view own : {"kiln.", "interpreter.", "check."}) {
    if (StartsWith(call.target, own)) {
      return Unimplemented(runtime::CallName(program.launches[call.id]),
                           ": programs compiled ahead of time have no ", call.target);
    }
  }
  // What the linker or the header would take for it.
  const std::string function = CName(call.target);
  constexpr std::string_view kTaken[] = {"main", "memcpy", "memmove", "memset", "strlen"};
  if (std::ranges::find(kTaken, function) != std::end(kTaken) ||
      StartsWith(function, "kiln_aot_") || function == Cat(name, "_program") ||
      function == Cat(name, "_run")) {
    return InvalidArgument(runtime::CallName(program.launches[call.id]), ": the name ", function,
                           " is another function's");
  }
  return OkStatus();
}

}  // namespace

std::vector<int64_t> ArgumentAlignments(const std::vector<Version>& versions) {
  const size_t count = versions[0].artefact.program.signature.parameters.size();
  std::vector<int64_t> alignments(count, 1);
  for (const Version& version : versions) {
    const std::vector<int64_t>& own = version.artefact.program.argument_alignments;
    for (size_t i = 0; i < count; ++i) {
      alignments[i] = std::max(alignments[i], own.empty() ? program::kAlignment : own[i]);
    }
  }
  return alignments;
}

std::vector<std::string> UserTargets(const program::Program& program) {
  std::set<std::string> targets;
  for (const program::HostCall* call : program::HostCallSteps(program)) {
    if (rt::LibrarySymbol(call->target).empty()) targets.insert(call->target);
  }
  return {targets.begin(), targets.end()};
}

std::vector<std::string> UserFunctions(const program::Program& program) {
  std::set<std::string> functions;
  for (const std::string& target : UserTargets(program)) functions.insert(CName(target));
  return {functions.begin(), functions.end()};
}

Result<ProgramObject> MakeProgramObject(std::string_view name, const std::vector<Version>& versions,
                                        int32_t threads) {
  ProgramObject made{.object = ElfObject(MachineOf(versions[0].target))};
  ElfObject& object = made.object;
  Description description(object);
  Description::Table<kiln_aot_code> codes(versions.size());
  for (size_t v = 0; v < versions.size(); ++v) {
    const program::Artefact& artefact = versions[v].artefact;
    const program::Program& program = artefact.program;
    for (const program::HostCall* call : program::HostCallSteps(program)) {
      KILN_RETURN_IF_ERROR(CheckTarget(name, program, *call));
    }
    KILN_ASSIGN_OR_RETURN(const ElfObject::Names names, object.Add(artefact.code, kExternals));
    kiln_aot_code& code = codes[v];
    auto set_entry = [&](const kiln_entry_fn& pointer, const std::string& symbol) -> Status {
      const auto place = names.find(symbol);
      if (place == names.end()) return Internal("the code has no ", symbol);
      codes.Set(v, pointer, place->second);
      return OkStatus();
    };
    KILN_RETURN_IF_ERROR(set_entry(code.entry, program::EntrySymbol(program)));
    if (!program.prologue.empty()) {
      KILN_RETURN_IF_ERROR(set_entry(code.prologue, program::PrologueSymbol(program)));
    }
    KILN_ASSIGN_OR_RETURN(code.features, FeatureBits(versions[v].target));
    code.buffer_count = std::ssize(program.allocations);
    code.arena_bytes = program.arena_bytes;
    Description::Table<kiln_aot_buffer> buffers(program.allocations.size());
    codes.Set(v, code.buffers, description.Buffers(program, buffers));
    KILN_ASSIGN_OR_RETURN(const Place calls, description.Calls(program, code.call_count));
    codes.Set(v, code.calls, calls);
    codes.Set(v, code.target, description.Text(program.target));
    KILN_ASSIGN_OR_RETURN(const size_t stack_bytes, device::StackBytesOf(artefact.code));
    made.stack_bytes =
        std::max(made.stack_bytes, static_cast<int64_t>(stack_bytes) + kOwnStackBytes);
    kiln_aot_code measured = code;
    measured.buffers = buffers.rows().data();
    made.memory_bytes = std::max(made.memory_bytes, rt::LayoutOf(measured).bytes);
  }

  const program::Program& program = versions[0].artefact.program;
  const program::Signature& signature = program.signature;
  const std::vector<int64_t> alignments = ArgumentAlignments(versions);
  Description::Table<kiln_aot_program> table(1);
  kiln_aot_program& row = table[0];
  row.version = KILN_AOT_VERSION;
  row.threads = threads;
  row.argument_count = static_cast<int32_t>(signature.parameters.size());
  row.result_count = static_cast<int32_t>(signature.results.size());
  row.memory_bytes = made.memory_bytes;
  row.stack_bytes = made.stack_bytes;
  row.code_count = static_cast<int32_t>(versions.size());
  table.Set(0, row.name, description.Text(program.name));
  table.Set(0, row.arguments, description.Arrays(signature.parameters, [&](size_t i) {
    return Description::ArrayDetails{.name = signature.parameter_names[i],
                                     .alignment = alignments[i]};
  }));
  table.Set(0, row.results, description.Arrays(signature.results, [&](size_t i) {
    return Description::ArrayDetails{.alias = signature.aliases[i]};
  }));
  table.Set(0, row.codes, codes.Write(object));
  object.Export(Cat(name, "_program"), table.Write(object), sizeof(kiln_aot_program));
  return made;
}

}  // namespace kiln::aot
