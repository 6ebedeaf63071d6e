// Calls of safetensors.h: files that are written, spoilt, and opened.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/utf8.h"
#include "calls/callers.h"
#include "calls/world.h"
#include "tensor/safetensors_header.h"

namespace kiln::fuzz {
namespace {

kiln_safetensors* HandleOf(const std::shared_ptr<FileState>& file) {
  return file ? file->handle : nullptr;
}

size_t CountOf(const std::shared_ptr<FileState>& file) {
  return file ? kiln_safetensors_count(file->handle) : 0;
}

// A name of the file, or any.
std::string AnyName(World& w, const std::shared_ptr<FileState>& file) {
  const size_t count = CountOf(file);
  if (count == 0 || w.Chance(10)) return w.WildText();
  size_t length = 0;
  const char* name = kiln_safetensors_name(file->handle, w.Below(count), &length);
  return std::string(name, length);
}

// One of a few files, or a place where there can be none.
std::string AnyPath(World& w) {
  if (w.Chance(4)) return Cat(w.Folder(), "/", w.WildText());
  if (w.Chance(4)) return w.Folder();
  return Cat(w.Folder(), "/arrays", w.Below(4));
}

// Changes a byte of a copy, or cuts it off: a file that is open must not change.
std::string Spoilt(World& w, const std::string& path) {
  std::optional<std::string> read = ReadFile(path);
  if (!read || read->empty()) return path;
  std::string bytes = *std::move(read);
  if (w.Chance(50)) bytes[w.Below(bytes.size())] = static_cast<char>(w.Below(256));
  if (w.Chance(20)) bytes.resize(w.Below(bytes.size()));
  const std::string spoilt = Cat(w.Folder(), "/spoilt", w.Seed());
  std::ofstream(spoilt, std::ios::binary) << bytes;
  return spoilt;
}

// A buffer, mostly one that a file can have.
std::shared_ptr<BufferState> AnyBuffer(World& w) {
  for (int i = 0; i < 20; ++i) {
    auto buffer = w.PickOrNull(w.buffers);
    if (!buffer) return buffer;
    const auto type = static_cast<ElementType>(buffer->dtype);
    if ((safetensors::FindDtype(type) && !buffer->is_donated) || w.Chance(3)) return buffer;
  }
  return nullptr;
}

// A text of a file, if `is_there`.
void ExpectText(World& w, const char* text, size_t length, bool is_there) {
  w.Expect(!!text == is_there, "a text is there, or it is not");
  if (text) {
    w.Expect(text[length] == 0, "no 0 behind a text");
    w.Expect(IsUtf8({text, length}), "a text that is not UTF-8");
  }
  w.Succeeded();
}

size_t AnyIndex(World& w, size_t count) {
  return w.Chance(90) ? w.Below(count + w.Below(2)) : static_cast<size_t>(w.WildNumber());
}

void Write(World& w, const std::string& path) {
  std::vector<kiln_named_buffer> arrays(w.Chance(10) ? 0 : 1 + w.Below(4));
  std::vector<std::string> texts(arrays.size() + 4);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto buffer = AnyBuffer(w);
    texts[i] = w.Chance(90) ? Cat("name", i) : w.WildText();
    arrays[i] = {texts[i].data(), texts[i].size(), buffer ? buffer->handle : nullptr};
  }
  std::vector<kiln_text_pair> pairs(w.Chance(30) ? 1 + w.Below(2) : 0);
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::string& key = texts[arrays.size() + 2 * i];
    std::string& value = texts[arrays.size() + 2 * i + 1];
    key = w.Chance(80) ? Cat("key", i) : w.WildText();
    value = w.Chance(80) ? "value" : w.WildText();
    pairs[i] = {key.data(), key.size(), value.data(), value.size()};
  }
  kiln_safetensors_options options = KILN_SAFETENSORS_OPTIONS_INIT;
  options.metadata = pairs.data();
  options.metadata_count = pairs.size();
  const SizedCopy sized(w, options);
  w.Begin("kiln_safetensors_save", path.size(), ", ", arrays.size(), " arrays, ", pairs.size(),
          " texts, ", sized.ToString());
  (void)w.Ok(kiln_safetensors_save(w.Chance(2) ? nullptr : path.data(), path.size(),
                                   w.Chance(2) ? nullptr : arrays.data(), arrays.size(),
                                   w.Chance(20) ? nullptr : sized.As<kiln_safetensors_options>()));
}

void Open(World& w, const std::string& path) {
  w.Begin("kiln_safetensors_open", path.size());
  kiln_safetensors* file = World::Untouched<kiln_safetensors>();
  const bool ok =
      w.Gave(kiln_safetensors_open(w.Chance(2) ? nullptr : path.data(), path.size(), &file), file);
  if (ok) w.Add(w.files, file);
}

// A file, mostly one with arrays.
std::shared_ptr<FileState> AnyFile(World& w) {
  auto file = w.PickOrNull(w.files);
  if (CountOf(file) > 0 || w.Chance(20)) return file;
  const std::string path = Cat(w.Folder(), "/arrays", w.Below(4));
  Write(w, path);
  Open(w, path);
  return w.files.empty() ? nullptr : w.files.back();
}

}  // namespace

void Call_kiln_safetensors_save(World& w) { Write(w, AnyPath(w)); }

void Call_kiln_safetensors_open(World& w) {
  const std::string path = AnyPath(w);
  const std::string spoilt = w.Chance(30) ? Spoilt(w, path) : path;
  Open(w, spoilt);
  if (spoilt != path) std::remove(spoilt.c_str());
}

void Call_kiln_safetensors_count(World& w) {
  auto file = AnyFile(w);
  w.Begin("kiln_safetensors_count", World::Name("file", file));
  w.Expect(kiln_safetensors_count(HandleOf(file)) < 8, "more arrays than were written");
  w.Succeeded();
}

void Call_kiln_safetensors_name(World& w) {
  auto file = AnyFile(w);
  const size_t index = AnyIndex(w, CountOf(file));
  w.Begin("kiln_safetensors_name", World::Name("file", file), ", ", index);
  size_t length = 0;
  const char* name = kiln_safetensors_name(HandleOf(file), index, &length);
  ExpectText(w, name, length, index < CountOf(file));
}

void Call_kiln_safetensors_dtype(World& w) {
  auto file = AnyFile(w);
  const size_t index = AnyIndex(w, CountOf(file));
  w.Begin("kiln_safetensors_dtype", World::Name("file", file), ", ", index);
  size_t length = 0;
  const char* dtype = kiln_safetensors_dtype(HandleOf(file), index, &length);
  ExpectText(w, dtype, length, index < CountOf(file));
}

void Call_kiln_safetensors_find(World& w) {
  auto file = AnyFile(w);
  const std::string name = AnyName(w, file);
  w.Begin("kiln_safetensors_find", World::Name("file", file), ", ", name.size());
  size_t index = SIZE_MAX;
  const bool ok = w.Ok(kiln_safetensors_find(HandleOf(file), w.Chance(2) ? nullptr : name.data(),
                                             name.size(), w.Chance(2) ? nullptr : &index));
  w.Expect(ok == (index != SIZE_MAX), "failure, and an output is touched");
  w.Expect(!ok || index < CountOf(file), "an array that is not there");
}

void Call_kiln_safetensors_shape(World& w) {
  auto file = AnyFile(w);
  const size_t index = AnyIndex(w, CountOf(file));
  kiln_shape shape = KILN_SHAPE_INIT;
  const SizedCopy sized(w, shape);
  w.Begin("kiln_safetensors_shape", World::Name("file", file), ", ", index, ", ", sized.ToString());
  const bool ok = w.Ok(kiln_safetensors_shape(HandleOf(file), index,
                                              w.Chance(2) ? nullptr : sized.As<kiln_shape>()));
  w.Expect(!ok || index < CountOf(file), "an array that is not there");
}

void Call_kiln_safetensors_metadata_count(World& w) {
  auto file = AnyFile(w);
  w.Begin("kiln_safetensors_metadata_count", World::Name("file", file));
  w.Expect(kiln_safetensors_metadata_count(HandleOf(file)) < 8, "more texts than were written");
  w.Succeeded();
}

void Call_kiln_safetensors_metadata_key(World& w) {
  auto file = AnyFile(w);
  const size_t count = kiln_safetensors_metadata_count(HandleOf(file));
  const size_t index = AnyIndex(w, count);
  w.Begin("kiln_safetensors_metadata_key", World::Name("file", file), ", ", index);
  size_t length = 0;
  const char* key = kiln_safetensors_metadata_key(HandleOf(file), index, &length);
  ExpectText(w, key, length, index < count);
  if (!key) return;
  const char* value = kiln_safetensors_metadata(HandleOf(file), key, length, &length);
  ExpectText(w, value, length, true);
}

void Call_kiln_safetensors_metadata(World& w) {
  auto file = AnyFile(w);
  const std::string key = w.Chance(70) ? "key0" : w.WildText();
  const bool is_null = w.Chance(3);
  w.Begin("kiln_safetensors_metadata", World::Name("file", file), ", ", key.size());
  size_t length = 0;
  const char* value = kiln_safetensors_metadata(HandleOf(file), is_null ? nullptr : key.data(),
                                                key.size(), &length);
  ExpectText(w, value, length, value != nullptr);
}

void Call_kiln_safetensors_buffer(World& w) {
  auto file = AnyFile(w);
  auto context = w.Context();
  const size_t device = w.Device(*context);
  const std::string name = AnyName(w, file);
  w.Begin("kiln_safetensors_buffer", World::Name("file", file), ", ", name.size(), ", ",
          context->names[device]);
  kiln_buffer* buffer = World::Untouched<kiln_buffer>();
  const bool ok = w.Gave(
      kiln_safetensors_buffer(HandleOf(file), w.Chance(2) ? nullptr : name.data(), name.size(),
                              w.Chance(2) ? nullptr : context->devices[device], &buffer),
      buffer);
  if (ok) w.Keep(buffer, context, device);
}

}  // namespace kiln::fuzz
