// Open files of the system.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace kiln {

// A file descriptor, closed by the destructor.
class Descriptor {
 public:
  Descriptor() = default;
  // The result of open(): negative for none.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // Whether the path leads to this open file, and not to another one that has taken its place.
  bool IsAt(const std::string& path) const;
  // The system's error, or 0.
  int Close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || close(number) == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int number_ = -1;
};

}  // namespace kiln
