// Recipes of ops that take many arguments, or computations.
#pragma once

#include "calls/maker.h"

namespace kiln::fuzz {

void BatchNorm(Maker& m);
void Like(Maker& m);
void Collective(Maker& m);
void Transfer(Maker& m);
void Reduction(Maker& m);
void Gather(Maker& m);
void Scatter(Maker& m);
void Dot(Maker& m);
void Convolution(Maker& m);
void While(Maker& m);
void Conditional(Maker& m);
void CustomCall(Maker& m);
void HostCallback(Maker& m);
void Message(Maker& m);  // print and assert
void Assign(Maker& m);
void Attention(Maker& m);
void Where(Maker& m);

}  // namespace kiln::fuzz
