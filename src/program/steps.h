// Walks over a program's steps.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "program/program.h"

namespace kiln::program {

// Calls f(step, in_loop) with each of the steps and of those within, a loop or conditional before
// what it holds, a loop's condition before its body.
template <typename StepList, typename F>
void ForEachStep(StepList& steps, F&& f, bool in_loop = false) {
  for (auto& step : steps) {
    f(step, in_loop);
    if (auto* loop = std::get_if<While>(&step.what)) {
      ForEachStep(loop->condition, f, true);
      ForEachStep(loop->body, f, true);
    } else if (auto* conditional = std::get_if<Conditional>(&step.what)) {
      for (auto& branch : conditional->branches) ForEachStep(branch, f, in_loop);
    }
  }
}

// The same with the steps of one kind.
template <typename Kind, typename StepList, typename F>
void ForEach(StepList& steps, F&& f) {
  ForEachStep(steps, [&](auto& step, bool) {
    if (auto* of_kind = std::get_if<Kind>(&step.what)) f(*of_kind);
  });
}

// Calls f with each slice that the step itself reads or writes: not those of steps within.
template <typename F>
void ForEachSlice(const Step& step, F&& f) {
  std::visit(
      [&](const auto& s) {
        using Kind = std::decay_t<decltype(s)>;
        if constexpr (std::is_same_v<Kind, Launch> || std::is_same_v<Kind, Call>) {
          for (const Slice& slice : s.args) f(slice);
        } else if constexpr (std::is_same_v<Kind, Copy>) {
          f(s.from);
          f(s.to);
        } else if constexpr (std::is_same_v<Kind, While>) {
          f(s.predicate);
        } else {
          static_assert(std::is_same_v<Kind, Conditional>);
          f(s.index);
        }
      },
      step.what);
}

// Every Call step, those of the prologue first, then in the order in which they stand in the
// program. Borrowed.
std::vector<const Call*> CallSteps(const Program& program);

// By allocation, whether the program's steps use it: those of its prologue do not count.
std::vector<bool> AllocationUses(const Program& program);

}  // namespace kiln::program
