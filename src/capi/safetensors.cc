// Files of named arrays.
#include "kiln/safetensors.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "client/transfer.h"
#include "tensor/safetensors.h"

struct kiln_safetensors : kiln::Counted<kiln_safetensors> {
  explicit kiln_safetensors(kiln::Ref<kiln::safetensors::File> f) : file(std::move(f)) {}
  const kiln::safetensors::Header& header() const { return file->header(); }

  const kiln::Ref<kiln::safetensors::File> file;
};

using kiln::InvalidArgument;
using kiln::NotFound;
using kiln::OkStatus;
using kiln::OutOfRange;
using kiln::Ref;
using kiln::Result;
using kiln::Shape;
using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::HandOver;
using kiln::capi::NotNull;
using kiln::capi::TextOf;
using kiln::capi::Unwrap;
using kiln::client::Buffer;
using kiln::client::Device;
using kiln::safetensors::Entry;
using kiln::safetensors::File;
using kiln::safetensors::NewArray;
using TextPair = std::pair<std::string_view, std::string_view>;

namespace {

// Keeps a file for a buffer in its memory.
class KeptFile : public kiln::client::Deferred {
 public:
  explicit KeptFile(Ref<File> file) : file_(std::move(file)) {}
  void Call() noexcept override { file_ = {}; }

 private:
  Ref<File> file_;
};

const char* TextAt(const std::string* text, size_t* length) {
  if (length) *length = text ? text->size() : 0;
  return text ? text->c_str() : nullptr;
}

Result<const Entry*> FindEntry(const kiln_safetensors& file, const char* name, size_t name_length) {
  KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("name", name, name_length));
  if (const Entry* entry = file.header().Find(text)) return entry;
  return NotFound("the file has no array ", kiln::safetensors::Quoted(text));
}

Result<Ref<Buffer>> BufferOf(const Ref<File>& file, const Entry& entry, Device& device) {
  KILN_ASSIGN_OR_RETURN(Shape shape, entry.shape());
  const std::byte* data = file->data(entry).data();
  if (!kiln::safetensors::IsPlain(shape.type())) {
    const std::string elements =
        kiln::safetensors::Unpacked(shape.type(), file->data(entry), shape.num_elements());
    return CopyFromHost(device, shape, elements.data());
  }
  const auto element_bytes = static_cast<uintptr_t>(ByteWidth(shape.type()));
  if (!device.shares_host_memory() || reinterpret_cast<uintptr_t>(data) % element_bytes != 0) {
    return CopyFromHost(device, shape, data);
  }
  Ref<Buffer> made =
      Buffer::Wrap(device, shape, const_cast<std::byte*>(data), std::make_unique<KeptFile>(file));
  made->storage().set_read_only();
  return made;
}

// The buffer's elements on the host, copied to `copy` from other memory.
Result<const std::byte*> ElementsOf(Buffer& buffer, std::vector<std::byte>& copy) {
  KILN_RETURN_IF_ERROR(buffer.WaitForValue());
  if (buffer.device().runtime().has_host_memory()) return buffer.data();
  copy.resize(static_cast<size_t>(buffer.bytes()));
  KILN_RETURN_IF_ERROR(CopyToHost(buffer, copy.data()));
  return copy.data();
}

Result<std::vector<NewArray>> ReadArrays(const kiln_named_buffer* arrays, size_t array_count,
                                         std::vector<std::byte>& copy) {
  if (!arrays && array_count > 0) {
    return InvalidArgument("arrays is NULL, with a count of ", array_count);
  }
  std::vector<NewArray> read;
  for (size_t i = 0; i < array_count; ++i) {
    const std::string place = kiln::Cat("arrays[", i, "]");
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_safetensors_save", {{kiln::Cat(place, ".buffer"), arrays[i].buffer}}));
    KILN_ASSIGN_OR_RETURN(std::string_view name,
                          TextOf(kiln::Cat(place, ".name"), arrays[i].name, arrays[i].name_length));
    Buffer* buffer = Unwrap(arrays[i].buffer);
    if (!buffer->shape().is_array()) return InvalidArgument(place, ".buffer is a token");
    read.push_back({name, buffer->shape(), [buffer, &copy] { return ElementsOf(*buffer, copy); }});
  }
  return read;
}

Result<std::vector<TextPair>> ReadMetadata(const kiln_safetensors_options* options) {
  KILN_ASSIGN_OR_RETURN(kiln_safetensors_options read,
                        kiln::capi::ReadOptions("kiln_safetensors_options", options));
  if (!read.metadata && read.metadata_count > 0) {
    return InvalidArgument("kiln_safetensors_options.metadata is NULL, with a count of ",
                           read.metadata_count);
  }
  std::vector<TextPair> metadata;
  for (size_t i = 0; i < read.metadata_count; ++i) {
    const kiln_text_pair& pair = read.metadata[i];
    KILN_ASSIGN_OR_RETURN(std::string_view key,
                          TextOf(kiln::Cat("metadata[", i, "].key"), pair.key, pair.key_length));
    KILN_ASSIGN_OR_RETURN(std::string_view value, TextOf(kiln::Cat("metadata[", i, "].value"),
                                                         pair.value, pair.value_length));
    metadata.emplace_back(key, value);
  }
  return metadata;
}

}  // namespace

kiln_error* kiln_safetensors_open(const char* path, size_t path_length, kiln_safetensors** file) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_safetensors_open", {{"path", path}, {"file", file}}));
    KILN_ASSIGN_OR_RETURN(Ref<File> opened, File::Open(std::string(path, path_length)));
    *file = new kiln_safetensors(std::move(opened));
    return OkStatus();
  });
}

void kiln_safetensors_retain(kiln_safetensors* file) {
  if (file) file->Retain();
}

void kiln_safetensors_release(kiln_safetensors* file) {
  if (file) file->Release();
}

size_t kiln_safetensors_count(const kiln_safetensors* file) {
  return file ? file->header().entries.size() : 0;
}

const char* kiln_safetensors_name(const kiln_safetensors* file, size_t index, size_t* length) {
  const bool is_there = index < kiln_safetensors_count(file);
  return TextAt(is_there ? &file->header().entries[index].name : nullptr, length);
}

const char* kiln_safetensors_dtype(const kiln_safetensors* file, size_t index, size_t* length) {
  const bool is_there = index < kiln_safetensors_count(file);
  return TextAt(is_there ? &file->header().entries[index].dtype : nullptr, length);
}

kiln_error* kiln_safetensors_find(const kiln_safetensors* file, const char* name,
                                  size_t name_length, size_t* index) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_safetensors_find", {{"file", file}, {"index", index}}));
    KILN_ASSIGN_OR_RETURN(const Entry* entry, FindEntry(*file, name, name_length));
    *index = static_cast<size_t>(entry - file->header().entries.data());
    return OkStatus();
  });
}

kiln_error* kiln_safetensors_shape(const kiln_safetensors* file, size_t index, kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_safetensors_shape", {{"file", file}, {"shape", shape}}));
    const size_t count = kiln_safetensors_count(file);
    if (index >= count) return OutOfRange("array ", index, "; the file has ", count);
    const Entry& entry = file->header().entries[index];
    KILN_ASSIGN_OR_RETURN(Shape found, entry.shape());
    return kiln::capi::WriteStruct("kiln_shape", kiln::capi::DescribeShape(found, entry.dims),
                                   shape);
  });
}

size_t kiln_safetensors_metadata_count(const kiln_safetensors* file) {
  return file ? file->header().metadata.size() : 0;
}

const char* kiln_safetensors_metadata_key(const kiln_safetensors* file, size_t index,
                                          size_t* length) {
  const bool is_there = index < kiln_safetensors_metadata_count(file);
  return TextAt(is_there ? &file->header().metadata[index].first : nullptr, length);
}

const char* kiln_safetensors_metadata(const kiln_safetensors* file, const char* key,
                                      size_t key_length, size_t* length) {
  const bool is_given = file && (key || key_length == 0);
  return TextAt(is_given ? file->header().FindMetadata({key ? key : "", key_length}) : nullptr,
                length);
}

kiln_error* kiln_safetensors_buffer(const kiln_safetensors* file, const char* name,
                                    size_t name_length, kiln_device* device, kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_safetensors_buffer",
                                 {{"file", file}, {"device", device}, {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(const Entry* entry, FindEntry(*file, name, name_length));
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, BufferOf(file->file, *entry, *Unwrap(device)));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

void kiln_safetensors_options_init(kiln_safetensors_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_safetensors_save(const char* path, size_t path_length,
                                  const kiln_named_buffer* arrays, size_t array_count,
                                  const kiln_safetensors_options* options) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_safetensors_save", {{"path", path}}));
    std::vector<std::byte> copy;
    KILN_ASSIGN_OR_RETURN(std::vector<NewArray> read, ReadArrays(arrays, array_count, copy));
    KILN_ASSIGN_OR_RETURN(std::vector<TextPair> metadata, ReadMetadata(options));
    KILN_RETURN_IF_ERROR(kiln::safetensors::Write(std::string(path, path_length), read, metadata));
    for (size_t i = 0; i < array_count; ++i) Unwrap(arrays[i].buffer)->client().RunDeferred();
    return OkStatus();
  });
}
