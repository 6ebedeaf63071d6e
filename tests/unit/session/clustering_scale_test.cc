// The time of clustering large graphs.
#include <gtest/gtest.h>

#include <ctime>
#include <iomanip>
#include <iostream>
#include <random>

#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {
namespace {

using ir::Instruction;

const Shape kVector(ElementType::kF32, {8});

class Graph {
 public:
  explicit Graph(int64_t ops) : ops_(ops), random_(7) {
    entry_ = module_.AddComputation("entry");
    module_.set_entry(entry_);
    input_ = entry_->Create({.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                             .shape = kVector});
  }

  void Chain() {
    for (Instruction* last = input_; Left();) last = Op({last});
  }
  // One value with all the others as its users.
  void Fan() {
    for (Instruction* value = Op({input_}); Left();) Op({value});
  }
  // The same, with one user of all the users.
  void FanInAndOut() {
    std::vector<Instruction*> middle;
    for (Instruction* value = Op({input_}); Left() > 1;) middle.push_back(Op({value}));
    Op(std::move(middle));
  }
  void Diamonds() {
    for (Instruction* last = input_; Left();) {
      Instruction* top = Op({last});
      last = Op({Op({top}), Op({top})});
    }
  }
  // Layers of 100 ops, with operands in the last layers.
  void Layers() {
    std::vector<Instruction*> all(100, input_);
    while (Left()) {
      size_t near = std::min<size_t>(all.size(), 300);
      all.push_back(
          Op({all[all.size() - 1 - random_() % near], all[all.size() - 1 - random_() % near]}));
    }
  }
  // Operands anywhere.
  void Random() {
    std::vector<Instruction*> all = {input_};
    while (Left()) all.push_back(Op({all[random_() % all.size()], all[random_() % all.size()]}));
  }
  // A chain, each op of which reads one from far back, too.
  void ChainWithFarOperands() {
    std::vector<Instruction*> all = {input_};
    while (Left()) all.push_back(Op({all.back(), all[all.size() * 7 / 8]}));
  }
  // A training step: a chain, and a second one back to the start, which reads from the first.
  void ThereAndBack() {
    std::vector<Instruction*> there = {input_};
    while (Left() > ops_ / 2) there.push_back(Op({there.back()}));
    for (Instruction* back = there.back(); Left() && !there.empty(); there.pop_back()) {
      back = Op({back, there.back()});
    }
  }

  // One op in `every` (0: none) is outside clusters, by its kind of reason.
  double Seconds(int64_t every, bool by_device) {
    entry_->set_root(entry_->instructions().back());
    Placement placement(*entry_);
    placement.devices = {{"CPU:0"}, {"CPU:1"}};
    ClusterOptions options;
    options.level = JitLevel::kOn;
    options.cpu_global_jit = true;
    std::mt19937_64 random(3);
    std::vector<bool> apart(static_cast<size_t>(module_.NextId()));
    for (const Instruction* i : entry_->instructions()) {
      apart[i->id()] = every > 0 && random() % static_cast<uint64_t>(every) == 0;
      placement.device_of[i] = apart[i->id()] && by_device;
    }
    ClusterInput input = {.entry = *entry_,
                          .placement = placement,
                          .options = options,
                          .mark =
                              [&](const Instruction& i) {
                                JitMark mark;
                                if (apart[i.id()] && !by_device) mark.compile = false;
                                return mark;
                              },
                          .why_not_compilable = nullptr,
                          .control_edges = {}};
    // Of the processor: other tests may run.
    const std::clock_t start = std::clock();
    Result<Clustering> clustering = FindClusters(input);
    const std::clock_t end = std::clock();
    EXPECT_TRUE(clustering.ok());
    clusters_ = clustering->clusters().size();
    return static_cast<double>(end - start) / CLOCKS_PER_SEC;
  }
  size_t clusters() const { return clusters_; }

 private:
  int64_t Left() const { return ops_ + 1 - entry_->instruction_count(); }
  Instruction* Op(std::vector<Instruction*> operands) {
    return entry_->Create(
        {.opcode = Opcode::kTanh, .operands = std::move(operands), .shape = kVector});
  }

  const int64_t ops_;
  std::mt19937_64 random_;
  ir::Module module_{"m"};
  ir::Computation* entry_;
  Instruction* input_;
  size_t clusters_ = 0;
};

TEST(ClusteringScale, IsAboutLinearInTheNumberOfOps) {
  struct Kind {
    const char* name;
    void (Graph::*build)();
  };
  static constexpr Kind kKinds[] = {{"chain", &Graph::Chain},
                                    {"fan", &Graph::Fan},
                                    {"fan in and out", &Graph::FanInAndOut},
                                    {"diamonds", &Graph::Diamonds},
                                    {"layers", &Graph::Layers},
                                    {"random", &Graph::Random},
                                    {"far operands", &Graph::ChainWithFarOperands},
                                    {"there and back", &Graph::ThereAndBack}};
  struct Mix {
    const char* name;
    int64_t every;
    bool by_device;
  };
  static constexpr Mix kMixes[] = {{"one cluster", 0, false},
                                   {"1 of 10 outside", 10, false},
                                   {"1 of 2 outside", 2, false},
                                   {"2 devices", 2, true}};
  std::cout << "ms for 1k, 10k, 100k ops, and clusters of the last\n" << std::fixed;
  for (const Kind& kind : kKinds) {
    for (const Mix& mix : kMixes) {
      std::cout << std::left << std::setw(16) << kind.name << std::setw(18) << mix.name
                << std::right << std::setprecision(2);
      for (int64_t ops : {1000, 10000, 100000}) {
        Graph graph(ops);
        (graph.*kind.build)();
        double seconds = graph.Seconds(mix.every, mix.by_device);
        std::cout << std::setw(10) << seconds * 1e3;
        // A tenth of a second is usual for 100,000 ops; quadratic time would be minutes.
        if (mix.every == 0) {
          EXPECT_EQ(graph.clusters(), 1u);
        }
        EXPECT_LT(seconds, 10) << kind.name << ", " << mix.name << ", " << ops;
        if (ops == 100000) std::cout << std::setw(10) << graph.clusters() << std::endl;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::session
