#include "base/descriptor.h"

#include <sys/stat.h>

namespace kiln {

bool Descriptor::IsAt(const std::string& path) const {
  struct stat opened, found;
  return fstat(number_, &opened) == 0 && stat(path.c_str(), &found) == 0 &&
         opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

}  // namespace kiln
