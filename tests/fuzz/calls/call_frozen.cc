// Calls of executable.h: frozen arguments.
#include <string>
#include <vector>

#include "calls/callers.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

kiln_executable* HandleOf(const std::shared_ptr<ExecutableState>& executable) {
  return executable ? executable->handle : nullptr;
}

}  // namespace

void Call_kiln_executable_argument_is_frozen(World& w) {
  auto executable = w.PickOrNull(w.executables);
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 3) : w.WildNumber());
  w.Begin("kiln_executable_argument_is_frozen", World::Name("executable", executable), ", ", index);
  const int32_t frozen = kiln_executable_argument_is_frozen(HandleOf(executable), index);
  const bool is_there = index < kiln_executable_argument_count(HandleOf(executable));
  w.Expect(frozen == 0 || (frozen == 1 && is_there), "a strange answer");
  if (is_there) w.Succeeded();
}

void Call_kiln_executable_find_argument(World& w) {
  auto executable = w.PickOrNull(w.executables);
  const size_t count = kiln_executable_argument_count(HandleOf(executable));
  size_t length = 0, found = 77777;
  const char* known =
      count > 0 ? kiln_executable_argument_name(HandleOf(executable), w.Below(count), &length)
                : nullptr;
  const std::string name = known && w.Chance(80) ? std::string(known, length) : w.WildText();
  w.Begin("kiln_executable_find_argument", World::Name("executable", executable), ", ", name);
  const bool ok = w.Ok(kiln_executable_find_argument(HandleOf(executable), name.data(), name.size(),
                                                     w.Chance(2) ? nullptr : &found));
  w.Expect(ok ? found < count : found == 77777, "a strange number");
}

// Some or all of the frozen arguments, and now and then others.
void Call_kiln_executable_bind(World& w) {
  auto executable = w.PickOrNull(w.executables);
  std::vector<size_t> numbers;
  std::vector<kiln_buffer*> buffers;
  std::string text;
  const size_t percent = w.Chance(60) ? 100 : 50;
  for (size_t i = 0; i < kiln_executable_argument_count(HandleOf(executable)); ++i) {
    const bool is_frozen = kiln_executable_argument_is_frozen(HandleOf(executable), i) != 0;
    if (executable->is_large || !w.Chance(is_frozen ? percent : 2)) continue;
    kiln_shape shape = KILN_SHAPE_INIT;
    if (!w.Ok(kiln_executable_argument_shape(HandleOf(executable), i, &shape))) return;
    const std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
    auto buffer = w.Chance(97)
                      ? w.Buffer(executable->context, executable->device, shape.dtype, dims)
                      : w.PickOrNull(w.buffers);
    numbers.push_back(i);
    buffers.push_back(buffer ? buffer->handle : nullptr);
    text += Cat(", ", i, " ", World::Name("buffer", buffer));
  }
  if (w.Chance(2)) {
    numbers.push_back(static_cast<size_t>(w.WildNumber()));
    buffers.push_back(nullptr);
  }
  w.Begin("kiln_executable_bind", World::Name("executable", executable), text);
  (void)w.Ok(
      kiln_executable_bind(HandleOf(executable), numbers.data(), buffers.data(), numbers.size()));
}

}  // namespace kiln::fuzz
