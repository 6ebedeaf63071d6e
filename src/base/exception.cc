#include "base/exception.h"

#include <new>
#include <stdexcept>
#include <system_error>

namespace kiln {
namespace {

// Made when the library is loaded.
const Status out_of_memory = ResourceExhausted("out of memory");

}  // namespace

Status StatusOfException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return out_of_memory;
    } catch (const std::length_error&) {
      return out_of_memory;
    } catch (const std::system_error& e) {
      return ResourceExhausted("the system refused: ", e.what());
    } catch (const std::exception& e) {
      return Internal("unexpected exception: ", e.what());
    } catch (...) {
      return Internal("unexpected exception");
    }
  } catch (...) {
    return out_of_memory;
  }
}

}  // namespace kiln
