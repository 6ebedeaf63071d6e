#include "codegen/cpu/sort.h"

#include <ranges>

#include "base/strings.h"
#include "codegen/cpu/sort_phases.h"
#include "codegen/poll.h"
#include "frame/frame.h"

namespace kiln::codegen {

using llvm::Function;
using llvm::Value;

SortPhase::SortPhase(const SortContext& context, Function* function)
    : context_(context),
      function_(function),
      nest_(function, context.kernel, context.cpu),
      b_(nest_.builder()) {
  Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function->getArg(1),
                                              context.kernel.params.size());
  state_ = b_.CreateLoad(b_.getPtrTy(), slot);
}

Value* SortPhase::State(SortState field) {
  return b_.CreateLoad(b_.getInt64Ty(), Scratch(8 * static_cast<int64_t>(field)));
}

Value* SortPhase::Pointer(SortState field) {
  return b_.CreateLoad(b_.getPtrTy(), Scratch(8 * static_cast<int64_t>(field)));
}

void SortPhase::SetState(SortState field, Value* value) {
  b_.CreateStore(value, Scratch(8 * static_cast<int64_t>(field)));
}

Value* SortPhase::Scratch(int64_t offset) { return At(b_.getInt8Ty(), state_, Int(offset)); }

Value* SortPhase::At(llvm::Type* type, Value* base, Value* index) {
  return b_.CreateGEP(type, base, index);
}

void SortPhase::ForEachChunk(const std::function<void(Value*, Value*, Value*)>& f) {
  Values none;
  ForEachChunk(none,
               [&](Value* chunk, Value* first, Value* end, Values&) { f(chunk, first, end); });
}

void SortPhase::ForEachChunk(Values& carried,
                             const std::function<void(Value*, Value*, Value*, Values&)>& f) {
  int64_t size = context_.kernel.variables[context_.sort.variable].extent;
  auto chunk_at = [&](Value* chunk, Values& values) {
    Value* first = b_.CreateMul(chunk, Int(context_.schedule.chunk));
    Value* end = EmitMin(b_, b_.CreateAdd(first, Int(context_.schedule.chunk)), Int(size));
    f(chunk, first, end, values);
  };
  EmitLoop(b_, function_->getArg(2), function_->getArg(3), 1, carried, chunk_at);
}

void SortPhase::BindRow() {
  Value* rest = State(SortState::kRow);
  for (kernel::VariableId v : std::views::reverse(context_.kernel.OuterVariables())) {
    Value* extent = Int(context_.kernel.variables[v].extent);
    nest_.Bind(v, v.value() == 0 ? rest : b_.CreateURem(rest, extent));
    rest = b_.CreateUDiv(rest, extent);
  }
}

llvm::IntegerType* RecordType(const SortContext& c) {
  return llvm::IntegerType::get(c.session.context(),
                                static_cast<unsigned>(c.schedule.record_bits()));
}

namespace {

using kernel::CpuSortSchedule;
using kernel::Kernel;

// Rows of so many elements take some microseconds.
constexpr int64_t kRowToPoll = 1 << 10;

// The kernel itself: takes row after row through the phases.
class Driver {
 public:
  Driver(const SortContext& context, Function* function)
      : c_(context),
        s_(context.schedule),
        function_(function),
        b_(llvm::BasicBlock::Create(context.session.context(), "entry", function)) {}

  Status Emit() {
    KILN_RETURN_IF_ERROR(MakePhases());
    MakeArguments();
    Loop(function_->getArg(2), function_->getArg(3), [&](Value* item) {
      Value* scratch = b_.CreateGEP(b_.getInt8Ty(), scratch_, Times(item, s_.item_bytes));
      b_.CreateStore(scratch, ArgumentSlot(c_.kernel.params.size()));
      state_ = scratch;
      Value* first = Times(item, s_.rows_per_item);
      Value* end = b_.CreateAdd(first, b_.getInt64(Word(s_.rows_per_item)));
      Value* rows = b_.getInt64(Word(s_.rows));
      Loop(first, EmitMin(b_, end, rows), [&](Value* row) { SortRow(row); });
    });
    b_.CreateRetVoid();
    return OkStatus();
  }

 private:
  static uint64_t Word(int64_t value) { return static_cast<uint64_t>(value); }
  Value* Times(Value* value, int64_t factor) {
    return b_.CreateMul(value, b_.getInt64(Word(factor)));
  }

  Status MakePhases() {
    auto make = [&](const char* name, auto emit, Function*& phase) -> Status {
      phase = c_.session.AddFunction(c_.session.KernelType(),
                                     Cat(function_->getName().str(), ".", name), false);
      SortPhase p(c_, phase);
      emit(c_, p);
      p.b().CreateRetVoid();
      return p.nest().status();
    };
    if (!s_.select) KILN_RETURN_IF_ERROR(make("load", EmitLoadPhase, load_));
    if (s_.select) {
      if (!s_.inserts) KILN_RETURN_IF_ERROR(make("order", EmitOrderPhase, order_));
      auto scan = [this](const SortContext& c, SortPhase& p) { EmitScanPhase(c, p, order_); };
      KILN_RETURN_IF_ERROR(make("scan", scan, scan_));
      KILN_RETURN_IF_ERROR(make("pick", EmitPickPhase, pick_));
    } else if (s_.partition) {
      functions_ = MakeSortFunctions(c_);
      if (s_.chunks > 1) {
        auto splitters = [&](const SortContext& c, SortPhase& p) {
          EmitSplittersPhase(c, p, functions_);
        };
        auto count = [](const SortContext& c, SortPhase& p) { EmitPartsPhase(c, p, false); };
        auto move = [](const SortContext& c, SortPhase& p) { EmitPartsPhase(c, p, true); };
        KILN_RETURN_IF_ERROR(make("splitters", splitters, split_));
        KILN_RETURN_IF_ERROR(make("count", count, count_));
        KILN_RETURN_IF_ERROR(make("place", EmitPlacePhase, place_));
        KILN_RETURN_IF_ERROR(make("move", move, move_));
      }
      auto sort = [&](const SortContext& c, SortPhase& p) { EmitQuicksortPhase(c, p, functions_); };
      KILN_RETURN_IF_ERROR(make("sort", sort, sort_));
    } else if (s_.radix) {
      KILN_RETURN_IF_ERROR(make("count", EmitCountPhase, count_));
      KILN_RETURN_IF_ERROR(make("place", EmitPlacePhase, place_));
      KILN_RETURN_IF_ERROR(make("move", EmitMovePhase, move_));
    } else {
      KILN_RETURN_IF_ERROR(make("runs", EmitRunsPhase, runs_));
      if (s_.chunks > 1) {
        KILN_RETURN_IF_ERROR(make("split", EmitSplitPhase, split_));
        KILN_RETURN_IF_ERROR(make("merge", EmitMergePhase, merge_));
      }
    }
    KILN_RETURN_IF_ERROR(make("store", EmitStorePhase, store_));
    if (HasRestorePhase(c_)) KILN_RETURN_IF_ERROR(make("restore", EmitRestorePhase, restore_));
    return OkStatus();
  }

  Value* ArgumentSlot(size_t index) {
    return b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), arguments_, index);
  }

  // The phases' arguments: the kernel's, and in place of its scratch the item's.
  void MakeArguments() {
    size_t count = c_.kernel.params.size();
    arguments_ = b_.CreateAlloca(llvm::ArrayType::get(b_.getPtrTy(), count + 1));
    for (size_t i = 0; i <= count; ++i) {
      Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(1), i);
      Value* argument = b_.CreateLoad(b_.getPtrTy(), slot);
      b_.CreateStore(argument, ArgumentSlot(i));
      if (i == count) scratch_ = argument;
    }
  }

  void Loop(Value* begin, Value* end, llvm::function_ref<void(Value*)> body) {
    EmitWhile(
        b_, {begin}, [&](const Values& v) { return b_.CreateICmpSLT(v[0], end); },
        [&](Values& v) {
          Value* i = v[0];
          body(i);
          v[0] = b_.CreateAdd(i, b_.getInt64(1));
        });
  }

  Value* StateSlot(SortState field) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), state_, static_cast<uint64_t>(field));
  }
  void Set(SortState field, Value* value) { b_.CreateStore(value, StateSlot(field)); }

  void CallOnce(Function* phase) {
    b_.CreateCall(phase, {function_->getArg(0), arguments_, b_.getInt64(0), b_.getInt64(1)});
  }

  // For all chunks, at once where there are several.
  void CallChunks(Function* phase) {
    if (s_.chunks == 1) return CallOnce(phase);
    Value* frame = function_->getArg(0);
    Value* table = b_.CreateLoad(
        b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), frame, KILN_FRAME_TABLE));
    Value* parallel_for =
        b_.CreateLoad(b_.getPtrTy(),
                      b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), table, KILN_TABLE_PARALLEL_FOR));
    llvm::Type *pointer = b_.getPtrTy(), *word = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(),
                                         {pointer, pointer, pointer, word, word, word}, false);
    Value* chunks = b_.getInt64(Word(s_.chunks));
    b_.CreateCall(type, parallel_for, {frame, phase, arguments_, chunks, chunks, b_.getInt64(1)});
    Poll();
  }

  // Between phases, so that none sees another one's partial results.
  void Poll() {
    EmitPoll(b_, function_->getArg(0), stop_, [&](Value*) { b_.CreateRetVoid(); });
  }

  // Calls `step` with the source and the destination; then swaps the two unless `stays` (a
  // condition, or null) holds.
  using Places = std::pair<Value*, Value*>;
  Places Step(Places places, const std::function<Value*()>& step) {
    Set(SortState::kFrom, places.first);
    Set(SortState::kTo, places.second);
    Value* stays = step();
    if (!stays) return {places.second, places.first};
    return {b_.CreateSelect(stays, places.first, places.second),
            b_.CreateSelect(stays, places.second, places.first)};
  }

  void SortRow(Value* row) {
    if (c_.kernel.variables[c_.sort.variable].extent >= kRowToPoll) Poll();
    Set(SortState::kRow, row);
    Places places{b_.CreateGEP(b_.getInt8Ty(), state_, b_.getInt64(Word(s_.front))),
                  b_.CreateGEP(b_.getInt8Ty(), state_, b_.getInt64(Word(s_.back)))};
    if (s_.select) {
      CallChunks(scan_);
      CallOnce(pick_);
    } else {
      Set(SortState::kTo, places.first);
      CallChunks(load_);
      if (s_.partition) {
        places = Partitions(places);
      } else {
        places = s_.radix ? Radix(places) : Merges(places);
      }
      Set(SortState::kFrom, places.first);
    }
    CallChunks(store_);
    if (restore_) CallOnce(restore_);
  }

  Places Radix(Places places) {
    int64_t passes = (s_.key_bits + s_.digit_bits - 1) / s_.digit_bits;
    for (int64_t pass = 0; pass < passes; ++pass) {
      places = Step(places, [&] {
        Set(SortState::kStep, b_.getInt64(Word(pass * s_.digit_bits)));
        CallChunks(count_);
        CallOnce(place_);
        Value* skip =
            b_.CreateIsNotNull(b_.CreateLoad(b_.getInt64Ty(), StateSlot(SortState::kSkip)));
        EmitIf(b_, skip, nullptr, [&] { CallChunks(move_); },
               {.otherwise = "move", .after = "moved"});
        return skip;
      });
    }
    return places;
  }

  Places Partitions(Places places) {
    if (s_.chunks > 1) {
      places = Step(places, [&]() -> Value* {
        CallOnce(split_);
        CallChunks(count_);
        CallOnce(place_);
        CallChunks(move_);
        return nullptr;
      });
    }
    Step(places, [&]() -> Value* {
      CallChunks(sort_);
      return nullptr;
    });
    return places;
  }

  Places Merges(Places places) {
    int64_t n = c_.kernel.variables[c_.sort.variable].extent;
    // The runs come out in the first place or in the second, by the number of levels.
    Places after = Step(places, [&]() -> Value* {
      CallChunks(runs_);
      return nullptr;
    });
    if (LevelsOf(1, s_.chunk) % 2 == 1) places = after;
    for (int64_t run = s_.chunk; run < n; run *= 2) {
      places = Step(places, [&]() -> Value* {
        Set(SortState::kStep, b_.getInt64(Word(run)));
        CallOnce(split_);
        CallChunks(merge_);
        return nullptr;
      });
    }
    return places;
  }

  const SortContext& c_;
  const CpuSortSchedule& s_;
  Function* function_;
  Builder b_;
  Value *arguments_ = nullptr, *scratch_ = nullptr, *state_ = nullptr;
  Function *load_ = nullptr, *count_ = nullptr, *place_ = nullptr, *move_ = nullptr;
  Function *runs_ = nullptr, *split_ = nullptr, *merge_ = nullptr, *store_ = nullptr;
  Function *restore_ = nullptr, *order_ = nullptr, *scan_ = nullptr, *pick_ = nullptr;
  Function* sort_ = nullptr;
  llvm::BasicBlock* stop_ = nullptr;  // where cancelled runs end
  SortFunctions functions_;
};

}  // namespace

Status EmitSort(LlvmSession& session, Function* function, const Kernel& kernel,
                const CpuSortSchedule& schedule, const target::Cpu& cpu) {
  bool fits = kernel.stages.size() == 1 && kernel.stages.front().sort &&
              kernel.stages.front().stores.empty();
  if (!fits) return Internal("kernel ", kernel.name, " is no sort");
  if (schedule.items == 0) {
    Builder b(llvm::BasicBlock::Create(session.context(), "entry", function));
    b.CreateRetVoid();
    return OkStatus();
  }
  SortContext context{session, kernel, *kernel.stages.front().sort, schedule, cpu};
  return Driver(context, function).Emit();
}

}  // namespace kiln::codegen
