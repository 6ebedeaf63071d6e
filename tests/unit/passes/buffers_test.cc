// Buffer assignment, by brute force: a module runs on marks instead of numbers. Each value marks
// the memory that the assignment gives it; whoever reads it must still find its mark there.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/spread.h"
#include "base/strings.h"
#include "ir/analysis/alias.h"
#include "ir/text.h"
#include "kernel/fusible.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/memory/offsets.h"
#include "passes/pipelines.h"
#include "random/fodder.h"
#include "random/module.h"
#include "support/labels.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;
using testing::ControlFodder;
using testing::Fodder;
using testing::RandomModule;

using Mark = int64_t;
using Marks = std::vector<Mark>;  // of a value's leaves

constexpr int64_t kUnit = 64;  // memory is marked in pieces of the alignment

// The memory that an instruction is done in.
struct Place {
  std::pair<Buffer::Kind, int64_t> space;
  int64_t begin = 0, end = 0;  // in pieces
  bool operator==(const Place&) const = default;
};

bool Overlap(const Place& a, const Place& b) {
  return a.space == b.space && a.begin < b.end && b.begin < a.end;
}

class Machine {
 public:
  Machine(const ir::Module& module, const AssignmentOptions& options,
          const BufferAssignment& assignment, uint64_t seed)
      : module_(module), options_(options), assignment_(assignment), random_(seed) {}

  // "" where every read finds what it should.
  std::string Run() {
    const Computation& entry = *module_.entry();
    std::vector<Marks> arguments;
    for (const Instruction* p : entry.parameters()) {
      Marks marks;
      for (int b : assignment_.leaves.at(p)) {
        marks.push_back(next_++);
        Put(PlaceOf(b), marks.back());
      }
      arguments.push_back(std::move(marks));
    }
    ReadOnly(Buffer::Kind::kParameter);
    Marks results = RunComputation(entry, arguments);
    // What is not made in the caller's memory is copied there, in order.
    const std::vector<int>& leaves = assignment_.leaves.at(entry.root());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      Place to{{Buffer::Kind::kResult, static_cast<int64_t>(leaf)}, 0, 0};
      to.end = Pieces(assignment_.buffers[leaves[leaf]].bytes);
      Copy(entry.root(), PlaceOf(leaves[leaf]), to, results[leaf]);
    }
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      Place of{{Buffer::Kind::kResult, static_cast<int64_t>(leaf)}, 0, 0};
      of.end = Pieces(assignment_.buffers[leaves[leaf]].bytes);
      Check(entry.root(), of, results[leaf], "the caller finds");
    }
    return error_;
  }

  int in_place() const { return in_place_; }

 private:
  static int64_t Pieces(int64_t bytes) { return (bytes + kUnit - 1) / kUnit; }

  Place PlaceOf(int buffer) {
    const Buffer& b = assignment_.buffers[buffer];
    int64_t space = b.kind == Buffer::Kind::kArena      ? 0
                    : b.kind == Buffer::Kind::kConstant ? b.constant->id()
                                                        : b.number;
    const bool has_offset = b.kind == Buffer::Kind::kArena || b.kind == Buffer::Kind::kResult;
    int64_t begin = has_offset ? b.offset / kUnit : 0;
    if (b.offset % kUnit != 0) Fail(nullptr, "a buffer is not aligned");
    if (b.kind == Buffer::Kind::kArena && b.offset + b.bytes > assignment_.arena_bytes) {
      Fail(nullptr, "a buffer is outside of the arena");
    }
    if (b.kind == Buffer::Kind::kResult && b.offset + b.bytes > BytesOfResult(b.number)) {
      Fail(nullptr, "a buffer is outside of the result's memory");
    }
    return {{b.kind, space}, begin, begin + Pieces(b.bytes)};
  }

  int64_t BytesOfResult(int number) const {
    int64_t bytes = 0, leaf = 0;
    ForEachLeaf(module_.entry()->root()->shape(), [&](const Shape& shape, auto) {
      if (leaf++ == number) bytes = shape.byte_size();
    });
    return bytes;
  }

  void Fail(const Instruction* at, std::string_view what) {
    if (error_.empty()) error_ = Cat(at ? at->name() : "", ": ", what);
  }
  void ReadOnly(Buffer::Kind kind) { read_only_.insert(kind); }

  void Put(const Place& place, Mark mark) {
    if (read_only_.contains(place.space.first)) {
      Fail(nullptr, "memory of the caller's or a constant is written");
    }
    auto& memory = memory_[place.space];
    if (static_cast<int64_t>(memory.size()) < place.end) memory.resize(place.end);
    std::fill(memory.begin() + place.begin, memory.begin() + place.end, mark);
  }

  void Check(const Instruction* at, const Place& place, Mark mark, std::string_view who) {
    auto& memory = memory_[place.space];
    for (int64_t k = place.begin; k < place.end; ++k) {
      if (k < static_cast<int64_t>(memory.size()) && memory[k] == mark) continue;
      Fail(at, Cat(who, " another value in its memory"));
      return;
    }
  }

  void Copy(const Instruction* at, const Place& from, const Place& to, Mark mark) {
    Check(at, from, mark, "a copy reads");
    if (from == to) return;
    if (Overlap(from, to)) Fail(at, "a copy overlaps itself");
    Put(to, mark);
  }

  Marks RunComputation(const Computation& c, const std::vector<Marks>& arguments) {
    std::map<const Instruction*, Marks> marks;
    for (Instruction* owned : c.instructions()) {
      const Instruction* i = owned;
      std::vector<const Marks*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(&marks.at(operand));
      const std::vector<int>& leaves = assignment_.leaves.at(i);
      Marks& of = marks[i];
      switch (i->opcode()) {
        case Opcode::kParameter:
          of = arguments[static_cast<size_t>(i->attributes().Int(Attr::kParameterNumber))];
          break;
        case Opcode::kConstant:
          of = {-1 - i->id()};
          memory_[PlaceOf(leaves[0]).space].assign(Pieces(assignment_.buffers[leaves[0]].bytes),
                                                   of[0]);
          ReadOnly(Buffer::Kind::kConstant);
          break;
        case Opcode::kTuple:
          for (const Marks* operand : operands) {
            of.insert(of.end(), operand->begin(), operand->end());
          }
          break;
        case Opcode::kGetTupleElement: {
          int64_t first = LeafOffset(i->operand(0)->shape(), i->attributes().Int(Attr::kIndex));
          of.assign(operands[0]->begin() + first,
                    operands[0]->begin() + first + LeafCount(i->shape()));
          break;
        }
        case Opcode::kWhile:
          of = RunWhile(i, *operands[0]);
          break;
        case Opcode::kConditional:
          of = RunConditional(i, operands);
          break;
        default:
          if (ir::IsAlias(*i)) {
            of = *operands[0];
          } else {
            of = RunKernel(i, operands);
          }
      }
      if (of.size() != leaves.size()) Fail(i, "has another number of leaves than values");
    }
    return marks.at(c.root());
  }

  Marks RunKernel(const Instruction* i, const std::vector<const Marks*>& operands) {
    const std::vector<int>& leaves = assignment_.leaves.at(i);
    std::vector<Place> scratch;
    if (auto it = assignment_.scratch.find(i); it != assignment_.scratch.end()) {
      scratch.push_back(PlaceOf(it->second));
      Put(scratch[0], next_++);
    }
    for (int64_t o = 0; o < i->operand_count(); ++o) {
      const std::vector<int>& of = assignment_.leaves.at(i->operand(o));
      for (size_t leaf = 0; leaf < of.size(); ++leaf) {
        Place input = PlaceOf(of[leaf]);
        Check(i, input, (*operands[o])[leaf], Cat("operand ", o, " is"));
        for (const Place& s : scratch) {
          if (Overlap(s, input)) Fail(i, "the scratch is over an operand");
        }
        for (size_t k = 0; k < leaves.size(); ++k) {
          Place output = PlaceOf(leaves[k]);
          if (!Overlap(input, output)) continue;
          ++in_place_;
          bool allowed = input == output && options_.may_share &&
                         options_.may_share(*i, o, static_cast<int64_t>(k));
          if (!allowed) Fail(i, Cat("writes over operand ", o, ", which it may not"));
        }
      }
    }
    Marks marks;
    for (size_t k = 0; k < leaves.size(); ++k) {
      Place output = PlaceOf(leaves[k]);
      for (const Place& s : scratch) {
        if (Overlap(s, output)) Fail(i, "the scratch is over a result");
      }
      for (size_t l = 0; l < k; ++l) {
        if (Overlap(PlaceOf(leaves[l]), output)) Fail(i, "two results are in the same memory");
      }
      marks.push_back(next_++);
      Put(output, marks.back());
    }
    return marks;
  }

  Marks RunWhile(const Instruction* i, Marks marks) {
    const std::vector<int>& state = assignment_.leaves.at(i);
    const std::vector<int>& initial = assignment_.leaves.at(i->operand(0));
    for (size_t leaf = 0; leaf < state.size(); ++leaf) {
      Copy(i, PlaceOf(initial[leaf]), PlaceOf(state[leaf]), marks[leaf]);
    }
    for (int trips = static_cast<int>(random_() % 3);; --trips) {
      Marks predicate = RunComputation(*i->called(0), {marks});
      Check(i, PlaceOf(assignment_.BufferOf(i->called(0)->root())), predicate[0], "the loop tests");
      if (trips == 0 || !error_.empty()) break;
      Marks next = RunComputation(*i->called(1), {marks});
      const std::vector<int>& from = assignment_.leaves.at(i->called(1)->root());
      const std::vector<int>& temporaries = assignment_.loop_temporaries.at(i);
      for (size_t leaf = 0; leaf < state.size(); ++leaf) {
        if (temporaries[leaf] < 0) continue;
        Copy(i, PlaceOf(from[leaf]), PlaceOf(temporaries[leaf]), next[leaf]);
      }
      for (size_t leaf = 0; leaf < state.size(); ++leaf) {
        int source = temporaries[leaf] >= 0 ? temporaries[leaf] : from[leaf];
        Copy(i, PlaceOf(source), PlaceOf(state[leaf]), next[leaf]);
      }
      marks = std::move(next);
    }
    for (size_t leaf = 0; leaf < state.size(); ++leaf) {
      Check(i, PlaceOf(state[leaf]), marks[leaf], "the loop leaves");
    }
    return marks;
  }

  Marks RunConditional(const Instruction* i, const std::vector<const Marks*>& operands) {
    Check(i, PlaceOf(assignment_.BufferOf(i->operand(0))), (*operands[0])[0], "the index is");
    size_t branch = random_() % i->called().size();
    Marks marks = RunComputation(*i->called(static_cast<int64_t>(branch)), {*operands[branch + 1]});
    const std::vector<int>& from =
        assignment_.leaves.at(i->called(static_cast<int64_t>(branch))->root());
    const std::vector<int>& to = assignment_.leaves.at(i);
    for (size_t leaf = 0; leaf < to.size(); ++leaf) {
      Copy(i, PlaceOf(from[leaf]), PlaceOf(to[leaf]), marks[leaf]);
    }
    for (size_t leaf = 0; leaf < to.size(); ++leaf) {
      Check(i, PlaceOf(to[leaf]), marks[leaf], "the conditional leaves");
    }
    return marks;
  }

  const ir::Module& module_;
  const AssignmentOptions& options_;
  const BufferAssignment& assignment_;
  std::mt19937_64 random_;
  std::map<std::pair<Buffer::Kind, int64_t>, std::vector<Mark>> memory_;
  std::set<Buffer::Kind> read_only_;
  Mark next_ = 1;
  std::string error_;
  int in_place_ = 0;
};

int64_t Padded(int64_t bytes) { return RoundUp(bytes, kUnit); }

std::vector<const Buffer*> ArenaBuffers(const BufferAssignment& assignment) {
  std::vector<const Buffer*> buffers;
  for (const Buffer& b : assignment.buffers) {
    if (b.kind == Buffer::Kind::kArena && b.bytes > 0) buffers.push_back(&b);
  }
  return buffers;
}

// What is live at once, at its most: no arena is smaller.
int64_t MostLiveBytes(const BufferAssignment& assignment) {
  int64_t most = 0;
  std::vector<const Buffer*> buffers = ArenaBuffers(assignment);
  for (const Buffer* at : buffers) {
    int64_t live = 0;
    for (const Buffer* b : buffers) {
      if (b->begin <= at->begin && at->begin <= b->end) live += Padded(b->bytes);
    }
    most = std::max(most, live);
  }
  return most;
}

// The arena of a simple allocator: in the order of time, each buffer at the lowest free place.
int64_t GreedyBytes(const BufferAssignment& assignment) {
  std::vector<const Buffer*> buffers = ArenaBuffers(assignment);
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Buffer* a, const Buffer* b) { return a->begin < b->begin; });
  std::vector<std::pair<const Buffer*, int64_t>> placed;
  int64_t arena = 0;
  for (const Buffer* b : buffers) {
    int64_t offset = 0;
    for (bool again = true; again;) {
      again = false;
      for (auto [other, at] : placed) {
        bool together = other->begin <= b->end && b->begin <= other->end;
        bool over = at < offset + Padded(b->bytes) && offset < at + Padded(other->bytes);
        if (!together || !over) continue;
        offset = at + Padded(other->bytes);
        again = true;
      }
    }
    placed.emplace_back(b, offset);
    arena = std::max(arena, offset + Padded(b->bytes));
  }
  return arena;
}

struct Totals {
  int64_t in_place = 0, arena = 0, live = 0;
};

void Check(std::unique_ptr<ir::Module> module, std::string_view pipeline, uint64_t seed,
           Totals& totals) {
  PassContext context;
  context.verify = true;
  for (const NamedPipeline& named : AllPipelines()) {
    if (named.name != pipeline) continue;
    Status status = RunPipeline("test", named.get(), *module, context);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  AssignmentOptions options;
  kernel::FusionAnalysis analysis;
  options.may_share = [&](const ir::Instruction& i, int64_t operand, int64_t output) {
    return kernel::MayShareBuffer(i, operand, output, analysis);
  };
  // Some kernels want scratch; which ones depends on the seed.
  options.scratch_bytes = [&](const Instruction& i) -> int64_t {
    if (ir::IsAlias(i) || i.IsConstant()) return 0;
    return (static_cast<uint64_t>(i.id()) * 0x9e3779b9u + seed) % 5 == 0 ? 200 : 0;
  };
  auto assignment = AssignBuffers(*module, options);
  ASSERT_TRUE(assignment.ok()) << assignment.status().ToString();
  for (uint64_t run = 0; run < 3; ++run) {
    Machine machine(*module, options, *assignment, seed * 3 + run);
    ASSERT_EQ(machine.Run(), "") << ir::ToHloText(*module) << assignment->ToString();
    totals.in_place += machine.in_place();
  }
  int64_t live = MostLiveBytes(*assignment), greedy = GreedyBytes(*assignment);
  ASSERT_GE(assignment->arena_bytes, live) << assignment->ToString();
  ASSERT_LE(assignment->arena_bytes, greedy + greedy / 64) << assignment->ToString();
  totals.arena += assignment->arena_bytes;
  totals.live += live;
}

void RunSeeds(uint64_t first, uint64_t count) {
  Totals totals;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    for (std::string_view pipeline : {"op-by-op", "cpu"}) {
      SCOPED_TRACE(Cat(pipeline, ", seed ", static_cast<int64_t>(seed)));
      Check(RandomModule(seed), pipeline, seed, totals);
      Check(ControlFodder(seed), pipeline, seed, totals);
      Check(Fodder(seed, 30), pipeline, seed, totals);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(totals.in_place, static_cast<int64_t>(count)) << "hardly anything is done in place";
  EXPECT_LT(static_cast<double>(totals.arena), static_cast<double>(totals.live) * 1.01)
      << "too much of the arena is holes";
}

TEST(PassesBuffers, EveryValueIsThereWhenItIsRead) { RunSeeds(1, 300); }

TEST(SlowPassesBuffers, EveryValueIsThereWhenItIsRead) { RunSeeds(5000, 5000); }

KILN_LABEL(slow, "SlowPassesBuffers");

// Arrays of whole pages that live together.
TEST(PassesBuffers, ArraysOfWholePagesAreSpread) {
  std::vector<Buffer> buffers(4);
  std::set<int64_t> places;
  for (Buffer& b : buffers) b.bytes = 8 * kSpreadPageBytes;
  const int64_t arena = AssignOffsets(buffers, kUnit);
  for (const Buffer& b : buffers) {
    EXPECT_EQ(b.offset % kUnit, 0);
    EXPECT_LE(b.offset + b.bytes, arena);
    places.insert(b.offset % kSpreadPageBytes);
  }
  EXPECT_EQ(places.size(), buffers.size());
}

}  // namespace
}  // namespace kiln::passes
