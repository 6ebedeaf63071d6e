// Sorting keys alone by vectors: parts of them are packed together by the instructions that store
// the lanes of a mask, until they are few enough for a network of registers. Equal keys are the
// same, so that their order does not matter.
//
// A row of several chunks is first cut by splitters into as many parts as there are chunks, each
// chunk storing its keys where they go; then each part is sorted on its own.
#include "codegen/cpu/sort_network.h"
#include "codegen/cpu/sort_phases.h"
#include "codegen/poll.h"

namespace kiln::codegen {

using llvm::BasicBlock;
using llvm::Function;
using llvm::Value;

namespace {

// Registers of the largest network.
constexpr int kRegisters = 8;

// Vectors of keys in memory.
class Keys {
 public:
  Keys(const SortContext& c, Builder& b)
      : b_(b),
        key_(RecordType(c)),
        lanes_(c.schedule.vector_width),
        type_(llvm::FixedVectorType::get(key_, static_cast<unsigned>(lanes_))),
        align_(static_cast<uint64_t>(c.schedule.key_bits / 8)) {}

  llvm::IntegerType* key() const { return key_; }
  llvm::FixedVectorType* type() const { return type_; }
  llvm::Align align() const { return align_; }
  int64_t lanes() const { return lanes_; }
  Value* Int(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Value* At(Value* base, Value* index) { return b_.CreateGEP(key_, base, index); }
  Value* Splat(Value* key) { return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), key); }

  // The lanes that are below a number.
  Value* Below(Value* count) {
    std::vector<uint32_t> numbers;
    for (int64_t lane = 0; lane < lanes_; ++lane) numbers.push_back(static_cast<uint32_t>(lane));
    Value* iota = llvm::ConstantDataVector::get(b_.getContext(), numbers);
    Value* bound = b_.CreateTrunc(EmitMin(b_, count, Int(lanes_)), b_.getInt32Ty());
    return b_.CreateICmpSLT(iota, b_.CreateVectorSplat(static_cast<unsigned>(lanes_), bound));
  }

  // Keys of the lanes in the mask, all of them where it is null; the others are as `rest`.
  Value* Load(Value* from, Value* mask, Value* rest) {
    if (!mask) return b_.CreateAlignedLoad(type_, from, align_);
    return b_.CreateMaskedLoad(type_, from, align_, mask, rest);
  }
  Value* Largest() { return llvm::Constant::getAllOnesValue(type_); }
  Value* Zero() { return llvm::Constant::getNullValue(type_); }

  Value* CountOf(Value* mask) {
    Value* bits = b_.CreateBitCast(mask, b_.getIntNTy(static_cast<unsigned>(lanes_)));
    bits = b_.CreateZExt(bits, b_.getInt64Ty());
    return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
  }
  // The keys of the mask one after the other.
  void Pack(Value* keys, Value* mask, Value* to) {
    Function* pack = llvm::Intrinsic::getDeclaration(
        b_.GetInsertBlock()->getModule(), llvm::Intrinsic::masked_compressstore, {type_});
    llvm::CallInst* call = b_.CreateCall(pack, {keys, to, mask});
    call->addParamAttr(1, llvm::Attribute::getWithAlignment(b_.getContext(), align_));
  }

  // For the vectors of from[begin, end): body(keys, mask, carried), where the last has a mask and
  // the other lanes are as `rest`.
  void ForEach(Value* from, Value* begin, Value* end, Value* rest, Values& carried,
               const std::function<void(Value*, Value*, Values&)>& body) {
    Values state = carried;
    state.insert(state.begin(), begin);
    auto step = [&](Values& v, Value* mask) {
      Values inner(v.begin() + 1, v.end());
      body(Load(At(from, v[0]), mask, rest), mask, inner);
      std::copy(inner.begin(), inner.end(), v.begin() + 1);
      v[0] = b_.CreateAdd(v[0], Int(lanes_));
    };
    state = EmitWhile(
        b_, state,
        [&](const Values& v) { return b_.CreateICmpSLE(b_.CreateAdd(v[0], Int(lanes_)), end); },
        [&](Values& v) { step(v, nullptr); });
    state = EmitWhile(
        b_, state, [&](const Values& v) { return b_.CreateICmpSLT(v[0], end); },
        [&](Values& v) { step(v, Below(b_.CreateSub(end, v[0]))); });
    carried.assign(state.begin() + 1, state.end());
  }

 private:
  Builder& b_;
  llvm::IntegerType* key_;
  int64_t lanes_;
  llvm::FixedVectorType* type_;
  llvm::Align align_;
};

int64_t SizeOf(const SortContext& c) { return c.kernel.variables[c.sort.variable].extent; }

// Network(from, to, count): sorts up to the size of the largest network.
Function* MakeNetwork(const SortContext& c) {
  llvm::LLVMContext& context = c.session.context();
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *word = llvm::Type::getInt64Ty(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, word}, false);
  Function* f = c.session.AddFunction(type, c.kernel.name + ".network", false);
  Builder b(BasicBlock::Create(context, "entry", f));
  Keys keys(c, b);
  Value *from = f->getArg(0), *to = f->getArg(1), *count = f->getArg(2);
  auto sort = [&](int size) {
    Values registers, masks;
    for (int64_t r = 0; r < size; ++r) {
      Value* first = keys.Int(r * keys.lanes());
      masks.push_back(keys.Below(b.CreateSub(count, first)));
      registers.push_back(keys.Load(keys.At(from, first), masks.back(), keys.Largest()));
    }
    EmitNetwork(b, registers);
    registers = EmitWeave(b, registers);
    for (int64_t r = 0; r < size; ++r) {
      size_t at = static_cast<size_t>(r);
      b.CreateMaskedStore(registers[at], keys.At(to, keys.Int(r * keys.lanes())), keys.align(),
                          masks[at]);
    }
    b.CreateRetVoid();
  };
  for (int size = 1; size < kRegisters; size *= 2) {
    EmitIf(b, b.CreateICmpSLE(count, keys.Int(size * keys.lanes())), [&] { sort(size); },
           {.then = "fits", .after = "larger"});
  }
  sort(kRegisters);
  return f;
}

// Sort(from, to, count, tries, stays, frame): sorts from[0, count), where it is if `stays` and else
// to `to`; the other of the two is overwritten. After so many tries with the median of a sample,
// which may always be a bad one, it takes the middle between the least and the largest key, whose
// bits are soon at an end.
class Quicksort {
 public:
  Quicksort(const SortContext& c, Function* network)
      : context_(c.session.context()),
        network_(network),
        f_(Declare(c)),
        b_(BasicBlock::Create(context_, "entry", f_)),
        keys_(c, b_),
        may_take_long_(SizeOf(c) > kStepsBetweenPolls) {}

  Function* Emit() {
    BasicBlock *entry = b_.GetInsertBlock(), *head = NewBlock(b_, "head");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    std::vector<llvm::PHINode*> phis;
    for (unsigned k = 0; k < kFrame; ++k) {
      phis.push_back(b_.CreatePHI(f_->getArg(k)->getType(), 2));
      phis.back()->addIncoming(f_->getArg(k), entry);
    }
    Value *from = phis[0], *to = phis[1], *count = phis[2], *tries = phis[3], *stays = phis[4];
    auto small = [&] {
      b_.CreateCall(network_, {from, b_.CreateSelect(stays, from, to), count});
      b_.CreateRetVoid();
    };
    EmitIf(b_, b_.CreateICmpSLE(count, keys_.Int(kRegisters * keys_.lanes())), small,
           {.then = "small", .after = "large"});
    if (may_take_long_) {
      auto poll = [&] { EmitPoll(b_, f_->getArg(kFrame), [&](Value*) { b_.CreateRetVoid(); }); };
      EmitIf(b_, b_.CreateICmpSGT(count, keys_.Int(kStepsBetweenPolls)), poll,
             {.then = "many", .after = "few"});
    }
    Value* pivot = Pivot(from, count, tries, b_.CreateSelect(stays, from, to));
    Value* lefts = Partition(from, count, pivot, to);
    Value* rights = b_.CreateSub(count, lefts);
    // The pivot may be the largest, and many be like it: then the next is the middle, which the
    // sign of the tries says.
    Value* stuck = b_.CreateICmpEQ(rights, keys_.Int(0));
    Value* left_first = b_.CreateICmpSLT(lefts, rights);
    Value* rest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, tries, b_.CreateNeg(tries));
    rest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, rest, keys_.Int(1));
    Value* next_tries = b_.CreateSelect(stuck, b_.CreateNeg(rest), rest);
    Value* moved = b_.CreateNot(stays);
    // The shorter part by a call, so that calls are never deeper than a logarithm.
    auto part = [&](Value* is_left) -> Values {
      Value* first = b_.CreateSelect(is_left, keys_.Int(0), lefts);
      return {keys_.At(to, first), keys_.At(from, first), b_.CreateSelect(is_left, lefts, rights),
              next_tries, moved};
    };
    Values shorter = part(left_first), longer = part(b_.CreateNot(left_first));
    shorter.push_back(f_->getArg(kFrame));
    EmitIf(b_, stuck, nullptr, [&] { b_.CreateCall(f_, shorter); },
           {.otherwise = "call", .after = "next"});
    for (size_t i = 0; i < phis.size(); ++i) {
      phis[i]->addIncoming(longer[i], b_.GetInsertBlock());
    }
    b_.CreateBr(head);
    return f_;
  }

 private:
  static constexpr unsigned kFrame = 5;  // the argument, which is the same for all parts

  static Function* Declare(const SortContext& c) {
    llvm::LLVMContext& context = c.session.context();
    llvm::Type* pointer = llvm::PointerType::get(context, 0);
    llvm::Type* word = llvm::Type::getInt64Ty(context);
    auto* type = llvm::FunctionType::get(
        llvm::Type::getVoidTy(context),
        {pointer, pointer, word, word, llvm::Type::getInt1Ty(context), pointer}, false);
    return c.session.AddFunction(type, c.kernel.name + ".quicksort", false);
  }

  // A key that something is above, unless it is a sample's; returns from the function where all
  // keys are equal.
  Value* Pivot(Value* from, Value* count, Value* tries, Value* home) {
    BasicBlock *sampled = NewBlock(b_, "sampled"), *middle = NewBlock(b_, "middle");
    BasicBlock *equal = NewBlock(b_, "equal"), *differ = NewBlock(b_, "differ");
    BasicBlock* after = NewBlock(b_, "pivot");
    b_.CreateCondBr(b_.CreateICmpSGT(tries, keys_.Int(0)), sampled, middle);

    b_.SetInsertPoint(sampled);
    Value* stride = b_.CreateUDiv(count, keys_.Int(keys_.lanes()));
    Values sample = {keys_.Zero()};
    for (int64_t lane = 0; lane < keys_.lanes(); ++lane) {
      Value* at = keys_.At(from, b_.CreateMul(stride, keys_.Int(lane)));
      Value* key = b_.CreateAlignedLoad(keys_.key(), at, keys_.align());
      sample[0] = b_.CreateInsertElement(sample[0], key, static_cast<uint64_t>(lane));
    }
    EmitNetwork(b_, sample);
    Value* median = b_.CreateExtractElement(sample[0], static_cast<uint64_t>(keys_.lanes() / 2));
    BasicBlock* sampled_end = b_.GetInsertBlock();
    b_.CreateBr(after);

    b_.SetInsertPoint(middle);
    Values range = {keys_.Largest(), keys_.Zero()};
    // The last vector is padded with the first key.
    Value* any = keys_.Splat(b_.CreateAlignedLoad(keys_.key(), from, keys_.align()));
    keys_.ForEach(from, keys_.Int(0), count, any, range, [&](Value* x, Value*, Values& v) {
      v = {b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v[0], x),
           b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, v[1], x)};
    });
    Value* least = b_.CreateIntMinReduce(range[0], false);
    Value* most = b_.CreateIntMaxReduce(range[1], false);
    Value* half = b_.CreateAdd(least, b_.CreateLShr(b_.CreateSub(most, least), 1));
    BasicBlock* middle_end = differ;
    b_.CreateCondBr(b_.CreateICmpEQ(least, most), equal, differ);
    b_.SetInsertPoint(differ);
    b_.CreateBr(after);

    b_.SetInsertPoint(equal);
    Values at = {keys_.Int(0)};
    keys_.ForEach(from, keys_.Int(0), count, any, at, [&](Value* x, Value* mask, Values& v) {
      keys_.Pack(x, mask ? mask : llvm::Constant::getAllOnesValue(MaskType()),
                 keys_.At(home, v[0]));
      v[0] = b_.CreateAdd(v[0], keys_.Int(keys_.lanes()));
    });
    b_.CreateRetVoid();

    b_.SetInsertPoint(after);
    return EmitPhi(b_, {median, sampled_end}, {half, middle_end});
  }

  llvm::Type* MaskType() {
    return llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(keys_.lanes()));
  }

  // Keys up to the pivot to the beginning of `to`, the others to its end; how many the former are.
  Value* Partition(Value* from, Value* count, Value* pivot, Value* to) {
    Value* bound = keys_.Splat(pivot);
    Values at = {keys_.Int(0), count};
    keys_.ForEach(from, keys_.Int(0), count, keys_.Zero(), at,
                  [&](Value* x, Value* mask, Values& v) {
                    Value* left = b_.CreateICmpULE(x, bound);
                    Value* right = b_.CreateNot(left);
                    if (mask) {
                      left = b_.CreateAnd(left, mask);
                      right = b_.CreateAnd(right, mask);
                    }
                    Value* rights = keys_.CountOf(right);
                    Value* end = b_.CreateSub(v[1], rights);
                    keys_.Pack(x, left, keys_.At(to, v[0]));
                    keys_.Pack(x, right, keys_.At(to, end));
                    v = {b_.CreateAdd(v[0], keys_.CountOf(left)), end};
                  });
    return at[0];
  }

  llvm::LLVMContext& context_;
  Function* network_;
  Function* f_;
  Builder b_;
  Keys keys_;
  const bool may_take_long_;
};

Value* CountsOf(const SortContext& c, SortPhase& p, Value* chunk) {
  return p.At(p.b().getInt8Ty(), p.Scratch(c.schedule.counts),
              p.b().CreateMul(chunk, p.Int(c.schedule.buckets() * 4)));
}

// The masks of a vector's keys by the part they go to.
Values PartsOf(Builder& b, const Values& splitters, Value* keys, Value* mask) {
  Values parts;
  Value* rest = mask ? mask
                     : llvm::Constant::getAllOnesValue(llvm::VectorType::get(
                           b.getInt1Ty(), llvm::cast<llvm::VectorType>(keys->getType())));
  for (Value* splitter : splitters) {
    Value* here = b.CreateICmpULE(keys, splitter);
    parts.push_back(b.CreateAnd(here, rest));
    rest = b.CreateAnd(rest, b.CreateNot(here));
  }
  parts.push_back(rest);
  return parts;
}

Values LoadSplitters(const SortContext& c, SortPhase& p, Keys& keys) {
  Values splitters;
  for (int64_t i = 0; i + 1 < c.schedule.chunks; ++i) {
    Value* at = keys.At(p.Scratch(c.schedule.splits), p.Int(i));
    splitters.push_back(keys.Splat(p.b().CreateAlignedLoad(keys.key(), at, keys.align())));
  }
  return splitters;
}

}  // namespace

SortFunctions MakeSortFunctions(const SortContext& c) {
  Function* network = MakeNetwork(c);
  return {network, Quicksort(c, network).Emit()};
}

void EmitSplittersPhase(const SortContext& c, SortPhase& p, const SortFunctions& functions) {
  Builder& b = p.b();
  Keys keys(c, b);
  const int64_t size = kRegisters * keys.lanes(), chunks = c.schedule.chunks;
  Value* from = p.Pointer(SortState::kFrom);
  auto* type = llvm::ArrayType::get(keys.key(), static_cast<uint64_t>(size));
  Value* sample = b.CreateAlloca(type);
  EmitLoop(b, p.Int(0), p.Int(size), 1, [&](Value* i) {
    Value* at = keys.At(from, b.CreateMul(i, p.Int(SizeOf(c) / size)));
    Value* key = b.CreateAlignedLoad(keys.key(), at, keys.align());
    b.CreateAlignedStore(key, keys.At(sample, i), keys.align());
  });
  b.CreateCall(functions.network, {sample, sample, p.Int(size)});
  for (int64_t i = 1; i < chunks; ++i) {
    Value* at = keys.At(sample, p.Int(i * size / chunks));
    Value* key = b.CreateAlignedLoad(keys.key(), at, keys.align());
    Value* to = keys.At(p.Scratch(c.schedule.splits), p.Int(i - 1));
    b.CreateAlignedStore(key, to, keys.align());
  }
}

void EmitPartsPhase(const SortContext& c, SortPhase& p, bool moves) {
  Builder& b = p.b();
  Keys keys(c, b);
  llvm::Type* word = b.getInt32Ty();
  Value* from = p.Pointer(SortState::kFrom);
  Value* to = moves ? p.Pointer(SortState::kTo) : nullptr;
  Values splitters = LoadSplitters(c, p, keys);
  p.ForEachChunk([&](Value* chunk, Value* first, Value* end) {
    Value* counts = CountsOf(c, p, chunk);
    Values places;
    for (int64_t part = 0; part < c.schedule.buckets(); ++part) {
      Value* slot = p.At(word, counts, p.Int(part));
      bool reads = moves && part < c.schedule.chunks;
      places.push_back(reads ? b.CreateZExt(b.CreateLoad(word, slot), b.getInt64Ty()) : p.Int(0));
    }
    keys.ForEach(from, first, end, keys.Zero(), places, [&](Value* x, Value* mask, Values& v) {
      Values parts = PartsOf(b, splitters, x, mask);
      for (size_t i = 0; i < parts.size(); ++i) {
        if (moves) keys.Pack(x, parts[i], keys.At(to, v[i]));
        v[i] = b.CreateAdd(v[i], keys.CountOf(parts[i]));
      }
    });
    for (int64_t part = 0; part < c.schedule.buckets(); ++part) {
      Value* place = b.CreateTrunc(places[part], word);
      b.CreateStore(place, p.At(word, counts, p.Int(part)));
    }
  });
}

void EmitQuicksortPhase(const SortContext& c, SortPhase& p, const SortFunctions& functions) {
  Builder& b = p.b();
  Keys keys(c, b);
  Value *from = p.Pointer(SortState::kFrom), *to = p.Pointer(SortState::kTo);
  Value* tries = p.Int(2 * LevelsOf(1, SizeOf(c)));
  p.ForEachChunk([&](Value* chunk, Value* first, Value* end) {
    if (c.schedule.chunks > 1) {
      // Moving has left behind where the last chunk's keys of each part end, and the part with it.
      Value* counts = CountsOf(c, p, p.Int(c.schedule.chunks - 1));
      auto end_of = [&](Value* part) {
        Value* place = b.CreateLoad(b.getInt32Ty(), p.At(b.getInt32Ty(), counts, part));
        return b.CreateZExt(place, b.getInt64Ty());
      };
      Value* is_first = b.CreateICmpEQ(chunk, p.Int(0));
      Value* before = b.CreateSelect(is_first, chunk, b.CreateSub(chunk, p.Int(1)));
      first = b.CreateSelect(is_first, p.Int(0), end_of(before));
      end = end_of(chunk);
    }
    b.CreateCall(functions.quicksort,
                 {keys.At(from, first), keys.At(to, first), b.CreateSub(end, first), tries,
                  b.getTrue(), p.function()->getArg(0)});
  });
}

}  // namespace kiln::codegen
