#include "client/device_name.h"

#include <algorithm>

#include "base/characters.h"
#include "base/strings.h"

namespace kiln::client {
namespace {

// Whether the text is this prefix, in any case, and what is behind it.
bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    if (ToUpper(text[i]) != prefix[i]) return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

// Digits alone that fit.
bool TakeNumber(std::string_view text, int64_t& number) {
  if (text.empty() || !std::ranges::all_of(text, IsDigit)) return false;
  const std::optional<int64_t> value = ParseInt(text);
  if (value) number = *value;
  return value.has_value();
}

// "GPU:1" or "GPU".
bool TakeDevice(std::string_view text, DeviceName& device) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const bool is_word = !kind.empty() && IsLetter(kind[0]) &&
                       std::ranges::all_of(kind, [](char c) { return IsLetter(c) || IsDigit(c); });
  if (!is_word || !device.kind.empty()) return false;
  if (colon != std::string_view::npos && !TakeNumber(text.substr(colon + 1), device.number)) {
    return false;
  }
  device.kind = ToUpper(kind);
  return true;
}

// A part of TensorFlow's form. There is one process, its own job.
bool TakePart(std::string_view part, DeviceName& device) {
  std::string_view rest = part;
  bool is_here = false;
  int64_t number = 0;
  if (TakePrefix(rest, "DEVICE:")) return TakeDevice(rest, device);
  if (TakePrefix(rest, "JOB:")) {
    if (rest.empty()) return false;
    is_here = TakePrefix(rest, "LOCALHOST") && rest.empty();
  } else if (TakePrefix(rest, "REPLICA:") || TakePrefix(rest, "TASK:")) {
    if (!TakeNumber(rest, number)) return false;
    is_here = number == 0;
  } else {
    return (TakePrefix(rest, "CPU:") || TakePrefix(rest, "GPU:")) && TakeDevice(part, device);
  }
  if (!is_here && device.elsewhere.empty()) device.elsewhere = part;
  return true;
}

}  // namespace

std::string DeviceName::ToString() const { return Cat(kind, ":", number); }

Result<DeviceName> ParseDeviceName(std::string_view name) {
  DeviceName device;
  bool is_name = true;
  if (name.starts_with("/")) {
    for (std::string_view part : Split(name.substr(1), '/')) is_name &= TakePart(part, device);
    is_name &= !device.kind.empty();
  } else {
    is_name = TakeDevice(name, device);
  }
  if (is_name) return device;
  return InvalidArgument("'", name, "' names no device; expected a kind and a number, such as ",
                         "GPU:0 or /job:localhost/replica:0/task:0/device:GPU:0");
}

}  // namespace kiln::client
