// Products by oneDNN's primitives, declared here as far as they are used: the library is loaded
// where it is installed.
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "peers.h"

namespace kiln::bench {
namespace {

// Descriptors are structs of less than three thousand bytes.
struct alignas(64) Descriptor {
  std::array<char, 4096> bytes = {};
};
using Object = void*;
struct Argument {
  int number;
  Object memory;
};
struct Version {
  int major, minor;
};

constexpr int kOk = 0, kCpu = 1, kInOrder = 1, kAnyOrder = 1, kRowMajor = 3, kWeights = 131;
constexpr int kSource = 1, kResult = 17, kFactor = 33;

struct Library {
  const Version* (*dnnl_version)();
  int (*dnnl_engine_create)(Object*, int kind, size_t index);
  int (*dnnl_stream_create)(Object*, Object engine, unsigned flags);
  int (*dnnl_stream_wait)(Object stream);
  int (*dnnl_memory_desc_init_by_tag)(Descriptor*, int rank, const int64_t* sizes, int type,
                                      int order);
  size_t (*dnnl_memory_desc_get_size)(const void* descriptor);
  int (*dnnl_memory_create)(Object*, const void* descriptor, Object engine, void* data);
  int (*dnnl_matmul_desc_init)(Descriptor*, const void* a, const void* b, const void* bias,
                               const void* c);
  int (*dnnl_primitive_desc_create)(Object*, const void* descriptor, Object attributes,
                                    Object engine, Object hint);
  int (*dnnl_reorder_primitive_desc_create)(Object*, const void* from, Object from_engine,
                                            const void* to, Object to_engine, Object attributes);
  const void* (*dnnl_primitive_desc_query_md)(Object, int what, int index);
  int (*dnnl_primitive_create)(Object*, Object descriptor);
  int (*dnnl_primitive_execute)(Object, Object stream, int count, const Argument* arguments);
  void (*omp_set_num_threads)(int);
};

template <typename F>
bool Find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

const Library* TheLibrary() {
  static const Library* const library = []() -> const Library* {
    static Library l;
    void* dnnl = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    void* openmp = dnnl ? dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!openmp) return nullptr;
#define KILN_FIND(name) Find(dnnl, #name, l.name)
    const bool found =
        KILN_FIND(dnnl_version) && KILN_FIND(dnnl_engine_create) && KILN_FIND(dnnl_stream_create) &&
        KILN_FIND(dnnl_stream_wait) && KILN_FIND(dnnl_memory_desc_init_by_tag) &&
        KILN_FIND(dnnl_memory_desc_get_size) && KILN_FIND(dnnl_memory_create) &&
        KILN_FIND(dnnl_matmul_desc_init) && KILN_FIND(dnnl_primitive_desc_create) &&
        KILN_FIND(dnnl_reorder_primitive_desc_create) && KILN_FIND(dnnl_primitive_desc_query_md) &&
        KILN_FIND(dnnl_primitive_create) && KILN_FIND(dnnl_primitive_execute) &&
        Find(openmp, "omp_set_num_threads", l.omp_set_num_threads);
#undef KILN_FIND
    return found && l.dnnl_version()->major == 2 ? &l : nullptr;
  }();
  return library;
}

}  // namespace

// Some hundred bytes of each are never freed: benchmarks make few.
struct OneDnnProduct::Parts {
  const Library* library = nullptr;
  Object engine = nullptr, stream = nullptr, primitive = nullptr;
  std::array<Argument, 3> arguments = {};
  void* packed = nullptr;
  int threads = 1;

  bool Reorder(const void* from, Object plain, const void* to, Object* memory) {
    const Library& l = *library;
    const size_t bytes = (l.dnnl_memory_desc_get_size(to) + 4095) / 4096 * 4096;
    packed = std::aligned_alloc(4096, bytes);
    Object description = nullptr, reorder = nullptr;
    if (l.dnnl_memory_create(memory, to, engine, packed) != kOk ||
        l.dnnl_reorder_primitive_desc_create(&description, from, engine, to, engine, nullptr) !=
            kOk ||
        l.dnnl_primitive_create(&reorder, description) != kOk) {
      return false;
    }
    const Argument arguments[] = {{kSource, plain}, {kResult, *memory}};
    return l.dnnl_primitive_execute(reorder, stream, 2, arguments) == kOk &&
           l.dnnl_stream_wait(stream) == kOk;
  }

  bool Make(const Problem& p) {
    const Library& l = *library;
    l.omp_set_num_threads(threads);
    Descriptor a, plain, b, c, product;
    auto describe = [&](Descriptor& d, int64_t rows, int64_t columns, Type type, int order) {
      const int64_t sizes[] = {rows, columns};
      return l.dnnl_memory_desc_init_by_tag(&d, 2, sizes, static_cast<int>(type), order) == kOk;
    };
    Object description = nullptr, source = nullptr, factor = nullptr, result = nullptr;
    const bool made =
        l.dnnl_engine_create(&engine, kCpu, 0) == kOk &&
        l.dnnl_stream_create(&stream, engine, kInOrder) == kOk &&
        describe(a, p.m, p.k, p.a_type, kRowMajor) &&
        describe(plain, p.k, p.n, p.b_type, kRowMajor) &&
        describe(b, p.k, p.n, p.b_type, p.constant ? kAnyOrder : kRowMajor) &&
        describe(c, p.m, p.n, p.c_type, kRowMajor) &&
        l.dnnl_matmul_desc_init(&product, &a, &b, nullptr, &c) == kOk &&
        l.dnnl_primitive_desc_create(&description, &product, nullptr, engine, nullptr) == kOk &&
        l.dnnl_primitive_create(&primitive, description) == kOk &&
        l.dnnl_memory_create(&source, &a, engine, p.a) == kOk &&
        l.dnnl_memory_create(&factor, &plain, engine, p.b) == kOk &&
        l.dnnl_memory_create(&result, &c, engine, p.c) == kOk;
    if (!made) return false;
    if (p.constant) {
      const void* order = l.dnnl_primitive_desc_query_md(description, kWeights, 0);
      if (!order || !Reorder(&plain, factor, order, &factor)) return false;
    }
    arguments = {{{kSource, source}, {kFactor, factor}, {kResult, result}}};
    return true;
  }
};

OneDnnProduct::OneDnnProduct() : parts_(std::make_unique<Parts>()) {}
OneDnnProduct::~OneDnnProduct() { std::free(parts_->packed); }

std::unique_ptr<OneDnnProduct> OneDnnProduct::Make(const Problem& problem, int threads) {
  std::unique_ptr<OneDnnProduct> product(new OneDnnProduct);
  product->parts_->library = TheLibrary();
  product->parts_->threads = threads;
  if (!product->parts_->library || !product->parts_->Make(problem)) return nullptr;
  return product;
}

void OneDnnProduct::Run() {
  const Library& l = *parts_->library;
  l.dnnl_primitive_execute(parts_->primitive, parts_->stream, 3, parts_->arguments.data());
  l.dnnl_stream_wait(parts_->stream);
}

}  // namespace kiln::bench
