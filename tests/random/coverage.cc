#include "random/coverage.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/strings.h"
#include "passes/control/computations.h"
#include "random/ops.h"
#include "random/repeats.h"

namespace kiln::testing {
namespace {

constexpr ElementType kTypes[] = {
    ElementType::kPred, ElementType::kS8,  ElementType::kS16, ElementType::kS32, ElementType::kS64,
    ElementType::kU8,   ElementType::kU16, ElementType::kU32, ElementType::kU64, ElementType::kF16,
    ElementType::kBF16, ElementType::kF32, ElementType::kF64};

constexpr ElementType kAllRareTypes[] = {
    ElementType::kC64,       ElementType::kC128,         ElementType::kS4,
    ElementType::kU4,        ElementType::kS2,           ElementType::kU2,
    ElementType::kF8E5M2,    ElementType::kF8E4M3FN,     ElementType::kF8E4M3,
    ElementType::kF8E3M4,    ElementType::kF8E5M2FNUZ,   ElementType::kF8E4M3FNUZ,
    ElementType::kF8E8M0FNU, ElementType::kF6E2M3FN,     ElementType::kF6E3M2FN,
    ElementType::kF4E2M1FN,  ElementType::kF8E4M3B11FNUZ};

std::span<const ElementType> TypesOf(const RandomModuleOptions& options) {
  if (options.rare_types) return kAllRareTypes;
  return kTypes;
}

// More seeds than this are not asked for what is missing.
constexpr int kMaxSeed = 20000;

// What random graphs have no place for, or do not make yet; each has tests of its own.
constexpr Opcode kLeftOut[] = {
    // What takes more than one process, or what is outside of the program.
    Opcode::kAllGather, Opcode::kAllReduce, Opcode::kAllToAll, Opcode::kCollectiveBroadcast,
    Opcode::kCollectivePermute, Opcode::kPartitionId, Opcode::kReduceScatter, Opcode::kReplicaId,
    Opcode::kAfterAll, Opcode::kInfeed, Opcode::kOutfeed, Opcode::kRecv, Opcode::kRecvDone,
    Opcode::kSend, Opcode::kSendDone,
    // Functions outside generated code.
    Opcode::kCholesky, Opcode::kCustomCall, Opcode::kFft, Opcode::kRngGetAndUpdateState,
    Opcode::kTriangularSolve,
    // Makes the first complex numbers of those modules that have some.
    Opcode::kComplex,
    // Random numbers have no neighbours that results could be compared to.
    Opcode::kRng, Opcode::kRngBitGenerator,
    // Not made yet.
    Opcode::kSetDimensionSize};

bool IsMadeByUsers(const OpInfo& op) {
  return !(op.traits & (kSessionOnly | kCompilerOnly)) &&
         std::ranges::find(kLeftOut, op.opcode) == std::end(kLeftOut);
}

bool Allows(const OpInfo& op, ElementType type) {
  // There are no integers of 6 bits to go with it.
  if (op.opcode == Opcode::kStochasticConvert && BitWidth(type) == 6) return false;
  return op.types & TypeMaskOf(type);
}

// The value whose elements the op works on.
const Shape& DataOf(const ir::Instruction& i) {
  if (i.shape().is_tuple() || i.operand_count() == 0) return i.shape();
  switch (i.opcode()) {
    case Opcode::kSelect:
    case Opcode::kClamp:
      return i.operand(1)->shape();
    case Opcode::kGetTupleElement:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kMap:
      return i.shape();
    default:
      return i.operand(0)->shape();
  }
}

}  // namespace

void AddCoverage(const ir::Module& module, Coverage& coverage) {
  for (const auto& c : module.computations()) {
    for (ir::Instruction* i : c->instructions()) {
      ForEachLeaf(DataOf(*i), [&](const Shape& leaf, std::span<const int64_t>) {
        ++coverage[{i->opcode(), leaf.type()}];
      });
    }
  }
}

std::vector<std::pair<Opcode, ElementType>> MissingFrom(const Coverage& coverage,
                                                        const RandomModuleOptions& options) {
  std::vector<std::pair<Opcode, ElementType>> missing;
  for (int k = 0; k < kOpcodeCount; ++k) {
    const OpInfo& op = InfoOf(static_cast<Opcode>(k));
    if (!IsMadeByUsers(op)) continue;
    for (ElementType type : TypesOf(options)) {
      if (Allows(op, type) && !coverage.contains({op.opcode, type})) {
        missing.push_back({op.opcode, type});
      }
    }
  }
  return missing;
}

std::string CoverageTable(const Coverage& coverage, const RandomModuleOptions& options) {
  std::string table;
  char text[64];
  std::snprintf(text, sizeof(text), "%-24s", "");
  table += text;
  for (ElementType type : TypesOf(options)) {
    std::snprintf(text, sizeof(text), "%7s", std::string(TypeName(type)).c_str());
    table += text;
  }
  table += '\n';
  for (int k = 0; k < kOpcodeCount; ++k) {
    const OpInfo& op = InfoOf(static_cast<Opcode>(k));
    if (!IsMadeByUsers(op)) continue;
    std::snprintf(text, sizeof(text), "%-24s", std::string(op.name).c_str());
    table += text;
    for (ElementType type : TypesOf(options)) {
      auto it = coverage.find({op.opcode, type});
      if (Allows(op, type)) {
        std::snprintf(text, sizeof(text), "%7d", it == coverage.end() ? 0 : it->second);
      } else {
        std::snprintf(text, sizeof(text), "%7s", "-");
      }
      table += text;
    }
    table += '\n';
  }
  return table;
}

std::vector<int> CoveringSeeds(int count, const RandomModuleOptions& options) {
  std::vector<int> seeds;
  Coverage coverage;
  size_t missing = 0;
  for (int seed = 0; seed < kMaxSeed; ++seed) {
    if (seed >= count) {
      if (missing == 0) break;
      Coverage with = coverage;
      AddCoverage(*RandomModule(seed, options), with);
      size_t left = MissingFrom(with, options).size();
      if (left == missing) continue;
      coverage = std::move(with);
      missing = left;
    } else {
      AddCoverage(*RandomModule(seed, options), coverage);
      if (seed == count - 1) missing = MissingFrom(coverage, options).size();
    }
    seeds.push_back(seed);
  }
  return seeds;
}

namespace {

constexpr const char* kRepeatNames[] = {"twice",     "3 times",  "again",    "subgraph",
                                        "parameter", "constant", "2 const.", "used inside"};
constexpr const char* kPlaceNames[] = {"entry",          "loop",           "branch",
                                       "call",           "kLoop fusion",   "kInput fusion",
                                       "kOutput fusion", "kCustom fusion", "fusion in a fusion"};
constexpr int kRepeats = static_cast<int>(Repeat::kCount);
constexpr int kPlaces = static_cast<int>(Place::kCount);
static_assert(std::size(kRepeatNames) == kRepeats && std::size(kPlaceNames) == kPlaces);

// Whether CSE would make two instructions one, of operands that are one, or become one.
bool IsSameOp(const ir::Instruction& a, const ir::Instruction& b, bool same_operands) {
  if (&a == &b || a.opcode() != b.opcode() || a.opcode() == Opcode::kParameter ||
      !(a.shape() == b.shape()) || !(a.attributes() == b.attributes()) ||
      a.operand_count() != b.operand_count() || a.called().size() != b.called().size()) {
    return false;
  }
  for (size_t k = 0; k < a.called().size(); ++k) {
    if (!passes::IsSameComputation(*a.called(k), *b.called(k))) return false;
  }
  if (a.IsConstant()) return same_operands && a.literal() == b.literal();
  auto in_order = [&](int64_t first) {
    bool all = true, any_other = false;
    for (int64_t o = 0; o < a.operand_count(); ++o) {
      const ir::Instruction *x = a.operand(o), *y = b.operand((o + first) % a.operand_count());
      any_other |= x != y;
      all = all &&
            (x == y || (!same_operands && (IsSameOp(*x, *y, true) || IsSameOp(*x, *y, false))));
    }
    return all && any_other != same_operands;
  };
  return in_order(0) ||
         (HasTrait(a.opcode(), kCommutative) && a.operand_count() == 2 && in_order(1));
}

bool IsOfParameter(const ir::Instruction* i) {
  while (i->opcode() == Opcode::kGetTupleElement) i = i->operand(0);
  return i->opcode() == Opcode::kParameter;
}

void AddResults(const ir::Computation& c, Place place, RepeatCoverage& coverage) {
  if (c.root()->opcode() != Opcode::kTuple) return;
  auto results = c.root()->operands();
  bool has[kRepeats] = {};
  auto note = [&](Repeat repeat, bool is_there) { has[static_cast<int>(repeat)] |= is_there; };
  for (size_t k = 0; k < results.size(); ++k) {
    const ir::Instruction& result = *results[k];
    const auto times = std::ranges::count(results, &result);
    note(Repeat::kTwice, times == 2);
    note(Repeat::kThreeTimes, times > 2);
    note(Repeat::kParameter, IsOfParameter(&result));
    note(Repeat::kConstant, result.IsConstant());
    note(Repeat::kConstantTwice, result.IsConstant() && times > 1);
    note(Repeat::kUsedInside, result.users().size() > 1);
    for (size_t j = 0; j < k; ++j) {
      note(Repeat::kMadeAgain, IsSameOp(result, *results[j], true));
      note(Repeat::kSubgraphAgain, IsSameOp(result, *results[j], false));
    }
  }
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    if (has[repeat]) ++coverage[{static_cast<Repeat>(repeat), place}];
  }
}

Place PlaceOf(const ir::Instruction& fusion, bool is_inside) {
  if (is_inside) return Place::kInnerFusion;
  const std::string& kind = fusion.attributes().Text(Attr::kFusionKind);
  return kind == "kLoop"     ? Place::kLoopFusion
         : kind == "kInput"  ? Place::kInputFusion
         : kind == "kOutput" ? Place::kOutputFusion
                             : Place::kCustomFusion;
}

}  // namespace

void AddRepeatCoverage(const ir::Module& module, RepeatCoverage& coverage) {
  AddResults(*module.entry(), Place::kEntry, coverage);
  std::set<const ir::Computation*> fused;
  for (const auto& c : module.computations()) {
    for (const ir::Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kFusion) fused.insert(i->called(0));
    }
  }
  for (const auto& c : module.computations()) {
    for (const ir::Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kWhile) {
        AddResults(*i->called(1), Place::kLoop, coverage);
      } else if (i->opcode() == Opcode::kConditional) {
        for (const ir::Computation* b : i->called()) AddResults(*b, Place::kBranch, coverage);
      } else if (i->opcode() == Opcode::kCall) {
        AddResults(*i->called(0), Place::kCall, coverage);
      } else if (i->opcode() == Opcode::kFusion) {
        AddResults(*i->called(0), PlaceOf(*i, fused.contains(c.get())), coverage);
      }
    }
  }
}

std::vector<std::string> MissingFrom(const RepeatCoverage& coverage) {
  std::vector<std::string> missing;
  for (int place = 0; place < kPlaces; ++place) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      if (coverage.contains({static_cast<Repeat>(repeat), static_cast<Place>(place)})) continue;
      missing.push_back(Cat(kPlaceNames[place], ": ", kRepeatNames[repeat]));
    }
  }
  return missing;
}

std::vector<int> CoveringRepeatSeeds(int count) {
  std::vector<int> seeds;
  RepeatCoverage coverage;
  for (int seed = 0; seed < kMaxSeed && (seed < count || !MissingFrom(coverage).empty()); ++seed) {
    const size_t before = coverage.size();
    AddRepeatCoverage(*RandomRepeatsModule(static_cast<uint64_t>(seed)), coverage);
    if (seed < count || coverage.size() > before) seeds.push_back(seed);
  }
  return seeds;
}

std::string CoverageTable(const RepeatCoverage& coverage) {
  char text[64];
  std::snprintf(text, sizeof(text), "%-20s", "results of");
  std::string table = text;
  for (const char* name : kRepeatNames) {
    std::snprintf(text, sizeof(text), "%12s", name);
    table += text;
  }
  table += '\n';
  for (int place = 0; place < kPlaces; ++place) {
    std::snprintf(text, sizeof(text), "%-20s", kPlaceNames[place]);
    table += text;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      auto it = coverage.find({static_cast<Repeat>(repeat), static_cast<Place>(place)});
      std::snprintf(text, sizeof(text), "%12d", it == coverage.end() ? 0 : it->second);
      table += text;
    }
    table += '\n';
  }
  return table;
}

}  // namespace kiln::testing
