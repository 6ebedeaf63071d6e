// Sorts.
//
// Where the comparator orders by a number, a block sorts a tile of records in shared memory by
// merging runs of one, two, four … records; further launches merge the tiles' runs in pairs, from
// one half of the scratch to the other, and the last one writes the results. In a merge a thread
// finds the place of its record by bisection: its own place in its run, and how many of the other
// run come before it. Of floats NaNs have their place in the order of keys. Short rows are counted.
//
// Any other comparator may be no order at all, and the result is some permutation even so: records
// are exchanged in pairs, by Batcher's bitonic network ("Sorting networks and their applications",
// 1968), in the form where every pair is put in ascending order; what a row lacks to a power of two
// counts as last, and stays there. A record's first place goes with it, for stability.

#include <algorithm>

#include "codegen/gpu/emitter.h"
#include "codegen/sort_keys.h"

namespace kiln::codegen {
namespace {

using kernel::Sort;
using kernel::StageId;
using llvm::Value;

// The only stage.
constexpr StageId kRecords(0);

class Sorter {
 public:
  explicit Sorter(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        sort_(*e.kernel().stages.front().sort),
        size_(e.kernel().variables[sort_.variable].extent),
        tile_(e.schedule().tile) {
    for (kernel::NodeId input : sort_.inputs) {
      types_.push_back(e.kernel().stages.front().nodes[input].type);
    }
  }

  void Emit() {
    if (!sort_.key) {
      EmitNetwork();
    } else if (tile_ == 0) {
      EmitCounting();
    } else if (e_.launch_number() == 0) {
      EmitTiles();
    } else {
      EmitMerge(static_cast<int>(e_.launch_number()));
    }
  }

 private:
  using Record = std::vector<Value*>;

  bool IsLast() const { return e_.launch_number() + 1 == e_.schedule().launches.size(); }

  // --- Order
  Value* KeyOf(const Record& record) {
    Value* number = e_.CombineByNodes(sort_.key->value, record, {})[0];
    const auto& nodes = sort_.key->value.nodes;
    ElementType type = nodes[sort_.key->value.results[0]].type;
    return KeyOfNumber(b_, number, type, *sort_.key, e_.math());
  }

  Value* IsBefore(const Record& x, const Record& y) {
    if (sort_.key) return b_.CreateICmpULT(KeyOf(x), KeyOf(y));
    std::vector<Value*> arguments;
    for (size_t k = 0; k < x.size(); ++k) {
      arguments.push_back(x[k]);
      arguments.push_back(y[k]);
    }
    return e_.CombineByNodes(sort_.comparator, arguments, {})[0];
  }

  Record Select(Value* condition, const Record& x, const Record& y) {
    Record record;
    for (size_t k = 0; k < x.size(); ++k) {
      record.push_back(b_.CreateSelect(condition, x[k], y[k]));
    }
    return record;
  }

  // --- Records
  // As the kernel makes them, at the current outer point.
  Record Input(Value* at) {
    e_.SetVariable(sort_.variable, at);
    e_.Forget(kRecords);
    Record record;
    for (kernel::NodeId input : sort_.inputs) record.push_back(e_.At(kRecords, input));
    return record;
  }

  void Output(const Record& record, Value* place) {
    e_.SetVariable(sort_.variable, place);
    e_.If(b_.CreateICmpSLT(place, e_.Int(sort_.keep)), [&] {
      for (size_t k = 0; k < sort_.params.size(); ++k) {
        Value* address = e_.Address(kRecords, sort_.params[k], sort_.indices[k]);
        e_.Store(record[k], address, types_[k]);
      }
    });
  }

  // Arrays of records in memory, one behind the other: where operand k's begins.
  struct Arrays {
    std::vector<Value*> bases;
    Value* first;  // index of the row's or tile's first record
  };
  Record Load(const Arrays& arrays, Value* at) {
    Record record;
    for (size_t k = 0; k < types_.size(); ++k) {
      record.push_back(e_.LoadPartial(arrays.bases[k], b_.CreateAdd(arrays.first, at), types_[k]));
    }
    return record;
  }
  void Save(const Record& record, const Arrays& arrays, Value* at) {
    for (size_t k = 0; k < types_.size(); ++k) {
      e_.StorePartial(record[k], arrays.bases[k], b_.CreateAdd(arrays.first, at), types_[k]);
    }
  }

  // Half 0 or 1 of the scratch.
  Arrays InScratch(int half, Value* row) {
    Arrays arrays;
    arrays.first = b_.CreateMul(row, e_.Int(size_));
    int64_t offset = 0;
    std::vector<int64_t> offsets;
    for (ElementType type : types_) {
      offsets.push_back(offset);
      offset += kernel::GpuPartialBytes(type, e_.outer_points(), size_);
    }
    for (int64_t o : offsets) arrays.bases.push_back(e_.Scratch(half * offset + o));
    return arrays;
  }

  // The place of `mine`, which is at `at` of `count` sorted runs of `width` records: in runs of
  // twice as many. `steps` bisections are enough.
  Value* Place(const Arrays& runs, const Record& mine, Value* at, Value* count, Value* width,
               Value* steps) {
    Value* two = b_.CreateShl(width, e_.Int(1));
    Value* run = b_.CreateMul(b_.CreateUDiv(at, two), two);
    Value* in_left = b_.CreateICmpSLT(b_.CreateSub(at, run), width);
    // The other run.
    Value* offset = b_.CreateSelect(in_left, width, e_.Int(0));
    Value* begin = EmitMin(b_, b_.CreateAdd(run, offset), count);
    Value* end = EmitMin(b_, b_.CreateAdd(begin, width), count);
    llvm::AllocaInst* low = e_.NewSlot(e_.index_type());
    llvm::AllocaInst* high = e_.NewSlot(e_.index_type());
    b_.CreateStore(begin, low);
    b_.CreateStore(end, high);
    e_.Loop(e_.Int(0), steps, e_.Int(1), [&](Value*) {
      Value* l = b_.CreateLoad(e_.index_type(), low);
      Value* h = b_.CreateLoad(e_.index_type(), high);
      e_.If(b_.CreateICmpSLT(l, h), [&] {
        Value* middle = b_.CreateLShr(b_.CreateAdd(l, h), e_.Int(1));
        Record other = Load(runs, middle);
        // Equal records of the left run come first.
        Value* less = IsBefore(Select(in_left, other, mine), Select(in_left, mine, other));
        Value* before = b_.CreateICmpEQ(less, in_left);
        b_.CreateStore(b_.CreateSelect(before, b_.CreateAdd(middle, e_.Int(1)), l), low);
        b_.CreateStore(b_.CreateSelect(before, h, middle), high);
      });
    });
    Value* others = b_.CreateSub(b_.CreateLoad(e_.index_type(), low), begin);
    Value* own = b_.CreateSub(at, b_.CreateSelect(in_left, e_.Int(0), width));
    return b_.CreateAdd(own, others);
  }

  // --- Launches
  void EmitTiles() {
    const int64_t tiles = (size_ + tile_ - 1) / tile_;
    const int log = LogOf(tile_);
    Value* shared = e_.gpu().Shared();
    int64_t bytes = 0;
    Arrays halves[2];
    for (Arrays& half : halves) {
      half.first = e_.Int(0);
      for (ElementType type : types_) {
        half.bases.push_back(
            b_.CreateConstGEP1_64(b_.getInt8Ty(), shared, static_cast<uint64_t>(bytes)));
        bytes += kernel::GpuPartialBytes(type, tile_, 1);
      }
    }
    const int64_t threads = e_.launch().threads;
    e_.Loop(
        e_.block(), e_.Int(e_.outer_points() * tiles), e_.Int(e_.launch().blocks), [&](Value* t) {
          Value* row = tiles == 1 ? t : b_.CreateUDiv(t, e_.Int(tiles));
          Value* begin =
              tiles == 1 ? e_.Int(0) : b_.CreateMul(b_.CreateURem(t, e_.Int(tiles)), e_.Int(tile_));
          Value* left = b_.CreateSub(e_.Int(size_), begin);
          Value* count = EmitMin(b_, left, e_.Int(tile_));
          e_.Delinearise(row, e_.OuterVariables());
          auto for_each = [&](const std::function<void(Value*)>& f) {
            e_.Loop(e_.thread(), count, e_.Int(threads), f);
          };
          for_each([&](Value* at) { Save(Input(b_.CreateAdd(begin, at)), halves[0], at); });
          e_.gpu().Barrier();
          for (int step = 0; step < log; ++step) {
            const Arrays& from = halves[step % 2];
            const Arrays& to = halves[1 - step % 2];
            for_each([&](Value* at) {
              Record mine = Load(from, at);
              Value* place =
                  Place(from, mine, at, count, e_.Int(int64_t{1} << step), e_.Int(step + 1));
              Save(mine, to, place);
            });
            e_.gpu().Barrier();
          }
          const Arrays& sorted = halves[log % 2];
          Arrays out;
          if (!IsLast()) out = InScratch(0, row);
          for_each([&](Value* at) {
            Record record = Load(sorted, at);
            Value* place = b_.CreateAdd(begin, at);
            if (IsLast()) {
              Output(record, place);
            } else {
              Save(record, out, place);
            }
          });
          e_.gpu().Barrier();
        });
  }

  void EmitMerge(int pass) {
    const int64_t width = tile_ << (pass - 1), threads = e_.launch().threads;
    Value* first = b_.CreateAdd(b_.CreateMul(e_.block(), e_.Int(threads)), e_.thread());
    e_.Loop(first, e_.Int(e_.outer_points() * size_), e_.Int(threads * e_.launch().blocks),
            [&](Value* i) {
              Value* row = b_.CreateUDiv(i, e_.Int(size_));
              Value* at = b_.CreateURem(i, e_.Int(size_));
              Arrays from = InScratch((pass - 1) % 2, row);
              Record mine = Load(from, at);
              Value* place =
                  Place(from, mine, at, e_.Int(size_), e_.Int(width), e_.Int(LogOf(width) + 1));
              if (IsLast()) {
                e_.Delinearise(row, e_.OuterVariables());
                Output(mine, place);
              } else {
                Save(mine, InScratch(pass % 2, row), place);
              }
            });
  }

  // --- The network: launch 0 copies the records to scratch, with their places; the next ones are a
  // step each; the last one writes the results.
  struct Step {
    int64_t block;     // records that are sorted after it
    int64_t distance;  // of a pair; 0 where the first half of a block meets the second, reversed
  };

  void EmitNetwork() {
    const size_t number = e_.launch_number(), launches = e_.schedule().launches.size();
    const int64_t threads = e_.launch().threads;
    Value* first = b_.CreateAdd(b_.CreateMul(e_.block(), e_.Int(threads)), e_.thread());
    e_.Loop(first, e_.Int(e_.outer_points() * size_), e_.Int(threads * e_.launch().blocks),
            [&](Value* i) {
              Value* row = b_.CreateUDiv(i, e_.Int(size_));
              Value* at = b_.CreateURem(i, e_.Int(size_));
              Arrays records = InScratch(0, row);
              if (number == 0) {
                e_.Delinearise(row, e_.OuterVariables());
                Save(Input(at), records, at);
                SavePlace(at, records, at);
              } else if (number + 1 == launches) {
                e_.Delinearise(row, e_.OuterVariables());
                Output(Load(records, at), at);
              } else {
                Exchange(records, at, StepOf(number - 1));
              }
            });
  }

  static Step StepOf(size_t number) {
    for (int64_t block = 2;; block *= 2) {
      if (number-- == 0) return {block, 0};
      for (int64_t distance = block / 4; distance > 0; distance /= 2) {
        if (number-- == 0) return {block, distance};
      }
    }
  }

  // The thread of a pair's first record does it.
  void Exchange(const Arrays& records, Value* at, const Step& step) {
    Value* in_block = b_.CreateURem(at, e_.Int(step.block));
    Value *is_first, *other;
    if (step.distance == 0) {
      is_first = b_.CreateICmpSLT(in_block, e_.Int(step.block / 2));
      Value* mirrored = b_.CreateSub(e_.Int(step.block - 1), in_block);
      other = b_.CreateAdd(b_.CreateSub(at, in_block), mirrored);
    } else {
      is_first = b_.CreateICmpEQ(b_.CreateAnd(at, e_.Int(step.distance)), e_.Int(0));
      other = b_.CreateAdd(at, e_.Int(step.distance));
    }
    Value* is_pair = b_.CreateAnd(is_first, b_.CreateICmpSLT(other, e_.Int(size_)));
    e_.If(is_pair, [&] {
      Record x = Load(records, at), y = Load(records, other);
      Value *x_place = LoadPlace(records, at), *y_place = LoadPlace(records, other);
      // Of equal records the one that was first stays first.
      Value* is_before = IsBefore(y, x);
      Value* neither = b_.CreateNot(b_.CreateOr(IsBefore(x, y), is_before));
      Value* was_later = b_.CreateICmpSLT(y_place, x_place);
      Value* swap = b_.CreateOr(is_before, b_.CreateAnd(neither, was_later));
      e_.If(swap, [&] {
        Save(y, records, at);
        Save(x, records, other);
        SavePlace(y_place, records, at);
        SavePlace(x_place, records, other);
      });
    });
  }

  // Places are behind the records.
  Value* PlaceAddress(const Arrays& records, Value* at) {
    Value* base = e_.Scratch(kernel::GpuRecordBytes(types_, e_.outer_points(), size_));
    return b_.CreateGEP(b_.getInt32Ty(), base, b_.CreateAdd(records.first, at));
  }
  void SavePlace(Value* place, const Arrays& records, Value* at) {
    b_.CreateAlignedStore(b_.CreateIntCast(place, b_.getInt32Ty(), true), PlaceAddress(records, at),
                          llvm::Align(4));
  }
  Value* LoadPlace(const Arrays& records, Value* at) {
    return b_.CreateAlignedLoad(b_.getInt32Ty(), PlaceAddress(records, at), llvm::Align(4));
  }

  // Short rows: a thread for each record counts those that come before it.
  void EmitCounting() {
    std::vector<kernel::VariableId> all = e_.OuterVariables();
    all.push_back(sort_.variable);
    const int64_t threads = e_.launch().threads;
    Value* first = b_.CreateAdd(b_.CreateMul(e_.block(), e_.Int(threads)), e_.thread());
    llvm::AllocaInst* place = e_.NewSlot(e_.index_type());
    e_.Loop(first, e_.Int(e_.outer_points() * size_), e_.Int(threads * e_.launch().blocks),
            [&](Value* point) {
              e_.Delinearise(point, all);
              Value* own = e_.variable(sort_.variable);
              Record mine = Input(own);
              b_.CreateStore(e_.Int(0), place);
              e_.Loop(e_.Int(0), e_.Int(size_), e_.Int(1), [&](Value* other) {
                Record theirs = Input(other);
                // Of equal ones the first comes first.
                Value* earlier = b_.CreateICmpSLT(other, own);
                Value* less =
                    IsBefore(Select(earlier, mine, theirs), Select(earlier, theirs, mine));
                Value* before = b_.CreateXor(less, earlier);
                Value* count = b_.CreateLoad(e_.index_type(), place);
                b_.CreateStore(b_.CreateAdd(count, b_.CreateZExt(before, e_.index_type())), place);
              });
              Output(mine, b_.CreateLoad(e_.index_type(), place));
            });
  }

  static int LogOf(int64_t power) {
    int log = 0;
    while ((int64_t{1} << log) < power) ++log;
    return log;
  }

  GpuEmitter& e_;
  Builder& b_;
  const Sort& sort_;
  const int64_t size_;
  const int64_t tile_;
  std::vector<ElementType> types_;
};

}  // namespace

void EmitSort(GpuEmitter& e) { Sorter(e).Emit(); }

}  // namespace kiln::codegen
