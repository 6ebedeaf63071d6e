// Calls of builder functions: from contents by parameters' names to arguments, and what must hold
// afterwards.
#include <algorithm>
#include <cstring>
#include <deque>

#include "calls/recipes.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

// The memory of a call's arguments: each list in an allocation of just its size.
struct Storage {
  std::deque<std::vector<int64_t>> numbers;
  std::deque<std::vector<int32_t>> flags;
  std::deque<std::vector<uint64_t>> values;
  std::deque<std::vector<const kiln_graph*>> graphs;
  std::deque<std::vector<char>> texts;
  std::deque<std::vector<kiln_shape>> shapes;
  std::deque<std::vector<const kiln_shape*>> shape_lists;
  std::deque<kiln_attention_options> attention;
  std::deque<kiln_custom_call_options> custom_call;
  std::deque<kiln_schedule_options> schedule;
  std::deque<kiln_initializer_options> initializer;
  std::deque<SizedCopy> options;
};

bool IsList(const Parameter& parameter) {
  return parameter.type == "const int64_t*" || parameter.type == "const int32_t*" ||
         parameter.type == "const kiln_value*" || parameter.type == "const char*" ||
         parameter.type == "const void*" || parameter.type == "const kiln_graph* const*" ||
         parameter.type == "const kiln_shape* const*";
}

const Content& Find(const Contents& contents, std::string_view name) {
  static const auto* none = new Content;
  auto it = contents.find(name);
  return it == contents.end() ? *none : it->second;
}

bool HasBound(const GraphState& graph, const kiln_shape& shape) {
  for (size_t d = 0; shape.dims && d < shape.rank; ++d) {
    kiln_text* text = nullptr;
    if (shape.dims[d] >= 0 || kiln_graph_symbol_text(graph.handle, shape.dims[d], &text)) continue;
    const bool is_bound = std::string_view(kiln_text_data(text, nullptr)).starts_with("<=");
    kiln_text_release(text);
    if (is_bound) return true;
  }
  return false;
}

size_t LengthOf(const Parameter& parameter, const Content& content) {
  if (parameter.type == "const char*" || parameter.type == "const void*") {
    return content.text.size();
  }
  if (parameter.type == "const kiln_graph* const*") return content.graphs.size();
  if (parameter.type != "const kiln_shape* const*") return content.numbers.size();
  // Shapes are numbers: the type, the rank, the sizes, and so on.
  size_t count = 0;
  for (size_t i = 0; i + 1 < content.numbers.size(); ++count) {
    i += 2 + static_cast<size_t>(content.numbers[i + 1]);
  }
  return count;
}

std::string Short(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, 40)) {
    const bool plain = c >= ' ' && c <= '~' && c != '"';
    out += plain ? std::string(1, c) : Cat("\\", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return out + (text.size() > 40 ? Cat("... (", text.size(), ")\"") : "\"");
}

}  // namespace

struct ArgumentMaker {
  World& world;
  const Function& function;
  const Contents& contents;
  Storage& storage;
  std::string text;

  // The lists in front of a count that it is the count of.
  std::pair<size_t, size_t> ListsBefore(size_t count) const {
    size_t first = count;
    while (first > 0 && IsList(function.parameters[first - 1])) --first;
    // Names say whose count it is, but for the lists of windows, slices and paddings.
    return {first, count};
  }

  // "X_sizes" in front of "X_count": the lengths of the lists that "X" holds, one behind the other.
  bool IsGroups(size_t count) const {
    return count >= 2 && function.parameters[count - 1].name.ends_with("_sizes") &&
           function.parameters[count - 1].name == function.parameters[count - 2].name + "_sizes";
  }

  void SetList(Argument& argument, const Parameter& parameter, size_t length) {
    const Content& content = Find(contents, parameter.name);
    if (content.is_null) {
      text += Cat(", ", parameter.name, " NULL");
      return;
    }
    if (parameter.type == "const char*" || parameter.type == "const void*") {
      auto& bytes = storage.texts.emplace_back(content.text.begin(), content.text.end());
      bytes.resize(std::max(length, bytes.size()));
      argument.pointer = bytes.data();
      text += parameter.type == "const char*" ? Cat(", ", parameter.name, " ", Short(content.text))
                                              : Cat(", ", bytes.size(), " bytes");
      return;
    }
    if (parameter.type == "const kiln_graph* const*") {
      auto& graphs = storage.graphs.emplace_back(content.graphs);
      graphs.resize(std::max(length, graphs.size()));
      argument.pointer = graphs.data();
      text += Cat(", ", graphs.size(), " graphs");
      return;
    }
    if (parameter.type == "const kiln_shape* const*") return SetShapes(argument, content, length);
    std::vector<int64_t> numbers = content.numbers;
    numbers.resize(std::max(length, numbers.size()));
    text += numbers.size() > 50 ? Cat(", ", parameter.name, ": ", numbers.size(), " numbers")
                                : Cat(", ", parameter.name, " {", Join(numbers, ","), "}");
    if (parameter.type == "const int32_t*") {
      argument.pointer = storage.flags.emplace_back(numbers.begin(), numbers.end()).data();
    } else if (parameter.type == "const kiln_value*") {
      argument.pointer = storage.values.emplace_back(numbers.begin(), numbers.end()).data();
    } else {
      argument.pointer = storage.numbers.emplace_back(std::move(numbers)).data();
    }
    // An empty list has an address, too.
    static const int64_t nothing = 0;
    if (!argument.pointer && !world.Chance(50)) argument.pointer = &nothing;
  }

  void SetShapes(Argument& argument, const Content& content, size_t length) {
    auto& shapes = storage.shapes.emplace_back();
    for (size_t i = 0; i + 1 < content.numbers.size();) {
      kiln_shape shape = KILN_SHAPE_INIT;
      shape.dtype = static_cast<kiln_dtype>(content.numbers[i]);
      shape.rank = static_cast<size_t>(content.numbers[i + 1]);
      auto& dims = storage.numbers.emplace_back();
      for (size_t k = 0; k < shape.rank; ++k) dims.push_back(content.numbers[i + 2 + k]);
      shape.dims = dims.data();
      i += 2 + shape.rank;
      shapes.push_back(shape);
    }
    auto& list = storage.shape_lists.emplace_back();
    for (const kiln_shape& shape : shapes) list.push_back(&shape);
    list.resize(std::max(length, list.size()));
    argument.pointer = list.data();
    text += Cat(", shapes {", Join(content.numbers, ","), "}");
  }

  void SetOptions(Argument& argument, const Parameter& parameter) {
    if (!contents.contains(parameter.name)) return;
    if (parameter.type == "const kiln_attention_options*") {
      auto& options = storage.attention.emplace_back();
      kiln_attention_options_init(&options, sizeof(options));
      options.scale = Find(contents, "options").real;
      options.causal = static_cast<int32_t>(Find(contents, "options.causal").number);
      options.mask = static_cast<kiln_value>(Find(contents, "options.mask").number);
      options.bias = static_cast<kiln_value>(Find(contents, "options.bias").number);
      text += Cat(", scale ", options.scale, ", causal ", options.causal, ", mask ", options.mask,
                  ", bias ", options.bias);
      argument.pointer = storage.options.emplace_back(world, options).As<void>();
    } else if (parameter.type == "const kiln_schedule_options*") {
      auto& options = storage.schedule.emplace_back();
      kiln_schedule_options_init(&options, sizeof(options));
      options.kind = static_cast<kiln_schedule>(Find(contents, "options").number);
      options.peak = 1;
      options.warmup_steps = Find(contents, "options.warmup").number;
      options.steps = 9;
      text += Cat(", schedule ", options.kind, ", ", options.warmup_steps);
      argument.pointer = storage.options.emplace_back(world, options).As<void>();
    } else if (parameter.type == "const kiln_initializer_options*") {
      auto& options = storage.initializer.emplace_back();
      kiln_initializer_options_init(&options, sizeof(options));
      options.kind = static_cast<kiln_initializer>(Find(contents, "options").number);
      options.seed = static_cast<int64_t>(world.Seed());
      text += Cat(", initializer ", options.kind);
      argument.pointer = storage.options.emplace_back(world, options).As<void>();
    } else {
      auto& options = storage.custom_call.emplace_back();
      kiln_custom_call_options_init(&options, sizeof(options));
      const Content& config = Find(contents, "options");
      auto& bytes = storage.texts.emplace_back(config.text.begin(), config.text.end());
      options.backend_config = bytes.data();
      options.backend_config_length = bytes.size();
      auto& aliases = storage.numbers.emplace_back(Find(contents, "options.aliases").numbers);
      options.aliases = aliases.data();
      options.alias_count = aliases.size();
      options.has_side_effect = static_cast<int32_t>(Find(contents, "options.effect").number);
      text += Cat(", config ", Short(config.text), ", aliases {", Join(aliases, ","), "}, effect ",
                  options.has_side_effect);
      argument.pointer = storage.options.emplace_back(world, options).As<void>();
    }
    text += Cat(", ", storage.options.back().ToString());
  }

  std::vector<Argument> Make(GraphState* graph) {
    const auto& parameters = function.parameters;
    std::vector<Argument> arguments(parameters.size());
    arguments[0].pointer = graph ? graph->handle : nullptr;
    text = graph ? Cat("graph #", graph->number) : std::string("NULL");
    for (size_t i = 1; i < parameters.size(); ++i) {
      const Parameter& parameter = parameters[i];
      const Content& content = Find(contents, parameter.name);
      if (IsList(parameter)) continue;  // with its count
      if (parameter.type == "size_t") {
        auto [first, end] = ListsBefore(i);
        const bool is_groups = IsGroups(i);
        if (is_groups) first = i - 2;
        size_t count =
            is_groups ? LengthOf(parameters[i - 1], Find(contents, parameters[i - 1].name)) : 0;
        for (size_t k = first; k < end && !is_groups; ++k) {
          const Content& list = Find(contents, parameters[k].name);
          count = std::max(count, LengthOf(parameters[k], list));
        }
        if (contents.contains(parameter.name)) count = static_cast<size_t>(content.number);
        if (is_groups) {
          size_t sum = 0;
          for (int64_t n : Find(contents, parameters[i - 1].name).numbers) {
            if (n > 0) sum += static_cast<size_t>(n);
          }
          SetList(arguments[first], parameters[first], sum);
          SetList(arguments[i - 1], parameters[i - 1], count);
        } else {
          for (size_t k = first; k < end; ++k) SetList(arguments[k], parameters[k], count);
        }
        arguments[i].number = static_cast<int64_t>(count);
        text += Cat(", ", parameter.name, " ", count);
      } else if (parameter.type.ends_with("_options*")) {
        SetOptions(arguments[i], parameter);
      } else if (parameter.type == "const kiln_graph*") {
        arguments[i].pointer = content.graphs.empty() ? nullptr : content.graphs[0];
        text += Cat(", ", parameter.name, content.graphs.empty() ? " NULL" : " a graph");
      } else {
        arguments[i].number = content.number;
        arguments[i].real = content.real;
        text += parameter.type == "double" ? Cat(", ", parameter.name, " ", content.real)
                                           : Cat(", ", parameter.name, " ", content.number);
      }
    }
    return arguments;
  }
};

kiln_value World::Build(GraphState* graph, const Function& function, const Contents& contents) {
  Storage storage;
  ArgumentMaker maker{*this, function, contents, storage, ""};
  const std::vector<Argument> arguments = maker.Make(graph);
  Begin(function.name, maker.text);
  const kiln_value id = function.build(arguments.data());
  if (!graph) {
    Expect(id == 0, "a value of no graph");
    return 0;
  }
  if (id != 0) {
    Expect(!graph->is_broken, "a value after a mistake");
    Succeeded();
    Value value;
    value.id = id;
    kiln_shape shape = KILN_SHAPE_INIT;
    kiln_error* error = kiln_graph_value_shape(graph->handle, id, &shape);
    Expect(!error, "a value has no shape");
    // Values of bounded dimensions are left alone: few ops take them.
    if (!error && !HasBound(*graph, shape)) {
      value.has_shape = true;
      value.dtype = shape.dtype;
      value.is_static = shape.byte_size >= 0;
      value.is_token = shape.dtype == KILN_TOKEN;
      if (shape.dtype == KILN_TUPLE) {
        value.elements = shape.rank;
      } else {
        value.dims.assign(shape.dims, shape.dims + shape.rank);
      }
    }
    graph->values.push_back(std::move(value));
    if (function.name == "kiln_op_while") graph->has_loops = true;
    return id;
  }
  kiln_error* error = kiln_graph_status(graph->handle);
  Expect(error, "0, and the graph has no mistake");
  if (graph->is_broken) {
    kiln_error_release(error);
  } else {
    graph->is_broken = true;
    (void)Ok(error);
  }
  return 0;
}

kiln_value World::Build(GraphState& graph, std::string_view function, const Contents& contents) {
  return Build(&graph, Functions()[FunctionByName(function)], contents);
}

// Makes one or two of the arguments wrong, or at least unusual.
static void Spoil(World& world, const Function& function, GraphState& graph, Contents& contents) {
  for (size_t times = 1 + world.Below(2); times > 0; --times) {
    const Parameter& parameter =
        function.parameters[1 + world.Below(function.parameters.size() - 1)];
    Content& content = contents[parameter.name];
    auto any_value = [&]() -> int64_t {
      switch (world.Below(4)) {
        case 0:
          return world.WildNumber();
        case 1: {
          // Another graph's.
          const auto& other = *world.Pick(world.graphs);
          return other.values.empty() ? 0 : static_cast<int64_t>(world.Pick(other.values).id);
        }
        default:
          return graph.values.empty() ? 0 : static_cast<int64_t>(world.Pick(graph.values).id);
      }
    };
    if (parameter.type == "kiln_value") {
      content.number = any_value();
    } else if (parameter.type == "double") {
      static constexpr double kReals[] = {0, -1, 1e300, -1e-300, 1e10, 0.5, INFINITY, NAN};
      content.real = world.Pick(kReals);
    } else if (parameter.type == "const char*") {
      content.is_null = world.Chance(20);
      content.text = world.WildText();
    } else if (parameter.type == "const void*") {
      content.is_null = world.Chance(20);
      content.text.resize(world.Below(2 * content.text.size() + 2));
    } else if (parameter.type.starts_with("const kiln_graph*")) {
      if (world.Chance(20)) content.graphs.clear();
      if (world.Chance(80)) {
        const size_t at = content.graphs.empty() ? 0 : world.Below(content.graphs.size() + 1);
        const kiln_graph* other = world.Chance(10) ? nullptr : world.Pick(world.graphs)->handle;
        if (at < content.graphs.size()) {
          content.graphs[at] = other;
        } else {
          content.graphs.push_back(other);
        }
      }
    } else if (parameter.type == "const kiln_value*" || parameter.type == "const int64_t*" ||
               parameter.type == "const int32_t*") {
      const bool values = parameter.type == "const kiln_value*";
      const bool lengths = parameter.name.ends_with("_sizes");
      auto number = [&] {
        if (lengths) return world.Between(-3, 6);
        return values ? any_value() : world.WildNumber();
      };
      switch (world.Below(5)) {
        case 0:
          content.is_null = true;
          break;
        case 1:
          content.numbers.push_back(number());
          break;
        case 2:
          if (!content.numbers.empty()) content.numbers.pop_back();
          break;
        case 3:
          if (world.Chance(10)) content.numbers.resize(world.Below(3000), number());
          break;
        default:
          if (!content.numbers.empty()) world.Pick(content.numbers) = number();
      }
    } else if (parameter.type == "size_t") {
      // Lists are as long as that.
      content.number = static_cast<int64_t>(world.Below(world.Chance(5) ? 5000 : 9));
    } else if (parameter.type == "kiln_dtype") {
      content.number = world.AnyType();
    } else if (parameter.type == "int32_t" || parameter.type == "kiln_direction" ||
               parameter.type == "kiln_reducer" || parameter.type == "kiln_take_mode") {
      content.number = static_cast<int32_t>(world.WildNumber());
    } else if (parameter.type == "const kiln_shape* const*") {
      content.is_null = world.Chance(30);
      if (!content.numbers.empty()) content.numbers[0] = world.AnyType();
    } else if (parameter.type.ends_with("_options*")) {
      contents["options.causal"].number = world.WildNumber() & 7;
      contents["options.mask"].number = any_value();
      contents["options.bias"].number = any_value();
      contents["options.aliases"].numbers = {world.WildNumber(), world.Between(-1, 2)};
      contents["options.effect"].number = world.WildNumber() & 3;
      content.text = world.WildText();
      content.real = -1;
    } else {
      content.number = world.WildNumber();
    }
  }
}

void World::BuildAtRandom(GraphState* graph, const Function& function) {
  if (!graph) {
    (void)Build(nullptr, function, {});
    return;
  }
  Contents contents = MakeContents(*this, *graph, function);
  if (contents.empty() && function.parameters.size() > 1 && !graph->is_broken) return;
  if (function.parameters.size() > 1 && Chance(8)) Spoil(*this, function, *graph, contents);
  (void)Build(graph, function, contents);
}

}  // namespace kiln::fuzz
