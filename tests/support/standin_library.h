// A stand-in's library, which is held for good: what was found too old is closed again by the code
// that is tested.
#pragma once

#include <string>

namespace kiln::testing {

class StandinLibrary {
 public:
  // Ends the process where there is none.
  explicit StandinLibrary(const std::string& path);

  template <typename Function>
  void Find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(Address(name));
  }

 private:
  void* Address(const char* name) const;
  void* library_;
};

}  // namespace kiln::testing
