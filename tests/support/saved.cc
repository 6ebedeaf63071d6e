#include "support/saved.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "ir/text.h"
#include "program/saved.h"
#include "support/hlo.h"

namespace kiln::testing {

std::string EveryKindOfStep() {
  std::string weights;
  for (int i = 0; i < 96; ++i) {
    weights += i > 0 ? ",{" : "{";
    for (int j = 0; j < 96; ++j) weights += Cat(j > 0 ? "," : "", i * 31 % 17 - j % 13);
    weights += "}";
  }
  return Cat(R"(HloModule all, input_output_alias={ {0}: (0, {}, may-alias) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
condition { s = (s32[], f32[32,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[32,96] get-tuple-element(s), index=1
  zero = f32[] constant(0)
  sum = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  limit = f32[] constant(1e30)
  small = pred[] compare(sum, limit), direction=LT
  n = s32[] constant(3)
  early = pred[] compare(i, n), direction=LT
  ROOT c = pred[] and(small, early) }
body { s = (s32[], f32[32,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[32,96] get-tuple-element(s), index=1
  w = f32[96,96] constant({)",
             weights, R"(})
  d = f32[32,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[32,96] tanh(d)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[32,96]) tuple(j, t) }
yes { x = f32[32,96] parameter(0)
  ROOT r = f32[32,96] negate(x) }
no { x = f32[32,96] parameter(0)
  ROOT r = f32[32,96] exponential(x) }
ENTRY e { x = f32[32,96] parameter(0)
  p = pred[] parameter(1)
  m = f32[8,8] parameter(2)
  i = s32[] constant(0)
  s = (s32[], f32[32,96]) tuple(i, x)
  l = (s32[], f32[32,96]) while(s), condition=condition, body=body
  y = f32[32,96] get-tuple-element(l), index=1
  z = f32[32,96] conditional(p, y, y), true_computation=yes, false_computation=no
  o = f32[32,96] sort(z), dimensions={1}, to_apply=less
  h = f32[8,8] cholesky(m), lower=true
  t = f32[96,32]{0,1} transpose(o), dimensions={1,0}
  ROOT r = (f32[32,96], f32[8,8], f32[96,32]{0,1}) tuple(z, h, t) }
)");
}

program::Artefact CompileToSave(const std::string& text, const target::Target& target) {
  auto artefact = compiler::Compile(ir::ParseOrDie(text), target, {});
  EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
  artefact->keeps_code = true;
  return *std::move(artefact);
}

std::string Saved(const program::Artefact& artefact) {
  auto bytes = program::Save(artefact);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return *std::move(bytes);
}

std::string Mutated(std::string bytes, std::mt19937& random) {
  const size_t size = bytes.size();
  switch (random() % 4) {
    case 0:
      return bytes.substr(0, random() % size);
    case 1:
      bytes.insert(random() % size, 1 + random() % 9, static_cast<char>(random()));
      return bytes;
    case 2:
      bytes.erase(random() % size, 1 + random() % 9);
      return bytes;
    default:
      for (size_t n = 1 + random() % 3; n > 0; --n) {
        bytes[random() % size] ^= static_cast<char>(1 << random() % 8);
      }
      return bytes;
  }
}

}  // namespace kiln::testing
