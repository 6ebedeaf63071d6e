// A machine with other work: a process that is always busy runs beside the program.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "c_abi.h"
#include "harness.h"
#include "kiln/kiln.h"
#include "machine.h"

namespace kiln::bench {
namespace {

// A process that counts, until the end of the scope.
class BusyProcess {
 public:
  BusyProcess() : process_(fork()) {
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile int64_t i = 0;; i = i + 1) {
    }
  }
  ~BusyProcess() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

 private:
  const pid_t process_;
};

// A perceptron of several layers: kernels of 50 to 100 us, each of which is worth two threads.
struct Layers {
  explicit Layers(int32_t threads) {
    kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    Must(kiln_context_create(&options, &context));
    kiln_device* cpu = kiln_context_device(context, 0);
    kiln_graph* graph = nullptr;
    Must(kiln_graph_create(context, "layers", 6, &graph));
    const int64_t dims[] = {kSize, kSize};
    const kiln_value x = kiln_op_parameter(graph, KILN_F32, dims, 2, "x", 1);
    kiln_value y = x;
    for (int i = 0; i < 20; ++i) y = kiln_op_tanh(graph, kiln_op_matmul(graph, y, x));
    Must(kiln_graph_set_results(graph, &y, 1));
    Must(kiln_graph_compile(graph, nullptr, &executable));
    kiln_graph_release(graph);
    const std::vector<float> numbers(kSize * kSize, 1.0F / kSize);
    Must(kiln_buffer_copy_host(cpu, KILN_F32, dims, 2, numbers.data(),
                               numbers.size() * sizeof(float), &argument));
    Must(kiln_buffer_create(cpu, KILN_F32, dims, 2, &result));
  }
  ~Layers() {
    kiln_buffer_release(result);
    kiln_buffer_release(argument);
    kiln_executable_release(executable);
    kiln_context_release(context);
  }
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  void Run() { Must(kiln_executable_run(executable, nullptr, &argument, 1, &result, 1)); }

  static constexpr int64_t kSize = 192;
  kiln_context* context = nullptr;
  kiln_executable* executable = nullptr;
  kiln_buffer *argument = nullptr, *result = nullptr;
};

KILN_BENCH(busy_machine) {
  const int cpus = Cpus();
  if (cpus < 2) return report.Note("busy_machine", "one processor");
  Layers one(1), all(cpus);
  const std::function<void()> calls[] = {[&] { one.Run(); }, [&] { all.Run(); }};
  auto measure = [&](const std::string& name, Bound bound) {
    const std::vector<double> seconds = MediansInTurn(calls, 301);
    report.Add(name + ".threads1", seconds[0] * 1e6, "us");
    report.Add(name + ".threads" + std::to_string(cpus), seconds[1] * 1e6, "us");
    report.Add(name + ".of_one_thread", seconds[1] / seconds[0], "", bound);
  };
  measure("busy_machine.alone", {});
  const BusyProcess busy;
  // One processor is left where there are two: more threads must not cost.
  measure("busy_machine.beside_a_process", AtMost(1.05));
}

}  // namespace
}  // namespace kiln::bench
