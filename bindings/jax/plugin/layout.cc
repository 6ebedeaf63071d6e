#include "plugin/layout.h"

#include <algorithm>
#include <cstring>

#include "plugin/buffer.h"
#include "plugin/device.h"
#include "plugin/error.h"
#include "plugin/profiler.h"
#include "plugin/program.h"

namespace kiln_jax {
namespace {

/** Checks that it is an order of the dimensions, and makes row-major ones empty. */
PJRT_Error* Normalise(std::vector<int64_t> minor_to_major, const std::vector<int64_t>& dims,
                      Layout* layout) {
  std::vector<int64_t> sorted = minor_to_major;
  std::sort(sorted.begin(), sorted.end());
  bool is_order = sorted.size() == dims.size();
  for (size_t i = 0; is_order && i < sorted.size(); ++i) {
    is_order = sorted[i] == static_cast<int64_t>(i);
  }
  if (!is_order) {
    return InvalidArgument("the layout is no order of the array's " + std::to_string(dims.size()) +
                           " dimensions");
  }
  int64_t previous = INT64_MAX;
  bool is_row_major = true;
  for (const int64_t d : minor_to_major) {
    if (dims[static_cast<size_t>(d)] == 1) continue;
    is_row_major = is_row_major && d < previous;
    previous = d;
  }
  layout->clear();
  if (!is_row_major) *layout = std::move(minor_to_major);
  return nullptr;
}

/** The order of dimensions by their strides; those of equal strides as in row-major order. */
std::vector<int64_t> ByStrides(const int64_t* strides, size_t rank) {
  std::vector<int64_t> order = MinorToMajor({}, rank);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  return order;
}

PJRT_Layouts_MemoryLayout* Make(const Layout& layout, size_t rank) {
  return new PJRT_Layouts_MemoryLayout{LayoutText(layout, rank)};
}

PJRT_Error* Destroy(PJRT_Layouts_MemoryLayout_Destroy_Args* args) {
  delete args->layout;
  return nullptr;
}

PJRT_Error* Serialize(PJRT_Layouts_MemoryLayout_Serialize_Args* args) {
  args->serialized_bytes = args->layout->text.data();
  args->serialized_bytes_size = args->layout->text.size();
  args->serialized_layout = nullptr;
  args->serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout*) {};
  return nullptr;
}

PJRT_Error* ClientDefault(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args) {
  args->layout = Make({}, args->num_dims);
  return nullptr;
}

PJRT_Error* TopologyDefault(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args) {
  args->layout = Make({}, args->num_dims);
  return nullptr;
}

PJRT_Error* OfBuffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  args->layout = Make(args->buffer->layout, args->buffer->dims.size());
  return nullptr;
}

PJRT_Error* OfOutputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args) {
  args->num_outputs = args->executable->output_layouts.size();
  args->layouts = args->executable->output_layouts.data();
  return nullptr;
}

PJRT_Error* OfParameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args) {
  args->num_parameters = args->executable->argument_layouts.size();
  args->layouts = args->executable->argument_layouts.data();
  return nullptr;
}

// NULL: the executable does not tell, which is right for one device.
PJRT_Error* ParameterShardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args) {
  args->num_parameters = args->executable->argument_layouts.size();
  args->shardings = nullptr;
  args->sharding_sizes = nullptr;
  return nullptr;
}

PJRT_Error* OutputShardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args) {
  args->num_outputs = args->executable->output_layouts.size();
  args->shardings = nullptr;
  args->sharding_sizes = nullptr;
  return nullptr;
}

}  // namespace

std::vector<int64_t> MinorToMajor(const Layout& layout, size_t rank) {
  if (!layout.empty()) return layout;
  std::vector<int64_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(rank - 1 - i);
  return order;
}

PJRT_Error* ReadLayout(const PJRT_Buffer_MemoryLayout* layout, const std::vector<int64_t>& dims,
                       int64_t element_bytes, Layout* read) {
  read->clear();
  if (layout == nullptr) return nullptr;
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    const PJRT_Buffer_MemoryLayout_Tiled& tiled = layout->tiled;
    if (tiled.num_tiles != 0) return UnimplementedError("layouts with tiles");
    return Normalise({tiled.minor_to_major, tiled.minor_to_major + tiled.minor_to_major_size}, dims,
                     read);
  }
  const PJRT_Buffer_MemoryLayout_Strides& strides = layout->strides;
  if (strides.num_byte_strides != dims.size()) {
    return InvalidArgument("an array of rank " + std::to_string(dims.size()) + " has " +
                           std::to_string(strides.num_byte_strides) + " strides");
  }
  if (PJRT_Error* error = Normalise(ByStrides(strides.byte_strides, dims.size()), dims, read)) {
    return error;
  }
  const std::vector<int64_t> dense = DenseStrides(dims, *read, element_bytes);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && strides.byte_strides[i] != dense[i]) {
      return UnimplementedError("layouts with gaps");
    }
  }
  return nullptr;
}

PJRT_Error* ParseLayout(std::string_view text, const std::vector<int64_t>& dims, Layout* read) {
  read->clear();
  if (text.empty() || text == "default" || text == "auto") return nullptr;
  std::vector<int64_t> order;
  bool is_list = text.size() >= 2 && text.front() == '{' && text.back() == '}';
  int64_t number = -1;
  for (const char c : is_list ? text.substr(1) : std::string_view()) {
    if (c >= '0' && c <= '9' && number < 100) {
      number = std::max<int64_t>(number, 0) * 10 + (c - '0');
    } else if (c == ',' || c == '}') {
      if (number < 0 && text.size() > 2) is_list = false;
      if (number >= 0) order.push_back(number);
      number = -1;
    } else if (c != ' ') {
      is_list = false;
    }
  }
  if (!is_list) return UnimplementedError("the layout \"" + std::string(text) + "\"");
  return Normalise(std::move(order), dims, read);
}

std::vector<int64_t> InMemoryOrder(const std::vector<int64_t>& by_dimension, const Layout& layout) {
  if (layout.empty()) return by_dimension;
  std::vector<int64_t> ordered;
  for (auto d = layout.rbegin(); d != layout.rend(); ++d) {
    ordered.push_back(by_dimension[static_cast<size_t>(*d)]);
  }
  return ordered;
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& dims, const Layout& layout,
                                  int64_t element_bytes) {
  std::vector<int64_t> strides(dims.size());
  for (const int64_t d : MinorToMajor(layout, dims.size())) {
    strides[static_cast<size_t>(d)] = element_bytes;
    element_bytes *= dims[static_cast<size_t>(d)];
  }
  return strides;
}

namespace {
void CopyDimension(const char* from, const int64_t* from_strides, char* to,
                   const int64_t* to_strides, const int64_t* dims, size_t rank,
                   int64_t element_bytes) {
  if (rank == 0) {
    std::memcpy(to, from, static_cast<size_t>(element_bytes));
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i) {
    CopyDimension(from + i * from_strides[0], from_strides + 1, to + i * to_strides[0],
                  to_strides + 1, dims + 1, rank - 1, element_bytes);
  }
}
}  // namespace

void CopyStrided(const char* from, const std::vector<int64_t>& from_strides, char* to,
                 const std::vector<int64_t>& to_strides, const std::vector<int64_t>& dims,
                 int64_t element_bytes) {
  CopyDimension(from, from_strides.data(), to, to_strides.data(), dims.data(), dims.size(),
                element_bytes);
}

std::string LayoutText(const Layout& layout, size_t rank) {
  std::string text = "{";
  for (const int64_t d : MinorToMajor(layout, rank)) {
    if (text.size() > 1) text += ',';
    text += std::to_string(d);
  }
  return text + "}";
}

const void* Extensions() {
  static PJRT_Layouts_Extension layouts = {
      {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, nullptr},
      &Entry<PJRT_Layouts_MemoryLayout_Destroy_Args, Destroy>,
      &Entry<PJRT_Layouts_MemoryLayout_Serialize_Args, Serialize>,
      &Entry<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, ClientDefault>,
      &Entry<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, OfBuffer>,
      &Entry<PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, TopologyDefault>,
      &Entry<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, OfOutputs>,
      &Entry<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, OfParameters>};
  static PJRT_MemoryDescriptions_Extension memories = {
      {sizeof(PJRT_MemoryDescriptions_Extension), PJRT_Extension_Type_MemoryDescriptions,
       &layouts.base},
      &Entry<PJRT_DeviceDescription_MemoryDescriptions_Args, DeviceDescriptionMemories>,
      &Entry<PJRT_MemoryDescription_Kind_Args, MemoryDescriptionKind>};
  static PJRT_Shardings_Extension shardings = {
      {sizeof(PJRT_Shardings_Extension), PJRT_Extension_Type_Shardings, &memories.base},
      &Entry<PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, ParameterShardings>,
      &Entry<PJRT_Shardings_PJRT_Executable_OutputShardings_Args, OutputShardings>};
  static PJRT_Profiler_Extension profiler = {
      {sizeof(PJRT_Profiler_Extension), PJRT_Extension_Type_Profiler, &shardings.base},
      ProfilerTable(),
      0};
  return &profiler;
}

}  // namespace kiln_jax
