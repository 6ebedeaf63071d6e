// Walks over a program's steps.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/overloaded.h"
#include "program/program.h"

namespace kiln::program {

// T, const where Like is.
template <typename T, typename Like>
using ConstLike = std::conditional_t<std::is_const_v<Like>, const T, T>;

// Calls f(steps, is_loop) with each list of steps in a step: a loop's condition before its body, or
// a conditional's branches.
template <typename AnyStep, typename F>
void ForEachList(AnyStep& step, F&& f) {
  std::visit(Overloaded{
                 [](const Launch&) {},
                 [](const Copy&) {},
                 [](const HostCall&) {},
                 [&](ConstLike<While, AnyStep>& loop) {
                   f(loop.condition, true);
                   f(loop.body, true);
                 },
                 [&](ConstLike<Conditional, AnyStep>& conditional) {
                   for (auto& branch : conditional.branches) f(branch, false);
                 },
             },
             step.what);
}

// Calls f(step, in_loop) with each of the steps and of those within, a loop or conditional before
// what it holds.
template <typename StepList, typename F>
void ForEachStep(StepList& steps, F&& f, bool in_loop = false) {
  for (auto& step : steps) {
    f(step, in_loop);
    ForEachList(step,
                [&](auto& inner, bool is_loop) { ForEachStep(inner, f, in_loop || is_loop); });
  }
}

// The same with the steps of one kind.
template <typename Kind, typename StepList, typename F>
void ForEach(StepList& steps, F&& f) {
  ForEachStep(steps, [&](auto& step, bool) {
    if (auto* of_kind = std::get_if<Kind>(&step.what)) f(*of_kind);
  });
}

// Whether it is a loop or conditional: all others are work themselves.
bool HoldsSteps(const Step& step);

// Whether no step is a loop or a function outside the program's code, so that nothing in it fails
// or ends it early.
bool IsStraight(const Steps& steps);

// Calls f with each slice that the step itself reads or writes: not those of steps within.
template <typename F>
void ForEachSlice(const Step& step, F&& f) {
  auto each = [&](const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) f(slice);
  };
  std::visit(Overloaded{
                 [&](const Launch& launch) { each(launch.args); },
                 [&](const Copy& copy) {
                   f(copy.from);
                   f(copy.to);
                 },
                 [&](const HostCall& call) { each(call.args); },
                 [&](const While& loop) { f(loop.predicate); },
                 [&](const Conditional& conditional) { f(conditional.index); },
             },
             step.what);
}

// Every Call step, those of the prologue first, then those of bindings, then in the order in which
// they stand in the program. Borrowed.
std::vector<const HostCall*> HostCallSteps(const Program& program);

// Whether the program's steps use an allocation: those of its prologue and of bindings do not
// count.
IdVector<AllocationId, bool> AllocationUses(const Program& program);
// Whether they use it, or steps of bindings do: what is read after the program is loaded.
IdVector<AllocationId, bool> LaterUses(const Program& program);

}  // namespace kiln::program
