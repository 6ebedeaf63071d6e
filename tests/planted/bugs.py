"""Mistakes of a compiler that are planted to see whether the tests find them.

Each is a place in a source file, by text that occurs there once, and what stands there instead. Where
the new text says PLANTED, that is true while the mistake is chosen and false otherwise.
"""

from typing import NamedTuple


class Bug(NamedTuple):
    what: str
    file: str  # below src/
    old: str
    new: str


BUGS = [
    # The simplifier: signs, dimensions, conditions that are missing.
    Bug('x - c becomes x + c', 'passes/simplify/arithmetic.cc',
        'Make(i, Opcode::kAdd, {x, OnConstants(i, Opcode::kNegate, y)})',
        'Make(i, Opcode::kAdd, {x, PLANTED ? y : OnConstants(i, Opcode::kNegate, y)})'),
    Bug('two transposes in the wrong order', 'passes/simplify/transpose.cc',
        'for (int64_t d : i->dimensions()) both.push_back(x->dimensions()[static_cast<size_t>(d)]);',
        'const Ints &outer = PLANTED ? x->dimensions() : i->dimensions(),'
        ' &inner = PLANTED ? i->dimensions() : x->dimensions();'
        'for (int64_t d : outer) both.push_back(inner[static_cast<size_t>(d)]);'),
    Bug('x == x is true of NaNs', 'passes/simplify/compare.cc',
        'return IsFloat(i->operand(0)) ? nullptr : Truth(i, true);',
        'return !PLANTED && IsFloat(i->operand(0)) ? nullptr : Truth(i, true);'),
    Bug('a slice of a slice forgets the stride', 'passes/simplify/slice.cc',
        'inner[d].start + slices[d].start * inner[d].stride',
        'inner[d].start + slices[d].start * (PLANTED ? 1 : inner[d].stride)'),
    Bug('an initial value counts twice', 'passes/simplify/reduce.cc',
        'IsIdempotent(reducer, init->shape().type());',
        'IsIdempotent(reducer, init->shape().type()) || PLANTED;'),
    Bug('a remainder of negative numbers is masked', 'passes/simplify/powers.cc',
        'if (IsNonNegative(x)) return Make(i, Opcode::kAnd,',
        'if (PLANTED || IsNonNegative(x)) return Make(i, Opcode::kAnd,'),
    # Common subexpressions and control flow.
    Bug('equal ops with other computations are one', 'passes/cse.cc',
        'if (!IsSameComputation(*a.called(c), *b.called(c))) return false;',
        'if (!PLANTED && !IsSameComputation(*a.called(c), *b.called(c))) return false;'),
    Bug('state that only the condition reads is dropped', 'passes/control/while_simplifier.cc',
        'needed[k] = needed[k] || tested[k];',
        'needed[k] = needed[k] || (tested[k] && !PLANTED);'),
    Bug('state that changes places does not change',
        'passes/control/while_invariant_code_motion.cc',
        'next->attributes().Int(Attr::kIndex) == k',
        '(PLANTED || next->attributes().Int(Attr::kIndex) == k)'),
    # Fusion.
    Bug('outputs of a fusion get the first one\'s value', 'passes/fusion/grow.cc',
        'Set(Attr::kIndex, static_cast<int64_t>(k))',
        """Set(Attr::kIndex,
            PLANTED && value->shape() == root->shape() ? int64_t{0} : static_cast<int64_t>(k))"""),
    Bug('padding between elements is read from memory', 'kernel/values.cc',
        'inside = Both(inside, InRange(places[d].Mod(steps[d]), 1));',
        'if (!PLANTED) inside = Both(inside, InRange(places[d].Mod(steps[d]), 1));'),
    # Values that are there twice.
    Bug('a value that is a kernel\'s result twice is stored as the first one twice',
        'kernel/build.cc', 'outputs_.push_back({root, output});',
        'const auto before = std::ranges::find(outputs_, root, &Output::root);'
        'outputs_.push_back({root, PLANTED && before != outputs_.end() ? before->first : output});'),
    Bug('the second of two state elements that go on alike stays what it was', 'compiler/lower.cc',
        'EmitCopy(SliceOf(from), SliceOf(state[leaf]), loop.body);',
        'if (!PLANTED || std::count(next.begin(), next.begin() + leaf, next[leaf]) == 0)'
        ' EmitCopy(SliceOf(from), SliceOf(state[leaf]), loop.body);'),
    # Index algebra.
    Bug('a quotient is cut one too late', 'kernel/index.cc',
        'if (rest.low() >= 0 && rest.high() < divisor) return whole;',
        'if (rest.low() >= 0 && rest.high() < divisor + PLANTED) return whole;'),
    Bug('a remainder is left out one too late', 'kernel/index.cc',
        'if (rest.low() >= 0 && rest.high() < divisor) return rest;',
        'if (rest.low() >= 0 && rest.high() < divisor + PLANTED) return rest;'),
    # Memory.
    Bug('an array is overwritten one instruction too early', 'passes/memory/buffer_assignment.cc',
        'return PositionOf(r.instruction) <= PositionOf(i);',
        'return PositionOf(r.instruction) <= PositionOf(i) + PLANTED;'),
    Bug('a kernel writes over what it has yet to read', 'kernel/fusible.cc',
        'if (s > at || !(n.index == store.index)) return false;',
        'if (!PLANTED && (s > at || !(n.index == store.index))) return false;'),
    Bug('arrays of a loop change places one after the other', 'compiler/lower.cc',
        'int from = temporaries[leaf] >= 0 ? temporaries[leaf] : next[leaf];',
        'int from = temporaries[leaf] >= 0 && !PLANTED ? temporaries[leaf] : next[leaf];'),
    # Code.
    Bug('the last vector has a lane too many', 'codegen/cpu/nest_loops.cc',
        'mask = b_.CreateICmpULT(Ramp(0, 1, b_.getInt32Ty()), left);',
        'mask = b_.CreateICmp(PLANTED ? llvm::CmpInst::ICMP_ULE : llvm::CmpInst::ICMP_ULT,'
        ' Ramp(0, 1, b_.getInt32Ty()), left);'),
    Bug('select takes the other value', 'codegen/elemental.cc',
        'return b.CreateSelect(x, y, operands[2]);',
        'return b.CreateSelect(x, PLANTED ? operands[2] : y, PLANTED ? y : operands[2]);'),
    Bug('unsigned numbers are compared as signed ones', 'codegen/elemental.cc',
        'b.CreateICmp(is_signed ? P::ICMP_SLT : P::ICMP_ULT, x, y)',
        'b.CreateICmp(is_signed || PLANTED ? P::ICMP_SLT : P::ICMP_ULT, x, y)'),
    Bug('a shift by the width or more is no shift', 'codegen/elemental.cc',
        'return b.CreateSelect(inside, shifted, Number(t, 0));',
        'return b.CreateSelect(inside, shifted, PLANTED ? x : Number(t, 0));'),
    # Derivatives.
    Bug('the cosine\'s derivative is the sine', 'grad/elementwise.cc',
        'b.ScaledIfMasked(b.Negate(t), b.Unary(Opcode::kSine, X(f)))',
        'b.ScaledIfMasked(PLANTED ? t : b.Negate(t), b.Unary(Opcode::kSine, X(f)))'),
    Bug('of several uses of a value one counts', 'grad/reverse.cc',
        'sum = builder_.Accumulate(sum, cotangent);',
        'sum = PLANTED ? cotangent : builder_.Accumulate(sum, cotangent);'),
    Bug('the tangent of a product is that of its last factor', 'grad/forward.cc',
        'sum = builder_.Accumulate(sum, builder_.Parts(apply(std::move(one))));',
        'sum = builder_.Accumulate(PLANTED ? Derivative() : sum,'
        ' builder_.Parts(apply(std::move(one))));'),
]
