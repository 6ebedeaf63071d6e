"""Writes large but plain programs, each of at most 1 MB: wide ops, long chains, deep nests.

usage: generate.py FOLDER [SCALE]

SCALE is a part of the full size; 1 where it is not given.
"""
import os
import sys

SUM = 'add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n'


def module(entry, others=''):
    return 'HloModule m\n' + others + 'ENTRY e {\n' + '\n'.join(entry) + '\n}\n'


def names(count, prefix='x'):
    return ', '.join(f'{prefix}{i}' for i in range(count))


def tuple_of(shape, count):
    return '(' + ', '.join([shape] * count) + ')'


def concatenate(n):
    lines = ['x = f32[4] parameter(0)']
    lines += [f'x{i} = f32[1] slice(x), slice={{[{i % 4}:{i % 4 + 1}]}}' for i in range(n)]
    return module(lines + [f'ROOT r = f32[{n}] concatenate({names(n)}), dimensions={{0}}'])


def concatenate_parameter(n):
    return module(['x = f32[2] parameter(0)',
                   f'ROOT r = f32[{2 * n}] concatenate({", ".join(["x"] * n)}), dimensions={{0}}'])


def concatenate_constants(n):
    lines = [f'x{i} = s32[1] constant({{{i}}})' for i in range(n)]
    return module(lines + [f'ROOT r = s32[{n}] concatenate({names(n)}), dimensions={{0}}'])


def tuple_results(n):
    lines = ['x = f32[4] parameter(0)']
    lines += [f'x{i} = f32[4] multiply(x, x)' if i == 0 else f'x{i} = f32[4] add(x, x{i - 1})'
              for i in range(n)]
    return module(lines + [f'ROOT r = {tuple_of("f32[4]", n)} tuple({names(n)})'])


def add_chain(n):
    lines = ['x0 = f32[4] parameter(0)']
    lines += [f'x{i} = f32[4] add(x{i - 1}, x0)' for i in range(1, n)]
    return module(lines + [f'ROOT r = f32[4] negate(x{n - 1})'])


def mixed_chain(n):
    ops = ['sine', 'tanh', 'negate', 'exponential', 'abs', 'floor']
    lines = ['x0 = f32[8] parameter(0)']
    lines += [f'x{i} = f32[8] {ops[i * i % 6]}(x{i - 1})' for i in range(1, n)]
    return module(lines + [f'ROOT r = f32[8] negate(x{n - 1})'])


def add_tree(n):
    lines = [f'x{i} = f32[4] parameter({i})' for i in range(n)]
    at, last = n, [f'x{i}' for i in range(n)]
    while len(last) > 1:
        following = []
        for a, b in zip(last[::2], last[1::2]):
            lines.append(f'x{at} = f32[4] add({a}, {b})')
            following.append(f'x{at}')
            at += 1
        last = following + ([last[-1]] if len(last) % 2 else [])
    return module(lines + [f'ROOT r = f32[4] negate({last[0]})'])


def sort(n):
    parameters = '\n'.join(f'  a{i} = f32[] parameter({2 * i})\n  b{i} = f32[] parameter({2 * i + 1})'
                           for i in range(n))
    compare = 'less {\n' + parameters + '\n  ROOT c = pred[] compare(a0, b0), direction=LT\n}\n'
    lines = [f'x{i} = f32[16] parameter({i})' for i in range(n)]
    return module(lines + [f'ROOT r = {tuple_of("f32[16]", n)} sort({names(n)}), dimensions={{0}}, '
                           'to_apply=less'], compare)


def conditional(n):
    branches = ''.join(f'b{i} {{\n  p = f32[4] parameter(0)\n  c = f32[] constant({i})\n'
                       '  k = f32[4] broadcast(c), dimensions={}\n  ROOT r = f32[4] add(p, k)\n}\n'
                       for i in range(n))
    called = ', '.join(f'b{i}' for i in range(n))
    return module(['i = s32[] parameter(0)', 'x = f32[4] parameter(1)',
                   f'ROOT r = f32[4] conditional(i, {", ".join(["x"] * n)}), '
                   f'branch_computations={{{called}}}'], branches)


def while_state(n):
    shape = '(s32[], ' + ', '.join(['f32[2]'] * n) + ')'
    body = [f'  p = {shape} parameter(0)', '  i = s32[] get-tuple-element(p), index=0',
            '  one = s32[] constant(1)', '  j = s32[] add(i, one)']
    body += [f'  x{k} = f32[2] get-tuple-element(p), index={k + 1}' for k in range(n)]
    body += [f'  y{k} = f32[2] add(x{k}, x{(k + 1) % n})' for k in range(n)]
    body.append(f'  ROOT t = {shape} tuple(j, {names(n, "y")})')
    condition = (f'c {{\n  p = {shape} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n'
                 '  n = s32[] parameter_n\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n')
    condition = condition.replace('parameter_n', 'constant(3)')
    lines = ['z = s32[] constant(0)', 'x = f32[2] parameter(0)',
             f't = {shape} tuple(z, {", ".join(["x"] * n)})',
             f'ROOT w = {shape} while(t), condition=c, body=b']
    return module(lines, condition + 'b {\n' + '\n'.join(body) + '\n}\n')


def loop(k, inside):
    state = '(s32[], f32[])'
    return (f'c{k} {{\n p = {state} parameter(0)\n i = s32[] get-tuple-element(p), index=0\n'
            ' n = s32[] constant(1)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n'
            f'b{k} {{\n p = {state} parameter(0)\n i = s32[] get-tuple-element(p), index=0\n'
            ' x = f32[] get-tuple-element(p), index=1\n one = s32[] constant(1)\n'
            f' j = s32[] add(i, one)\n{inside} ROOT t = {state} tuple(j, y)\n}}\n')


def nested_whiles(n, trips=1):
    text = loop(0, ' y = f32[] sine(x)\n')
    for k in range(1, n):
        text += loop(k, ' z = s32[] constant(0)\n s = (s32[], f32[]) tuple(z, x)\n'
                     f' w = (s32[], f32[]) while(s), condition=c{k - 1}, body=b{k - 1}\n'
                     ' y = f32[] get-tuple-element(w), index=1\n')
    text = text.replace('n = s32[] constant(1)', f'n = s32[] constant({trips})')
    return module(['x = f32[] parameter(0)', 'z = s32[] constant(0)',
                   't = (s32[], f32[]) tuple(z, x)',
                   f'w = (s32[], f32[]) while(t), condition=c{n - 1}, body=b{n - 1}',
                   'ROOT r = f32[] get-tuple-element(w), index=1'], text)


def nested_conditionals(n):
    state = '(pred[], f32[4])'
    text = f'b0 {{\n p = {state} parameter(0)\n ROOT x = f32[4] get-tuple-element(p), index=1\n}}\n'
    for k in range(1, n):
        text += (f'f{k} {{\n p = {state} parameter(0)\n x = f32[4] get-tuple-element(p), index=1\n'
                 ' ROOT r = f32[4] negate(x)\n}\n'
                 f'b{k} {{\n p = {state} parameter(0)\n q = pred[] get-tuple-element(p), index=0\n'
                 ' x = f32[4] get-tuple-element(p), index=1\n y = f32[4] sine(x)\n'
                 f' t = {state} tuple(q, y)\n'
                 f' ROOT r = f32[4] conditional(q, t, p), true_computation=b{k - 1}, '
                 f'false_computation=f{k}\n}}\n')
    return module(['q = pred[] parameter(0)', 'x = f32[4] parameter(1)',
                   f't = {state} tuple(q, x)',
                   f'ROOT r = f32[4] call(t), to_apply=b{n - 1}'], text)


def nested_calls(n):
    text = 'c0 {\n p = f32[4] parameter(0)\n ROOT r = f32[4] sine(p)\n}\n'
    for k in range(1, n):
        text += (f'c{k} {{\n p = f32[4] parameter(0)\n q = f32[4] call(p), to_apply=c{k - 1}\n'
                 ' ROOT r = f32[4] add(p, q)\n}\n')
    return module(['x = f32[4] parameter(0)', f'ROOT r = f32[4] call(x), to_apply=c{n - 1}'], text)


def nested_fusions(n):
    text = 'c0 {\n p = f32[4] parameter(0)\n ROOT r = f32[4] sine(p)\n}\n'
    for k in range(1, n):
        text += (f'c{k} {{\n p = f32[4] parameter(0)\n q = f32[4] fusion(p), kind=kLoop, '
                 f'calls=c{k - 1}\n ROOT r = f32[4] add(p, q)\n}}\n')
    return module(['x = f32[4] parameter(0)',
                   f'ROOT r = f32[4] fusion(x), kind=kLoop, calls=c{n - 1}'], text)


def nested_tuples(n):
    return module(['x = f32[4] parameter(0)',
                   'x0 = (f32[4]) tuple(x)'] +
                  [f'x{i} = {"(" * (i + 1)}f32[4]{")" * (i + 1)} tuple(x{i - 1})'
                   for i in range(1, n)] +
                  [f'ROOT r = ({"(" * n}f32[4]{")" * n}) tuple(x{n - 1})'])


def parameters(n):
    lines = [f'x{i} = f32[2] parameter({i})' for i in range(n)]
    lines += [f'y{i} = f32[2] sine(x{i})' for i in range(n)]
    return module(lines + [f'ROOT r = {tuple_of("f32[2]", n)} tuple({names(n, "y")})'])


def constant_text(n):
    return module([f'c = s32[{n}] constant({{{", ".join(str(i) for i in range(n))}}})',
                   f'x = s32[{n}] parameter(0)', f'ROOT r = s32[{n}] add(c, x)'])


def reduce_wide(n):
    fold = ('f {\n' + '\n'.join(f'  a{i} = f32[] parameter({i})' for i in range(2 * n)) + '\n' +
            '\n'.join(f'  s{i} = f32[] add(a{i}, a{n + i})' for i in range(n)) +
            f'\n  ROOT t = {tuple_of("f32[]", n)} tuple({names(n, "s")})\n}}\n')
    lines = [f'x{i} = f32[8,4] parameter({i})' for i in range(n)] + ['z = f32[] constant(0)']
    lines.append(f'ROOT r = {tuple_of("f32[8]", n)} reduce({names(n)}, {", ".join(["z"] * n)}), '
                 'dimensions={1}, to_apply=f')
    return module(lines, fold)


def reductions(n):
    lines = ['x = f32[16,64] parameter(0)', 'z = f32[] constant(0)']
    for i in range(n):
        lines.append(f's{i} = f32[16,64] sine(x)' if i == 0 else
                     f's{i} = f32[16,64] multiply(x, s{i - 1})')
        lines.append(f'r{i} = f32[16] reduce(s{i}, z), dimensions={{1}}, to_apply=add')
    return module(lines + [f'ROOT r = {tuple_of("f32[16]", n)} tuple({names(n, "r")})'], SUM)


def dots(n):
    lines = ['x0 = f32[8,8] parameter(0)', 'w = f32[8,8] parameter(1)']
    lines += [f'x{i} = f32[8,8] dot(x{i - 1}, w), lhs_contracting_dims={{1}}, '
              'rhs_contracting_dims={0}' for i in range(1, n)]
    return module(lines + [f'ROOT r = f32[8,8] negate(x{n - 1})'])


def slices_doubling(n):
    size = 4 * n + 8
    lines = [f'x0 = f32[{size}] parameter(0)']
    for i in range(1, n):
        size -= 3
        lines += [f'a{i} = f32[{size}] slice(x{i - 1}), slice={{[0:{size}]}}',
                  f'b{i} = f32[{size}] slice(x{i - 1}), slice={{[3:{size + 3}]}}',
                  f'x{i} = f32[{size}] multiply(a{i}, b{i})']
    return module(lines + [f'ROOT r = f32[{size}] negate(x{n - 1})'])


def halves_doubling(n):
    size = 1 << n
    lines = [f'x0 = f32[{size}] parameter(0)']
    for i in range(1, n):
        lines += [f'r{i} = f32[{size}] reverse(x{i - 1}), dimensions={{0}}',
                  f's{i} = f32[{size}] reshape(x{i - 1})',
                  f'g{i} = f32[{2},{size // 2}] reshape(r{i})',
                  f'h{i} = f32[{size // 2},2] transpose(g{i}), dimensions={{1,0}}',
                  f'k{i} = f32[{size}] reshape(h{i})', f'x{i} = f32[{size}] add(s{i}, k{i})']
    return module(lines + [f'ROOT r = f32[{size}] negate(x{n - 1})'])


def powers(n):
    lines = ['x0 = c128[4] parameter(0)']
    lines += [f'x{i} = c128[4] power(x{i - 1}, x0)' for i in range(1, n)]
    return module(lines + [f'ROOT r = c128[4] negate(x{n - 1})'])


def convolutions(n):
    lines = ['x0 = f32[1,8,8,2] parameter(0)', 'w = f32[3,3,2,2] parameter(1)']
    lines += [f'x{i} = f32[1,8,8,2] convolution(x{i - 1}, w), window={{size=3x3 pad=1_1x1_1}}, '
              'dim_labels=b01f_01io->b01f' for i in range(1, n)]
    return module(lines + [f'ROOT r = f32[1,8,8,2] negate(x{n - 1})'])


def random_bits(n):
    lines = ['s0 = u64[2] parameter(0)']
    for i in range(n):
        lines += [f't{i} = (u64[2], u32[5]) rng-bit-generator(s{i}), algorithm=rng_three_fry',
                  f's{i + 1} = u64[2] get-tuple-element(t{i}), index=0']
    return module(lines + [f'ROOT r = u64[2] copy(s{n})'])


def gathers(n):
    lines = ['x0 = f32[16] parameter(0)', 'i = s32[16,1] parameter(1)']
    lines += [f'x{k} = f32[16] gather(x{k - 1}, i), offset_dims={{}}, collapsed_slice_dims={{0}}, '
              'start_index_map={0}, index_vector_dim=1, slice_sizes={1}' for k in range(1, n)]
    return module(lines + [f'ROOT r = f32[16] negate(x{n - 1})'])


def updates(n):
    lines = [f'x0 = f32[{n}] parameter(0)', 'u = f32[1] parameter(1)']
    lines += [f'i{k} = s32[] constant({k})' for k in range(n)]
    lines += [f'x{k + 1} = f32[{n}] dynamic-update-slice(x{k}, u, i{k})' for k in range(n)]
    return module(lines + [f'ROOT r = f32[{n}] negate(x{n})'])


def pads(n):
    lines = ['x = f32[1] constant({2})', 'z = f32[] constant(1)']
    for k in range(n):
        lines += [f'p{k} = f32[{250000 + k}] pad(x, z), padding={k}_249999',
                  f's{k} = f32[1] slice(p{k}), slice={{[{k}:{k + 1}]}}']
    return module(lines + [f'ROOT r = f32[{n}] concatenate({names(n, "s")}), dimensions={{0}}'])


def folded_reductions(n):
    lines = ['z = f32[] constant(1)']
    for k in range(n):
        lines += [f'i{k} = f32[{60000 - k}] iota(), iota_dimension=0',
                  f'l{k} = f32[{60000 - k}] kiln.lgamma(i{k})',
                  f'r{k} = f32[] reduce(l{k}, z), dimensions={{0}}, to_apply=add']
    return module(lines + [f'ROOT r = {tuple_of("f32[]", n)} tuple({names(n, "r")})'], SUM)


def long_chain(n, shape):
    """Of ops on x0 that are all different: none is the same as another."""
    ops = ['sine', 'tanh', 'divide', 'logistic', 'add', 'cosine', 'power', 'subtract']
    lines = []
    for i in range(1, n):
        op = ops[(i * i + i // 3) % len(ops)]
        other = f', x{i * 7919 % i}' if op in ('divide', 'add', 'power', 'subtract') else ''
        lines.append(f'  x{i} = {shape} {op}(x{i - 1}{other})')
    return '\n'.join(lines)


def scalars(name, n, dtype, root):
    return (f'{name} {{\n  x0 = {dtype}[] parameter(0)\n  y = {dtype}[] parameter(1)\n' +
            long_chain(n, f'{dtype}[]') + f'\n  ROOT r = {root.format(f"x{n - 1}", "y")}\n}}\n')


def long_reducer(n):
    return module(['x = bf16[64,32] parameter(0)', 'z = bf16[] constant(0)',
                   'ROOT r = bf16[64] reduce(x, z), dimensions={1}, to_apply=f'],
                  scalars('f', n, 'bf16', 'bf16[] add({}, {})'))


def long_comparator(n):
    return module(['x = f32[64] parameter(0)',
                   'ROOT r = f32[64] sort(x), dimensions={0}, to_apply=f'],
                  scalars('f', n, 'f32', 'pred[] compare({}, {}), direction=LT'))


def long_update(n):
    return module(['x = f32[64] parameter(0)', 'i = s32[5,1] parameter(1)',
                   'u = f32[5] parameter(2)',
                   'ROOT r = f32[64] scatter(x, i, u), update_window_dims={}, '
                   'inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, '
                   'index_vector_dim=1, to_apply=f'],
                  scalars('f', n, 'f32', 'f32[] add({}, {})'))


def long_window(n):
    return module(['x = f32[64] parameter(0)', 'z = f32[] constant(0)',
                   'ROOT r = f32[60] reduce-window(x, z), window={size=5}, to_apply=f'],
                  scalars('f', n, 'f32', 'f32[] add({}, {})'))


def long_fusion(n):
    return module(['x = bf16[64,32] parameter(0)',
                   'ROOT r = bf16[64,32] fusion(x), kind=kLoop, calls=f'],
                  'f {\n  x0 = bf16[64,32] parameter(0)\n' + long_chain(n, 'bf16[64,32]') +
                  f'\n  ROOT r = bf16[64,32] negate(x{n - 1})\n}}\n')


def stablehlo_chain(n):
    lines = [f'  %{i} = stablehlo.add %{i - 1 if i else "arg0"}, %arg0 : tensor<4xf32>'
             for i in range(n)]
    return ('func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n' + '\n'.join(lines) +
            f'\n  return %{n - 1} : tensor<4xf32>\n}}\n')


def stablehlo_calls(n):
    text = ('func.func private @f0(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n'
            '  %0 = stablehlo.sine %arg0 : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n')
    for k in range(1, n):
        text += (f'func.func private @f{k}(%arg0: tensor<4xf32>) -> tensor<4xf32> {{\n'
                 f'  %0 = call @f{k - 1}(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n'
                 '  %1 = stablehlo.add %0, %arg0 : tensor<4xf32>\n  return %1 : tensor<4xf32>\n}\n')
    return text + ('func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n'
                   f'  %0 = call @f{n - 1}(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n'
                   '  return %0 : tensor<4xf32>\n}\n')


def stablehlo_concatenate(n):
    operands = ', '.join(['%arg0'] * n)
    types = ', '.join(['tensor<2xf32>'] * n)
    return (f'func.func @main(%arg0: tensor<2xf32>) -> tensor<{2 * n}xf32> {{\n'
            f'  %0 = stablehlo.concatenate {operands}, dim = 0 : ({types}) -> '
            f'tensor<{2 * n}xf32>\n  return %0 : tensor<{2 * n}xf32>\n}}\n')


def stablehlo_nested_ifs(n):
    text = ''.join('  ' * k + f'%r{k} = "stablehlo.if"(%arg0) ({{\n' for k in range(n))
    text += '  ' * n + 'stablehlo.return %arg1 : tensor<4xf32>\n'
    for k in reversed(range(n)):
        text += ('  ' * k + '}, {\n' + '  ' * k + '  %n = stablehlo.negate %arg1 : tensor<4xf32>\n' +
                 '  ' * k + '  stablehlo.return %n : tensor<4xf32>\n' +
                 '  ' * k + '}) : (tensor<i1>) -> tensor<4xf32>\n')
        if k:
            text += '  ' * k + f'stablehlo.return %r{k} : tensor<4xf32>\n'
    return ('func.func @main(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> tensor<4xf32> {\n' + text +
            '  return %r0 : tensor<4xf32>\n}\n')


# The full size of each.
HLO = [(concatenate, 15000), (concatenate_parameter, 20000), (concatenate_constants, 20000),
       (tuple_results, 20000), (add_chain, 25000), (mixed_chain, 25000), (add_tree, 13000),
       (sort, 1000), (conditional, 5000), (while_state, 7000), (nested_whiles, 400),
       (nested_conditionals, 400), (nested_calls, 450), (nested_fusions, 450), (nested_tuples, 300),
       (parameters, 10000), (constant_text, 120000), (reduce_wide, 1000), (reductions, 5000),
       (dots, 8000), (slices_doubling, 1000), (halves_doubling, 20), (powers, 10000),
       (convolutions, 5000), (random_bits, 8000), (gathers, 5000), (updates, 10000), (pads, 8000), (folded_reductions, 4000)]
# Deeper than anything that is taken.
DEEP = [(nested_whiles, 2000), (nested_conditionals, 2000), (nested_calls, 8000),
        (nested_fusions, 7000)]
# One function of LLVM's each; as large in every scale.
LONG = [(long_reducer, 4000), (long_comparator, 13000), (long_update, 13000), (long_window, 6000),
        (long_fusion, 4000)]
STABLEHLO = [(stablehlo_chain, 15000), (stablehlo_calls, 450), (stablehlo_concatenate, 20000),
             (stablehlo_nested_ifs, 180)]


def main():
    folder, scale = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.makedirs(folder, exist_ok=True)

    def write(name, text):
        assert len(text) <= 1 << 20, (name, len(text))
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)

    for make, size in HLO:
        write(make.__name__ + '.hlo', make(max(2, int(size * scale))))
    for make, size in LONG:
        write(make.__name__ + '.hlo', make(size))
    for make, size in DEEP:
        write(make.__name__ + '_deep.hlo', make(size))
    for make, size in STABLEHLO:
        write(make.__name__ + '.mlir', make(max(2, int(size * scale))))


if __name__ == '__main__':
    main()
