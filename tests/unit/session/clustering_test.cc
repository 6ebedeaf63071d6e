#include "session/clustering.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "support/hlo.h"

namespace kiln::session {
namespace {

using ir::Instruction;

// A graph of f32[] with its marks, all on the first device.
class Graph {
 public:
  // The lines of the entry, whose parameters are a and b; `before` has other computations.
  explicit Graph(std::string_view lines, std::string_view before = "")
      : module_(ir::ParseOrDie(Cat("HloModule m\n", before,
                                   "\nENTRY e { a = f32[] parameter(0)\n b = f32[] parameter(1)\n",
                                   lines, "}"))),
        placement_(*module_->entry()) {
    for (const Instruction* i : module_->entry()->instructions()) placement_.device_of[i] = 0;
    options.level = JitLevel::kOn;
    options.min_cluster_size = 1;
  }

  const Instruction* Find(std::string_view name) const {
    const Instruction* i = ir::FindInstruction(*module_->entry(), name);
    EXPECT_NE(i, nullptr) << name;
    return i;
  }
  void Place(std::initializer_list<std::string_view> names, int32_t device) {
    for (std::string_view name : names) placement_.device_of[Find(name)] = device;
  }
  JitMark& Mark(std::string_view name) { return marks_[Find(name)]; }
  void Forbid(std::string_view name, std::string why) {
    const Instruction* found = ir::FindInstruction(*module_, name);
    ASSERT_NE(found, nullptr) << name;
    forbidden_[found] = std::move(why);
  }
  void Control(std::string_view before, std::string_view after) {
    control_edges_.push_back({Find(before), Find(after)});
  }

  ClusterInput Input() {
    placement_.devices = devices;
    return {.entry = *module_->entry(),
            .placement = placement_,
            .options = options,
            .mark = [this](const Instruction& i) { return marks_[&i]; },
            .why_not_compilable = [this](const Instruction& i) -> std::optional<std::string> {
              auto it = forbidden_.find(&i);
              if (it == forbidden_.end()) return std::nullopt;
              return it->second;
            },
            .control_edges = control_edges_};
  }
  // "cluster_0: x y; cluster_1: z", or the error.
  std::string Clusters() {
    Result<Clustering> clustering = FindClusters(Input());
    if (!clustering.ok()) return clustering.status().ToString();
    std::string text;
    for (const Cluster& cluster : clustering->clusters()) {
      text += Cat(text.empty() ? "" : "; ", cluster.name, ":");
      for (const Instruction* i : cluster.instructions) text += Cat(" ", i->name());
    }
    return text;
  }
  std::string Explain(std::string_view name) {
    ClusterInput input = Input();
    Result<Clustering> clustering = FindClusters(input);
    if (!clustering.ok()) return clustering.status().ToString();
    return ExplainClustering(input, *clustering, *Find(name));
  }

  std::vector<PlacedDevice> devices = {{"GPU:0", false, true}};
  ClusterOptions options;

 private:
  std::unique_ptr<ir::Module> module_;
  Placement placement_;
  std::map<const Instruction*, JitMark> marks_;
  std::map<const Instruction*, std::string> forbidden_;
  std::vector<ControlEdge> control_edges_;
};

constexpr char kChain[] = R"(
  x = f32[] add(a, b)
  y = f32[] multiply(x, b)
  z = f32[] tanh(y)
  ROOT w = f32[] negate(z)
)";

TEST(Clustering, LevelsAndDevicesDecideOnCandidates) {
  Graph g(kChain);
  EXPECT_EQ(g.Clusters(), "cluster_0: x y z w");
  EXPECT_EQ(g.Explain("x"), "in cluster_0 on GPU:0");
  EXPECT_EQ(g.Explain("a"), "outside clusters: it is an input");
  g.options.level = JitLevel::kExplicit;
  EXPECT_EQ(g.Clusters(), "");
  EXPECT_EQ(g.Explain("x"),
            "outside clusters: not marked to compile, and the JIT compiles marked ops only");
  g.Mark("y").compile = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: y");
  g.options.level = JitLevel::kOff;
  EXPECT_EQ(g.Clusters(), "");
  EXPECT_EQ(g.Explain("y"), "outside clusters: the JIT is off");

  g.devices = {{"CPU:0"}};
  g.options.level = JitLevel::kOn;
  EXPECT_EQ(g.Clusters(), "cluster_0: y");
  EXPECT_EQ(g.Explain("x"), "outside clusters: its device CPU:0 is not compiled by default");
  g.options.cpu_global_jit = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: x y z w");
  g.Mark("y").compile = false;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: z w");
  EXPECT_EQ(g.Explain("y"), "outside clusters: marked not to compile");

  // A device that always compiles.
  g.devices = {{"XLA_CPU:0", true}};
  g.options.level = JitLevel::kOff;
  g.options.min_cluster_size = 4;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: z w");
  EXPECT_EQ(g.Explain("w"), "in cluster_1 on XLA_CPU:0, which must be compiled");
}

TEST(Clustering, SizesCountWorkOnly) {
  Graph g(R"(
  c = f32[] constant(3)
  k = f32[] copy(a)
  x = f32[] add(k, c)
  y = f32[] multiply(x, b)
  ROOT z = f32[] tanh(y)
)");
  g.options.min_cluster_size = 4;
  EXPECT_EQ(g.Clusters(), "");
  EXPECT_EQ(g.Explain("k"), "outside clusters: smaller than 4: 3 ops");
  EXPECT_EQ(g.Explain("c"),
            "outside clusters: it is a small constant, copied into each cluster that reads it");
  g.options.min_cluster_size = 3;
  EXPECT_EQ(g.Clusters(), "cluster_0: c k x y z");
  // A mark is enough.
  g.options.min_cluster_size = 4;
  g.Mark("y").compile = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: c k x y z");
  g.options.max_cluster_size = 2;
  EXPECT_EQ(g.Clusters(), "cluster_0: y z");
  EXPECT_EQ(g.Explain("k"), "outside clusters: smaller than 4: 1 op; larger than 2 with cluster_0");
}

TEST(Clustering, ControlFlowIsLargeEnough) {
  constexpr char kLoop[] = R"(
cond { s = (f32[], f32[]) parameter(0)
  i = f32[] get-tuple-element(s), index=0
  n = f32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (f32[], f32[]) parameter(0)
  i = f32[] get-tuple-element(s), index=0
  u = f32[] rng(i, i), distribution=rng_uniform
  ROOT r = (f32[], f32[]) tuple(i, i) })";
  constexpr char kUse[] = R"(
  t = (f32[], f32[]) tuple(a, b)
  l = (f32[], f32[]) while(t), condition=cond, body=body
  x = f32[] get-tuple-element(l), index=0
  y = f32[] get-tuple-element(l), index=1
  ROOT z = f32[] add(x, y)
)";
  std::string plain = kLoop;
  plain.erase(plain.find("  u = "), plain.find("  ROOT r") - plain.find("  u = "));
  {
    Graph g(kUse, plain);
    g.options.min_cluster_size = 4;
    EXPECT_EQ(g.Clusters(), "cluster_0: t l x y z");
    // Elements follow the loop, whatever their marks and devices say.
    g.devices.push_back({"GPU:1", false, true});
    g.Place({"t", "x", "y"}, 1);
    g.Mark("y").compile = false;
    EXPECT_EQ(g.Clusters(), "cluster_0: t l x y z");
    g.Forbid("r", "it is too long");
    EXPECT_EQ(g.Clusters(), "");
    EXPECT_EQ(g.Explain("l"), "outside clusters: 'r' in the computation 'body': it is too long");
    EXPECT_EQ(g.Explain("x"),
              "outside clusters: tied by a tuple to 'l', which is outside: 'r' in the computation "
              "'body': it is too long");
  }
  // Random numbers from a state, in the body.
  Graph g(kUse, kLoop);
  EXPECT_EQ(g.Clusters(), "cluster_0: z");
  EXPECT_EQ(g.Explain("l"),
            "outside clusters: 'u' in the computation 'body': it draws random numbers from a "
            "state");
  g.devices = {{"XLA_GPU:0", true, true}};
  EXPECT_EQ(g.Clusters(), "cluster_0: t l x y z");
}

TEST(Clustering, ListsAndFuel) {
  Graph g(kChain);
  g.options.ops_to_cluster = {"add", "tanh"};
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: z");
  EXPECT_EQ(g.Explain("y"), "outside clusters: op not in the list of ops to cluster: multiply");
  g.options.ops_to_cluster = {"PW"};
  EXPECT_EQ(g.Clusters(), "cluster_0: x y z w");
  g.options.cluster_exclude_ops = {"add"};
  EXPECT_EQ(g.Clusters(), "cluster_0: y z w");
  EXPECT_EQ(g.Explain("x"), "outside clusters: op excluded from clusters: add");
  g.options.fuel = 2;
  EXPECT_EQ(g.Clusters(), "cluster_0: y z");
  EXPECT_EQ(g.Explain("w"), "outside clusters: no fuel left");
  g.options.fuel = 0;
  EXPECT_EQ(g.Clusters(), "");
  g.options.fuel = -1;
  g.options.name_prefix = "train";
  EXPECT_EQ(g.Clusters(), "train_0: y z w");
  g.options.ops_to_cluster = {"RED", "BN", "Conv", "SORT", "REDUCEWINDOW"};
  EXPECT_EQ(g.Clusters(), "");
  g.options.ops_to_cluster = {"FUSIBLE"};
  EXPECT_EQ(g.Clusters(), "train_0: y z w");
  g.options.ops_to_cluster = {"MatMul"};
  EXPECT_EQ(g.Clusters(),
            "INVALID_ARGUMENT: ops_to_cluster: there is no op and no group of ops 'MatMul'");
}

TEST(Clustering, NoCycles) {
  // x -> u -> z and x -> y -> z, where u stays outside.
  constexpr char kDiamond[] = R"(
  x = f32[] add(a, b)
  u = f32[] cosine(x)
  y = f32[] sine(x)
  ROOT z = f32[] multiply(u, y)
)";
  Graph g(kDiamond);
  EXPECT_EQ(g.Clusters(), "cluster_0: x u y z");
  g.Mark("u").compile = false;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y z");
  g.options.min_cluster_size = 2;
  EXPECT_EQ(g.Explain("x"),
            "outside clusters: smaller than 2: 1 op; would make a cycle with cluster_0");

  // The same through a control dependency.
  Graph h(R"(
  x = f32[] add(a, b)
  u = f32[] cosine(a)
  ROOT z = f32[] multiply(x, b)
)");
  h.Mark("u").compile = false;
  EXPECT_EQ(h.Clusters(), "cluster_0: x z");
  h.Control("x", "u");
  EXPECT_EQ(h.Clusters(), "cluster_0: x z");
  h.Control("u", "z");
  EXPECT_EQ(h.Clusters(), "cluster_0: x; cluster_1: z");
  h.Control("z", "x");
  EXPECT_EQ(h.Clusters(), "INVALID_ARGUMENT: the control edge from 'z' to 'x' closes a cycle");
}

TEST(Clustering, SideEffectsKeepTheirOrder) {
  constexpr char kEffects[] = R"(
  x = f32[] custom-call(a), custom_call_target="f", custom_call_has_side_effect=true
  u = f32[] custom-call(b), custom_call_target="g", custom_call_has_side_effect=true
  y = f32[] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true
  ROOT z = f32[] negate(y)
)";
  Graph g(kEffects);
  EXPECT_EQ(g.Clusters(), "cluster_0: x u y z");
  g.Forbid("u", "it is the host's");
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y z");
  EXPECT_EQ(g.Explain("u"), "outside clusters: it is the host's");
  g.Control("y", "u");
  EXPECT_EQ(g.Clusters(),
            "INVALID_ARGUMENT: control edges reverse the order of the side effects of 'u' and "
            "'y'");
}

TEST(Clustering, ScopesSeparateMarkedOps) {
  Graph g(kChain);
  g.options.level = JitLevel::kExplicit;
  for (std::string_view name : {"x", "y", "z", "w"}) g.Mark(name).compile = true;
  g.Mark("x").scope = g.Mark("y").scope = "jit_scope_0";
  g.Mark("w").scope = "jit_scope_1";
  // z is a bridge, but not between two scopes.
  EXPECT_EQ(g.Clusters(), "cluster_0: x y; cluster_1: z w");
  g.options.level = JitLevel::kOn;
  EXPECT_EQ(g.Clusters(), "cluster_0: x y z w");
}

TEST(Clustering, OneDeviceAClusterAndNoWaitForAnother) {
  Graph g(kChain);
  g.devices.push_back({"GPU:1", false, true});
  g.Place({"z", "w"}, 1);
  EXPECT_EQ(g.Clusters(), "cluster_0: x y; cluster_1: z w");
  g.options.min_cluster_size = 3;
  EXPECT_EQ(g.Explain("y"),
            "outside clusters: smaller than 3: 2 ops; on another device than the ops at 'z'");

  // x on GPU:0 would have to wait for o on GPU:1, of which z alone has need.
  Graph h(R"(
  x = f32[] add(a, b)
  y = f32[] multiply(x, b)
  o = f32[] sine(a)
  ROOT z = f32[] add(y, o)
)");
  h.devices.push_back({"GPU:1", false, true});
  EXPECT_EQ(h.Clusters(), "cluster_0: x y o z");
  h.Place({"o"}, 1);
  EXPECT_EQ(h.Clusters(), "cluster_0: x y; cluster_1: o; cluster_2: z");
  h.options.min_cluster_size = 2;
  EXPECT_EQ(h.Explain("z"),
            "outside clusters: smaller than 2: 1 op; with cluster_0 it would wait for another "
            "device");
  // An op of another device that is no candidate does not count.
  h.Mark("o").compile = false;
  EXPECT_EQ(h.Clusters(), "cluster_0: x y z");
}

TEST(Clustering, GpuClustersTakeCpuOpsOnRequest) {
  Graph g(kChain);
  g.devices = {{"CPU:0"}, {"GPU:0", false, true}};
  g.options.cpu_global_jit = true;
  g.Place({"y", "w"}, 1);
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y; cluster_2: z; cluster_3: w");
  g.options.gpu_clusters_take_cpu_ops = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: x y z w");
  EXPECT_EQ(g.Explain("x"), "in cluster_0 on GPU:0");
}

// Of ops of XLA devices, only marked ones are compiled together.
TEST(Clustering, OpsMayBeCompiledOnDemand) {
  Graph g(kChain);
  g.devices = {{"XLA_CPU:0", true, false}, {"GPU:0", false, true}};
  g.options.compile_on_demand = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y; cluster_2: z; cluster_3: w");
  EXPECT_EQ(g.Explain("y"), "in cluster_1 on XLA_CPU:0, which must be compiled");
  g.Mark("y").compile = g.Mark("z").compile = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y z; cluster_2: w");
  g.options.level = JitLevel::kOff;
  g.options.min_cluster_size = 4;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y z; cluster_2: w");
  // Other devices cluster as ever.
  g.options.level = JitLevel::kOn;
  g.options.min_cluster_size = 2;
  g.Place({"z", "w"}, 1);
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y; cluster_2: z w");
}

TEST(Clustering, ShapesAreReadWhereTheyAreMade) {
  // s and y may be in one cluster, or s and z; u is between y and z.
  constexpr char kShapes[] = R"(
  x = f32[] add(a, b)
  y = f32[8] broadcast(x), dimensions={}
  s = s32[] get-dimension-size(y), dimensions={0}
  u = f32[8] sine(y)
  c = s32[8] convert(u)
  d = s32[8] broadcast(s), dimensions={}
  ROOT z = s32[8] add(d, c)
)";
  Graph g(kShapes);
  g.Mark("u").compile = false;
  EXPECT_EQ(g.Clusters(), "cluster_0: x y s; cluster_1: c d z");
}

TEST(Clustering, MustCompileIsAClusterOfItsOwn) {
  constexpr char kFunction[] = R"(
f { p = f32[] parameter(0)
  q = f32[] sine(p)
  ROOT r = (f32[], f32[]) tuple(p, q) })";
  constexpr char kUse[] = R"(
  x = f32[] add(a, b)
  c = (f32[], f32[]) call(x), to_apply=f
  y = f32[] get-tuple-element(c), index=1
  ROOT z = f32[] negate(y)
)";
  Graph g(kUse, kFunction);
  EXPECT_EQ(g.Clusters(), "cluster_0: x c y z");
  g.Mark("c").must_compile = true;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: c y; cluster_2: z");
  g.options.level = JitLevel::kOff;
  EXPECT_EQ(g.Clusters(), "cluster_0: c y");
  EXPECT_EQ(g.Explain("c"), "in cluster_0 on GPU:0, which must be compiled");
  g.Forbid("q", "its shape is known at run time only");
  EXPECT_EQ(g.Clusters(), "cluster_0: c y");
  Result<Clustering> clustering = FindClusters(g.Input());
  ASSERT_TRUE(clustering.ok());
  EXPECT_EQ(clustering->clusters()[0].refusal,
            "'c' (call): 'q' in the computation 'f': its shape is known at run time only");
}

TEST(Clustering, TuplesAreNotCut) {
  // The pair of s leaves through m, which has need of u, which has need of s.
  constexpr char kPair[] = R"(
  x = f32[8] broadcast(a), dimensions={}
  s = (f32[8], f32[8]) custom-call(x), custom_call_target="f"
  v = f32[8] get-tuple-element(s), index=0
  u = f32[8] sine(v)
  m = f32[8] custom-call(s, u), custom_call_target="g"
  ROOT z = f32[8] negate(m)
)";
  Graph g(kPair);
  EXPECT_EQ(g.Clusters(), "cluster_0: x s v u m z");
  g.Forbid("u", "it is the host's");
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: z");
  EXPECT_EQ(g.Explain("s"),
            "outside clusters: tied by a tuple to 'u', which is outside: it is the host's");
  Result<Clustering> clustering = FindClusters(g.Input());
  ASSERT_TRUE(clustering.ok());
  for (std::string_view name : {"v", "u", "m"}) {
    EXPECT_EQ(clustering->TieOf(g.Find(name)), clustering->TieOf(g.Find("s"))) << name;
  }
  EXPECT_NE(clustering->TieOf(g.Find("z")), clustering->TieOf(g.Find("s")));

  Graph h(kPair);
  h.devices.push_back({"GPU:1", false, true});
  h.Place({"m"}, 1);
  EXPECT_EQ(h.Clusters(), "cluster_0: x; cluster_1: z");
  EXPECT_EQ(h.Explain("s"), "outside clusters: tied by a tuple to an op on another device");
}

TEST(Clustering, ResultsAndTupleInputs) {
  Graph g(R"(
  p = (f32[], f32[]) parameter(2)
  e = f32[] get-tuple-element(p), index=0
  x = f32[] add(e, b)
  y = f32[] negate(x)
  ROOT r = (f32[], f32[]) tuple(x, y)
)");
  EXPECT_EQ(g.Clusters(), "cluster_0: x y");
  EXPECT_EQ(g.Explain("e"), "outside clusters: it uses the tuple 'p', an input");
  EXPECT_EQ(g.Explain("r"), "outside clusters: it is the tuple of the graph's results");
}

TEST(Clustering, SmallConstantsConnectNothing) {
  Graph g(R"(
  c = f32[] constant(2)
  x = f32[] add(a, c)
  u = f32[] sine(x)
  y = f32[] multiply(u, c)
  d = f32[] constant(3)
  ROOT z = f32[] add(y, d)
)");
  g.Mark("u").compile = false;
  EXPECT_EQ(g.Clusters(), "cluster_0: x; cluster_1: y d z");
  // With a control dependency they are ops as all others.
  g.Control("u", "c");
  EXPECT_EQ(g.Clusters(), "INVALID_ARGUMENT: the control edge from 'u' to 'c' closes a cycle");
}

TEST(Clustering, ErrorsNameTheInstruction) {
  Graph g(kChain);
  g.Place({"y"}, 5);
  EXPECT_EQ(g.Clusters(), "INVALID_ARGUMENT: 'y' is not on any device");
  Graph h(kChain), other(kChain);
  ClusterInput input = h.Input();
  input.control_edges.push_back({other.Find("x"), h.Find("y")});
  Result<Clustering> clustering = FindClusters(input);
  EXPECT_EQ(clustering.status().ToString(),
            "INVALID_ARGUMENT: a control edge leads out of the computation 'e' to 'x'");
}

}  // namespace
}  // namespace kiln::session
