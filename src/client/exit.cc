#include "client/exit.h"

#include <atomic>
#include <cstdlib>

namespace {

std::atomic<int> clients{0};

// Destructors of static objects, ours and LLVM's, the last one first. The library is linked such
// that its objects register destructors here, not with the C library, which would run them at
// exit() while other threads are at work.
struct AtEnd {
  void (*destroy)(void*);
  void* object;
  AtEnd* next;
};
std::atomic<AtEnd*> first{nullptr};

// When the library is unloaded, or the process ends.
[[gnu::destructor]] void DestroyStaticObjects() {
  if (clients.load() > 0) return;
  while (AtEnd* at_end = first.load()) {
    // A destructor may register another one.
    first.store(at_end->next);
    at_end->destroy(at_end->object);
    std::free(at_end);
  }
}

}  // namespace

extern "C" int __wrap___cxa_atexit(void (*destroy)(void*), void* object, void*) {
  auto* at_end = static_cast<AtEnd*>(std::malloc(sizeof(AtEnd)));
  if (!at_end) return -1;
  *at_end = {destroy, object, first.load()};
  while (!first.compare_exchange_weak(at_end->next, at_end)) {
  }
  return 0;
}

void kiln::client::CountClients(int change) { clients.fetch_add(change); }
