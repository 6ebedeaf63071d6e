#include "device/gpu/library_gemm.h"

#include <optional>
#include <string>

#include "base/strings.h"
#include "device/gpu/autotune_results.h"
#include "device/gpu/autotuner.h"

namespace kiln::device {
namespace {

// Measurements have errors, and a call of the library splits a graph into two, each with its own
// launch.
constexpr double kWorth = 0.95, kPartingMicroseconds = 5;

std::string TimesOf(const AutotuneResult& choice) {
  auto whole = [](double microseconds) { return static_cast<int64_t>(microseconds + 0.5); };
  return Cat(whole(choice.library_microseconds), " us, our kernel ", whole(choice.our_microseconds),
             " us");
}

// The recorded choice, or else a new measurement. Nothing if that fails.
std::optional<AutotuneResult> Autotune(GpuDevice& device, AutotuneResults& results,
                                       const std::string& library, const GpuLibraryCall& call,
                                       std::span<const GpuCommand> ours) {
  GpuMachine& machine = device.machine();
  const std::string what = call.what.ToString();
  const std::string key =
      AutotuneResults::KeyOf(machine.description(), machine.driver(), library, what);
  if (auto recorded = results.Find(key)) return recorded;
  Result<GemmTimes> times = MeasureGemm(device, call, ours);
  if (!times.ok()) {
    device.Note(Cat("the gemm ", what, " is not measured: ", times.status().message()));
    return std::nullopt;
  }
  AutotuneResult choice;
  choice.our_microseconds = times->ours;
  choice.library_microseconds = times->library;
  choice.library = times->library + kPartingMicroseconds < kWorth * times->ours;
  return results.Add(key, choice);
}

}  // namespace

std::unique_ptr<GpuLibraryCall> ChooseLibrary(GpuDevice& device, const program::Kernel& kernel,
                                              std::span<const GpuCommand> ours) {
  AutotuneResults* results = device.autotune_results();
  if (!results || results->use() == GpuLibraryUse::kNever) return nullptr;
  const std::optional<program::LibraryGemm>& what = kernel.library;
  if (!what) return nullptr;
  Result<std::string> library = device.machine().GemmLibrary();
  if (!library.ok()) {
    device.NoteNoLibrary(library.status().message());
    return nullptr;
  }
  auto gemm = device.machine().FindLibraryGemm(*what);
  if (!gemm.ok()) {
    device.Note(
        Cat("the gemm ", *what, " does not go by ", *library, ": ", gemm.status().message()));
    return nullptr;
  }
  if (!*gemm) return nullptr;
  auto call = std::make_unique<GpuLibraryCall>(GpuLibraryCall{*what, *std::move(gemm)});
  std::string why = "as every one that it takes";
  bool taken = true;
  if (results->use() == GpuLibraryUse::kAuto) {
    auto choice = Autotune(device, *results, *library, *call, ours);
    taken = choice && choice->library;
    if (choice) why = TimesOf(*choice);
  }
  for (const std::string& note : results->TakeNotes()) device.Note(note);
  if (!taken) return nullptr;
  device.Note(Cat("the gemm ", *what, " goes by ", *library, ": ", why));
  return call;
}

}  // namespace kiln::device
