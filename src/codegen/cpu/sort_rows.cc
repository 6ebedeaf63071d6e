// A row's elements on their way to scratch and back.
#include <numeric>

#include "codegen/cpu/sort_phases.h"
#include "codegen/sort_keys.h"

namespace kiln::codegen {

using kernel::Index;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

namespace {

// The only stage.
constexpr StageId kElements(0);

class RowCode {
 public:
  RowCode(const SortContext& c, SortPhase& p)
      : c_(c), s_(c.schedule), p_(p), e_(p.nest()), b_(p.b()) {
    place_ = Index::Variable(variable(), size());
    p.BindRow();
    e_.EmitReady(kElements);
  }

  void Load() {
    Value* to = p_.Pointer(SortState::kTo);
    std::vector<int> accesses = s_.records ? RecordAccesses(to) : ElementAccesses(to);
    bool loses = HasRestorePhase(c_);
    p_.ForEachChunk([&](Value* chunk, Value* first, Value* end) {
      Values lost;
      if (loses) lost.push_back(b_.getFalse());
      Vectors(first, end, lost, [&](Values& values) {
        e_.EmitReady(kElements);
        if (!s_.records) {
          for (size_t k = 0; k < accesses.size(); ++k) Put(accesses[k], Input(k));
          return;
        }
        Value* number = Key();
        if (loses) {
          Value* here = IsLostInKey(b_, number, key_type(), *c_.sort.key, math());
          if (here->getType()->isVectorTy()) here = b_.CreateOrReduce(here);
          values[0] = b_.CreateOr(values[0], here);
        }
        PutRecord(accesses, KeyOfNumber(b_, number, key_type(), *c_.sort.key, math()));
      });
      if (loses) b_.CreateStore(b_.CreateZExt(lost[0], b_.getInt64Ty()), FlagOf(chunk));
    });
  }

  void Store() {
    Value* from = p_.Pointer(SortState::kFrom);
    std::vector<int> outputs = OutputAccesses();
    if (s_.records && s_.place_bits > 0) return StorePlaces(from, outputs);
    std::vector<int> accesses = s_.records ? RecordAccesses(from) : ElementAccesses(from);
    Values none;
    p_.ForEachChunk([&](Value*, Value* first, Value* end) {
      Vectors(first, EmitMin(b_, end, p_.Int(c_.sort.keep)), none, [&](Values&) {
        for (size_t k = 0; k < outputs.size(); ++k) {
          Lanes lanes;
          e_.LoadAccess(accesses[k], lanes);
          if (s_.records) {
            lanes.copies[0] = NumberOfKey(b_, lanes.copies[0], key_type(), *c_.sort.key, math());
          }
          e_.StoreAccess(outputs[k], lanes);
        }
      });
    });
  }

  // Records below the last of those that would be kept so far become candidates. It holds for later
  // chunks, too: what comes behind it in one comes behind it in the row.
  void Scan(llvm::Function* order) {
    Value* front = p_.Scratch(s_.front);
    Values bound = {None()};
    Value* keys = e_.NewRow(key_storage(), s_.vector_width);
    p_.ForEachChunk(bound, [&](Value* chunk, Value* first, Value* end, Values& carried) {
      Value* own = p_.At(record(), front, b_.CreateMul(chunk, p_.Int(s_.candidates)));
      if (s_.inserts) Pad(own, p_.Int(0));
      auto sort = [&](Value* count) {
        llvm::Function* f = p_.function();
        b_.CreateCall(order, {f->getArg(0), f->getArg(1), chunk, count});
      };
      // How many candidates there are, and the record that what is wanted lies below.
      Values state = {p_.Int(0), carried[0]};
      ForEachBelow(first, end, keys, state, [&](Value* candidate, Values& now) {
        if (s_.inserts) return Insert(own, candidate, now);
        // Written in any case, and overwritten where it does not count.
        StoreRecord(candidate, own, now[0]);
        Value* counts = b_.CreateICmpULT(candidate, now[1]);
        now[0] = b_.CreateAdd(now[0], b_.CreateZExt(counts, b_.getInt64Ty()));
        Value* full = b_.CreateICmpEQ(now[0], p_.Int(s_.candidates - 1));
        EmitLoop(b_, p_.Int(0), b_.CreateZExt(full, b_.getInt64Ty()), 1, now,
                 [&](Value*, Values& after) {
                   sort(after[0]);
                   after = {p_.Int(c_.sort.keep), LoadRecord(own, p_.Int(c_.sort.keep - 1))};
                 });
      });
      if (!s_.inserts) {
        sort(state[0]);
        Pad(own, state[0]);
      }
      Value* kept = LoadRecord(own, p_.Int(c_.sort.keep - 1));
      carried[0] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, carried[0], kept);
    });
  }

  // Zeros and NaNs as they were, in the order in which they were.
  void Restore() {
    Values none, lost = {p_.Int(0)};
    EmitLoop(b_, p_.Int(0), p_.Int(s_.chunks), 1, lost, [&](Value* chunk, Values& values) {
      values[0] = b_.CreateOr(values[0], b_.CreateLoad(b_.getInt64Ty(), FlagOf(chunk)));
    });
    EmitIf(b_, b_.CreateIsNotNull(lost[0]), [&] {
      std::vector<int> outputs = OutputAccesses();
      llvm::LLVMContext& context = b_.getContext();
      Values next = {LowerBound(KeyOfZero(context, key_type(), *c_.sort.key)),
                     LowerBound(KeyOfNan(context, key_type(), *c_.sort.key))};
      EmitLoop(b_, p_.Int(0), p_.Int(size()), 1, next, [&](Value* i, Values& at) {
        NestEmitter::Mark mark = e_.GetMark();
        e_.Bind(variable(), i);
        e_.EmitReady(kElements);
        Value* x = e_.Use(kElements, c_.sort.inputs[0], 0, false);
        e_.Rewind(mark);
        Value* zero = b_.CreateFCmpOEQ(x, llvm::ConstantFP::get(x->getType(), 0));
        Value* nan = b_.CreateFCmpUNO(x, x);
        Value* place = b_.CreateSelect(zero, at[0], at[1]);
        Value* stored = b_.CreateICmpSLT(place, p_.Int(c_.sort.keep));
        EmitIf(b_, b_.CreateAnd(b_.CreateOr(zero, nan), stored), [&] {
          e_.Bind(variable(), place);
          e_.StoreAccess(outputs[0], {{x}, false});
        });
        e_.Unbind(variable());
        at = {b_.CreateAdd(at[0], b_.CreateZExt(zero, b_.getInt64Ty())),
              b_.CreateAdd(at[1], b_.CreateZExt(nan, b_.getInt64Ty()))};
      });
    });
  }

 private:
  VariableId variable() const { return c_.sort.variable; }
  int64_t size() const { return c_.kernel.variables[variable()].extent; }
  MathOptions math() const { return MathOf(c_.cpu); }
  ElementType key_type() const {
    const kernel::Combiner& value = c_.sort.key->value;
    return value.nodes[value.results[0]].type;
  }

  llvm::IntegerType* record() const { return RecordType(c_); }
  unsigned place_width() const { return record()->getBitWidth() / 2; }
  // The record behind all others.
  llvm::Constant* None() const { return llvm::Constant::getAllOnesValue(record()); }
  ElementType key_storage() const {
    return s_.key_bits == 8    ? ElementType::kU8
           : s_.key_bits == 16 ? ElementType::kU16
           : s_.key_bits == 32 ? ElementType::kU32
                               : ElementType::kU64;
  }
  Value* LoadRecord(Value* at, Value* index) {
    return b_.CreateAlignedLoad(record(), p_.At(record(), at, index), llvm::Align(8));
  }
  void StoreRecord(Value* value, Value* at, Value* index) {
    b_.CreateAlignedStore(value, p_.At(record(), at, index), llvm::Align(8));
  }

  // Where there are too few candidates the rest is padding that sorts last.
  void Pad(Value* own, Value* first) {
    EmitLoop(b_, first, p_.Int(c_.sort.keep), 1, [&](Value* i) { StoreRecord(None(), own, i); });
  }

  // Calls body(record, state) for the records of a chunk that may be below the bound, state[1]:
  // all that are, and few others. `keys` has room for those of a vector.
  void ForEachBelow(Value* first, Value* end, Value* keys, Values& state,
                    const std::function<void(Value*, Values&)>& body) {
    Vectors(first, end, state, [&](Values& values) {
      e_.EmitReady(kElements);
      Value* key = KeyOfNumber(b_, Key(), key_type(), *c_.sort.key, math());
      Value* most = b_.CreateTrunc(b_.CreateLShr(values[1], place_width()),
                                   b_.getIntNTy(static_cast<unsigned>(s_.key_bits)));
      // Of equal keys those before have the lower places. The greatest key may be padding's.
      Value* largest = llvm::Constant::getAllOnesValue(most->getType());
      Value* limit =
          b_.CreateSelect(b_.CreateICmpEQ(most, largest), largest,
                          b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, most,
                                                   llvm::ConstantInt::get(most->getType(), 1)));
      Value* near = b_.CreateICmpULE(key, Splat(b_, limit, e_.width()));
      if (e_.mask()) near = b_.CreateAnd(near, e_.mask());
      Value* start = e_.Position(variable(), 0, b_.getInt64Ty());
      auto record_of = [&](Value* one, Value* place) {
        return b_.CreateOr(b_.CreateShl(b_.CreateZExt(one, record()), place_width()),
                           b_.CreateZExt(place, record()));
      };
      if (!near->getType()->isVectorTy()) {
        EmitLoop(b_, p_.Int(0), b_.CreateZExt(near, b_.getInt64Ty()), 1, values,
                 [&](Value*, Values& now) { body(record_of(key, start), now); });
        return;
      }
      // Most vectors have none, and skip the lanes.
      start = b_.CreateExtractElement(start, uint64_t{0});
      Value* lanes = b_.CreateZExt(
          b_.CreateBitCast(near, b_.getIntNTy(static_cast<unsigned>(e_.width()))), b_.getInt64Ty());
      EmitIf(b_, b_.CreateIsNotNull(lanes), [&] { b_.CreateStore(key, keys); });
      Values rest = values;
      rest.insert(rest.begin(), lanes);
      rest = EmitWhile(
          b_, rest, [&](const Values& v) { return b_.CreateIsNotNull(v[0]); },
          [&](Values& v) {
            Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, v[0], b_.getTrue());
            Value* one = b_.CreateLoad(most->getType(), p_.At(most->getType(), keys, lane));
            Values now(v.begin() + 1, v.end());
            body(record_of(one, b_.CreateAdd(start, lane)), now);
            std::ranges::copy(now, v.begin() + 1);
            v[0] = b_.CreateAnd(v[0], b_.CreateSub(v[0], p_.Int(1)));
          });
      values.assign(rest.begin() + 1, rest.end());
    });
  }

  // Puts a record among those that are kept, which are in order, if it is below the last.
  void Insert(Value* own, Value* candidate, Values& state) {
    Value* counts = b_.CreateICmpULT(candidate, state[1]);
    EmitLoop(b_, p_.Int(0), b_.CreateZExt(counts, b_.getInt64Ty()), 1, state,
             [&](Value*, Values& now) {
               Values moved = {candidate, now[1]};
               EmitLoop(b_, p_.Int(0), p_.Int(c_.sort.keep), 1, moved, [&](Value* i, Values& v) {
                 Value* there = LoadRecord(own, i);
                 v[1] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v[0], there);
                 StoreRecord(v[1], own, i);
                 v[0] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, v[0], there);
               });
               // Until it is full, the bound of the chunk before holds.
               now[1] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, now[1], moved[1]);
             });
  }

  // The vector loop over places of a chunk.
  void Vectors(Value* first, Value* end, Values& carried,
               const std::function<void(Values&)>& body) {
    NestEmitter::Range range{first, end, 1, s_.chunks == 1 ? 0 : s_.chunk, true};
    if (c_.sort.keep == size() || s_.select) {
      range.maybe_empty = false;
      range.multiple = std::gcd(s_.chunk, size() - (s_.chunks - 1) * s_.chunk);
    }
    kernel::CpuStageSchedule schedule;
    schedule.vector_variable = variable();
    e_.VectorLoop(variable(), range, s_.vector_width, schedule, carried, body);
  }

  Lanes Input(size_t k) {
    bool vector = e_.width() > 1;
    return {{e_.Use(kElements, c_.sort.inputs[k], 0, vector)}, vector};
  }
  void Put(int access, Lanes lanes) { e_.StoreAccess(access, lanes); }

  // The number that elements at the current point are ordered by.
  Value* Key() {
    Values arguments;
    for (size_t k = 0; k < c_.sort.inputs.size(); ++k) arguments.push_back(Input(k).copies[0]);
    Values results = e_.EmitCombiner(c_.sort.key->value, arguments);
    if (!results.empty()) return results[0];
    return llvm::Constant::getNullValue(RegisterType(b_.getContext(), key_type()));
  }

  std::vector<int> ElementAccesses(Value* at) {
    std::vector<int> accesses;
    for (size_t k = 0; k < c_.sort.inputs.size(); ++k) {
      ElementType type = c_.kernel.stages.front().nodes[c_.sort.inputs[k]].type;
      Value* base = p_.At(b_.getInt8Ty(), at, p_.Int(s_.offsets[k]));
      accesses.push_back(e_.AddAccess(place_, type, base));
    }
    return accesses;
  }

  // Of a record of two words the place comes first.
  std::vector<int> RecordAccesses(Value* at) {
    switch (s_.record_bits()) {
      case 8:
        return {e_.AddAccess(place_, ElementType::kU8, at)};
      case 16:
        return {e_.AddAccess(place_, ElementType::kU16, at)};
      case 32:
        return {e_.AddAccess(place_, ElementType::kU32, at)};
      case 64:
        return {e_.AddAccess(place_, ElementType::kU64, at)};
      default:
        return {e_.AddAccess(place_ * 2, ElementType::kU64, at),
                e_.AddAccess(place_ * 2 + 1, ElementType::kU64, at)};
    }
  }

  void PutRecord(const std::vector<int>& accesses, Value* key) {
    bool vector = e_.width() > 1;
    if (s_.place_bits == 0) return Put(accesses[0], {{key}, vector});
    Value* place = e_.Position(variable(), 0, b_.getInt64Ty());
    key = b_.CreateZExt(key, place->getType());
    if (s_.record_bits() == 128) {
      Put(accesses[0], {{place}, vector});
      Put(accesses[1], {{key}, vector});
      return;
    }
    Put(accesses[0], {{b_.CreateOr(b_.CreateShl(key, 32), place)}, vector});
  }

  std::vector<int> OutputAccesses() {
    std::vector<int> accesses;
    for (size_t k = 0; k < c_.sort.params.size(); ++k) {
      const kernel::ParamId param = c_.sort.params[k];
      accesses.push_back(
          e_.AddAccess(c_.sort.indices[k], c_.kernel.params[param].type, e_.Arg(param)));
    }
    return accesses;
  }

  // Each place of the order gets the elements from where the record says.
  void StorePlaces(Value* from, const std::vector<int>& outputs) {
    llvm::Type* record = RecordType(c_);
    Values none;
    p_.ForEachChunk([&](Value*, Value* first, Value* end) {
      Value* last = EmitMin(b_, end, p_.Int(c_.sort.keep));
      EmitLoop(b_, first, last, 1, [&](Value* to) {
        Value* place = b_.CreateLoad(b_.getInt64Ty(), p_.At(record, from, to));
        if (s_.record_bits() == 64) place = b_.CreateAnd(place, p_.Int(UINT32_MAX));
        NestEmitter::Mark mark = e_.GetMark();
        e_.Bind(variable(), place);
        e_.EmitReady(kElements);
        Values values;
        for (kernel::NodeId input : c_.sort.inputs)
          values.push_back(e_.Use(kElements, input, 0, false));
        e_.Rewind(mark);
        e_.Bind(variable(), to);
        for (size_t k = 0; k < outputs.size(); ++k) {
          e_.StoreAccess(outputs[k], {{values[k]}, false});
        }
        e_.Unbind(variable());
      });
    });
  }

  // How many of the sorted records are below one.
  Value* LowerBound(llvm::Constant* key) {
    llvm::Type* record = RecordType(c_);
    Value* from = p_.Pointer(SortState::kFrom);
    return EmitWhile(
        b_, {p_.Int(0), p_.Int(size())},
        [&](const Values& v) { return b_.CreateICmpSLT(v[0], v[1]); },
        [&](Values& v) {
          Value* middle = b_.CreateLShr(b_.CreateAdd(v[0], v[1]), 1);
          Value* below = b_.CreateICmpULT(b_.CreateLoad(record, p_.At(record, from, middle)), key);
          v = {b_.CreateSelect(below, b_.CreateAdd(middle, p_.Int(1)), v[0]),
               b_.CreateSelect(below, v[1], middle)};
        })[0];
  }

  Value* FlagOf(Value* chunk) {
    constexpr int64_t kLine = 64;
    return p_.At(b_.getInt8Ty(), p_.Scratch(s_.flags), b_.CreateMul(chunk, p_.Int(kLine)));
  }

  const SortContext& c_;
  const kernel::CpuSortSchedule& s_;
  SortPhase& p_;
  NestEmitter& e_;
  Builder& b_;
  Index place_;
};

}  // namespace

void EmitLoadPhase(const SortContext& c, SortPhase& p) { RowCode(c, p).Load(); }
void EmitScanPhase(const SortContext& c, SortPhase& p, llvm::Function* order) {
  RowCode(c, p).Scan(order);
}
void EmitStorePhase(const SortContext& c, SortPhase& p) { RowCode(c, p).Store(); }
void EmitRestorePhase(const SortContext& c, SortPhase& p) { RowCode(c, p).Restore(); }

bool HasRestorePhase(const SortContext& c) {
  return c.schedule.records && c.schedule.place_bits == 0 &&
         c.sort.key->order == kernel::SortKey::Order::kNumber;
}

}  // namespace kiln::codegen
