// Files of named arrays in the safetensors format: 8 bytes with the length of the header,
// little-endian, the header (tensor/safetensors_header.h), and the data.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/input_file.h"
#include "base/ref.h"
#include "base/status.h"
#include "tensor/safetensors_header.h"
#include "tensor/shape.h"

namespace kiln::safetensors {

// A file, checked as a whole, with its data mapped or, from a pipe, read. Immutable. Any thread.
class File : public Counted<File> {
 public:
  // INVALID_ARGUMENT for contents that are not of the format, naming the array or the byte; errors
  // of the system. All of them name the path.
  static Result<Ref<File>> Open(const std::string& path);

  const Header& header() const { return header_; }
  // The bytes of an entry of the header, packed as in the file. In the caller's memory as long as
  // the object; changes of the file itself may show, and if it is cut off, reading is a SIGBUS. A
  // file that Write() replaces stays as it was.
  std::span<const std::byte> data(const Entry& entry) const {
    return pages_.bytes().subspan(static_cast<size_t>(entry.begin),
                                  static_cast<size_t>(entry.end - entry.begin));
  }

 private:
  static Result<Ref<File>> Read(const std::string& path);

  Header header_;
  FilePages pages_;
};

// The elements of an array that is not plain (IsPlain), a byte each.
std::string Unpacked(ElementType type, std::span<const std::byte> packed, int64_t count);

// An array to be written.
struct NewArray {
  std::string_view name;
  Shape shape;  // static, row-major
  // Returns the elements as in buffers, when the array's turn comes. They must stay until the next
  // call of an array's function.
  std::function<Result<const std::byte*>()> elements;
};

// Writes a file, which takes the path's place once it is complete and on the disk; after a failure
// the old file is there as it was (base/output_file.h). The bytes depend on the arguments only:
// they are those of the format's own writer. Preds are written as 0 or 1. Fails as MakeHeader(), as
// elements(), and with errors of the system, which name the path.
Status Write(const std::string& path, std::span<const NewArray> arrays,
             std::span<const std::pair<std::string_view, std::string_view>> metadata);

}  // namespace kiln::safetensors
