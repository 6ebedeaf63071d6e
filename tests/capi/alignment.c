/* Arguments in memory that is aligned as their elements are, and not further: the same results, and
 * no copies but where a function wants more. */
#include <stdint.h>

#include "testing.h"

static const char* const kPrograms[] = {
    /* Elementwise, whole vectors and what is left. */
    "ENTRY e { x = f32[1003] parameter(0)\n y = f32[1003] parameter(1)\n"
    " ROOT z = f32[1003] add(x, y) }",
    "ENTRY e { x = u8[4099] parameter(0)\n y = u8[4099] parameter(1)\n"
    " ROOT z = u8[4099] maximum(x, y) }",
    "ENTRY e { x = f64[70,90] parameter(0)\n t = f64[90,70] transpose(x), dimensions={1,0}\n"
    " ROOT z = f64[90,70] negate(t) }",
    "ENTRY e { x = bf16[33,64] parameter(0)\n y = f32[33,64] convert(x)\n"
    " ROOT z = f32[33,64] tanh(y) }",
    "ENTRY e { x = c64[130] parameter(0)\n ROOT z = c64[130] multiply(x, x) }",
    /* Copies, small and large, and slices. */
    "ENTRY e { ROOT x = f32[5] parameter(0) }",
    "ENTRY e { ROOT x = f32[100003] parameter(0) }",
    "ENTRY e { x = f32[40,64] parameter(0)\n i = s32[] parameter(1)\n z = s32[] constant(0)\n"
    " ROOT s = f32[8,64] dynamic-slice(x, i, z), dynamic_slice_sizes={8,64} }",
    "ENTRY e { x = f32[40,64] parameter(0)\n u = f32[8,64] parameter(1)\n z = s32[] constant(3)\n"
    " ROOT s = f32[40,64] dynamic-update-slice(x, u, z, z) }",
    /* Rows: sums, and softmax. */
    "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n"
    "ENTRY e { x = f32[48,272] parameter(0)\n z = f32[] constant(0)\n m = f32[] constant(-inf)\n"
    " most = f32[48] reduce(x, m), dimensions={1}, to_apply=max\n"
    " wide = f32[48,272] broadcast(most), dimensions={0}\n s = f32[48,272] subtract(x, wide)\n"
    " p = f32[48,272] exponential(s)\n t = f32[48] reduce(p, z), dimensions={1}, to_apply=sum\n"
    " tw = f32[48,272] broadcast(t), dimensions={0}\n ROOT r = f32[48,272] divide(p, tw) }",
    "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "ENTRY e { x = f32[300,128] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT s = f32[128] reduce(x, z), dimensions={0}, to_apply=sum }",
    /* Products: packed or not, narrow, in a chain, and with a vector. */
    "ENTRY e { x = f32[64,96] parameter(0)\n y = f32[96,64] parameter(1)\n"
    " ROOT d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "ENTRY e { x = f32[200,160] parameter(0)\n y = f32[160,200] parameter(1)\n"
    " d = f32[200,200] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    " ROOT t = f32[200,200] tanh(d) }",
    "ENTRY e { x = bf16[96,128] parameter(0)\n y = bf16[128,96] parameter(1)\n"
    " ROOT d = f32[96,96] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "ENTRY e { x = f32[300,256] parameter(0)\n y = f32[256] parameter(1)\n"
    " ROOT d = f32[300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "ENTRY e { x = f32[2,12,12,16] parameter(0)\n k = f32[3,3,16,32] parameter(1)\n"
    " ROOT c = f32[2,10,10,32] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f }",
    /* One element after the other. */
    "ENTRY e { x = f32[100,16] parameter(0)\n i = s32[30,1] parameter(1)\n"
    " ROOT g = f32[30,16] gather(x, i), offset_dims={1}, collapsed_slice_dims={0},"
    " start_index_map={0}, index_vector_dim=1, slice_sizes={1,16} }",
    "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "ENTRY e { x = f32[100,16] parameter(0)\n i = s32[30,1] parameter(1)\n"
    " u = f32[30,16] parameter(2)\n"
    " ROOT g = f32[100,16] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
    " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
    "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    " ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = f32[20000] parameter(0)\n"
    " ROOT s = f32[20000] sort(x), dimensions={0}, to_apply=less }",
    "less { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = f64[] parameter(2)\n"
    " d = f64[] parameter(3)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = s32[30,100] parameter(0)\n y = f64[30,100] parameter(1)\n"
    " ROOT s = (s32[30,100], f64[30,100]) sort(x, y), dimensions={1}, is_stable=true,"
    " to_apply=less }",
    /* Read as something else. */
    "ENTRY e { x = u8[96,8] parameter(0)\n ROOT z = f64[96] bitcast-convert(x) }",
    "ENTRY e { x = f32[96,2] parameter(0)\n y = u64[96] bitcast-convert(x)\n"
    " o = u64[96] parameter(1)\n ROOT z = u64[96] xor(y, o) }",
    /* Loops and branches. */
    "go { s = (s32[], f32[333]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
    " n = s32[] constant(5)\n ROOT p = pred[] compare(i, n), direction=LT }\n"
    "next { s = (s32[], f32[333]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
    " x = f32[333] get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
    " j = s32[] add(i, one)\n r = f32[333] reverse(x), dimensions={0}\n y = f32[333] add(x, r)\n"
    " ROOT t = (s32[], f32[333]) tuple(j, y) }\n"
    "ENTRY e { x = f32[333] parameter(0)\n i = s32[] parameter(1)\n"
    " t = (s32[], f32[333]) tuple(i, x)\n"
    " ROOT w = (s32[], f32[333]) while(t), condition=go, body=next }",
    "twice { a = f32[80] parameter(0)\n ROOT b = f32[80] add(a, a) }\n"
    "minus { a = f32[80] parameter(0)\n ROOT b = f32[80] negate(a) }\n"
    "ENTRY e { i = s32[] parameter(0)\n x = f32[80] parameter(1)\n"
    " ROOT c = f32[80] conditional(i, x, x), branch_computations={twice, minus} }",
    /* Functions get what they are promised. */
    "COPIES ENTRY e { x = f32[64] parameter(0)\n"
    " ROOT c = f32[64] custom-call(x), custom_call_target=\"test.aligned\" }",
    "COPIES ENTRY e { x = c64[8,32] parameter(0)\n"
    " ROOT f = c64[8,32] fft(x), fft_type=FFT, fft_length={32} }",
};

static int64_t allocated = 0;

static void* count_allocate(void* user_data, size_t bytes, size_t alignment) {
  (void)user_data;
  allocated += (int64_t)bytes;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void count_deallocate(void* user_data, void* memory, size_t bytes, size_t alignment) {
  (void)user_data, (void)bytes, (void)alignment;
  free(memory);
}

static kiln_error* copy_aligned(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  CHECK((uintptr_t)call->operands[0]->data % KILN_ALIGNMENT == 0);
  CHECK((uintptr_t)call->results[0]->data % KILN_ALIGNMENT == 0);
  memcpy(call->results[0]->data, call->operands[0]->data, (size_t)call->operands[0]->byte_size);
  return NULL;
}

enum { MOST = 4, ROOM = 1 << 19 };
static unsigned char memory[MOST][ROOM + 128] __attribute__((aligned(64)));
static unsigned char expected[ROOM], found[ROOM];

static size_t width_of(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_U8:
      return 1;
    case KILN_BF16:
      return 2;
    case KILN_F32:
    case KILN_S32:
      return 4;
    default:
      return 8;
  }
}

static void fill(unsigned char* to, kiln_dtype dtype, int64_t bytes, size_t argument) {
  for (int64_t at = 0, i = 0; at < bytes; ++i) {
    const int64_t number = (i * 37 + (int64_t)argument * 11) % 61;
    const float f = (float)number / 8;
    const double d = (double)f;
    const int32_t s = (int32_t)(number % 30);
    switch (dtype) {
      case KILN_S32:
        memcpy(to + at, &s, 4);
        at += 4;
        break;
      case KILN_F32:
      case KILN_C64:
        memcpy(to + at, &f, 4);
        at += 4;
        break;
      case KILN_F64:
        memcpy(to + at, &d, 8);
        at += 8;
        break;
      case KILN_BF16:
        memcpy(to + at, (const unsigned char*)&f + 2, 2);
        at += 2;
        break;
      default:
        to[at++] = (unsigned char)number;
    }
  }
}

/* The results, with each argument so many elements behind a multiple of 64 bytes. Returns what the
 * allocator gave for it. */
static int64_t run(kiln_executable* e, size_t elements, size_t at_least, unsigned char* out) {
  kiln_buffer *arguments[MOST] = {NULL}, *results[MOST] = {NULL};
  const size_t argument_count = kiln_executable_argument_count(e);
  const size_t result_count = kiln_executable_result_count(e);
  for (size_t i = 0; i < argument_count; ++i) {
    kiln_shape shape = KILN_SHAPE_INIT;
    if (!OK(kiln_executable_argument_shape(e, i, &shape))) return -1;
    size_t width = width_of(shape.dtype);
    if (width < at_least) width = at_least;
    unsigned char* data = memory[i] + elements * width;
    fill(data, shape.dtype, shape.byte_size, i);
    OK(kiln_buffer_borrow_host(kiln_executable_device(e), shape.dtype, shape.dims, shape.rank, data,
                               (size_t)shape.byte_size, NULL, &arguments[i]));
  }
  const int64_t before = allocated;
  OK(kiln_executable_run(e, NULL, arguments, argument_count, results, result_count));
  const int64_t taken = allocated - before;
  int64_t bytes = 0;
  for (size_t i = 0; i < result_count && results[i]; ++i) {
    kiln_shape shape = KILN_SHAPE_INIT;
    OK(kiln_buffer_shape(results[i], &shape));
    OK(kiln_buffer_copy_to_host(results[i], out + bytes, (size_t)shape.byte_size));
    bytes += shape.byte_size;
    kiln_buffer_release(results[i]);
  }
  for (size_t i = 0; i < argument_count; ++i) kiln_buffer_release(arguments[i]);
  return taken;
}

int main(void) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  options.allocate = count_allocate;
  options.deallocate = count_deallocate;
  options.log_level = KILN_LOG_OFF;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) return 1;
  OK(kiln_context_register_call(context, "test.aligned", 12, copy_aligned, NULL, NULL));
  const char* const devices[] = {"CPU:0", "REFERENCE:0"};
  for (size_t p = 0; p < sizeof kPrograms / sizeof *kPrograms; ++p) {
    for (int d = 0; d < 2; ++d) {
      if (d == 1 && p % 6 != 0) continue;
      const int failed = failed_checks;
      const int copies = strncmp(kPrograms[p], "COPIES ", 7) == 0;
      char text[4096];
      snprintf(text, sizeof text, "HloModule m\n%s", kPrograms[p] + (copies ? 7 : 0));
      kiln_graph* graph = NULL;
      kiln_executable* e = NULL;
      if (OK(kiln_graph_from_hlo_text(context, text, strlen(text), &graph))) {
        kiln_compile_options compile = KILN_COMPILE_OPTIONS_INIT;
        compile.device = find_device(context, devices[d]);
        OK(kiln_graph_compile(graph, &compile, &e));
        kiln_graph_release(graph);
      }
      if (e) {
        memset(expected, 0, sizeof expected);
        run(e, 0, 1, expected);
        const int64_t aligned = run(e, 0, 1, expected);
        for (size_t elements = 1; elements < 4; ++elements) {
          memset(found, 0, sizeof found);
          run(e, elements, 1, found);
          CHECK(memcmp(expected, found, sizeof found) == 0);
          /* At a multiple of 16 bytes, as other libraries have them, nothing is copied. */
          memset(found, 0, sizeof found);
          const int64_t taken = run(e, elements, 16, found);
          CHECK(memcmp(expected, found, sizeof found) == 0);
#if defined(__x86_64__)
          if (__builtin_cpu_supports("avx"))
            CHECK(copies && d == 0 ? taken > aligned : taken == aligned);
#endif
        }
        kiln_executable_release(e);
      }
      if (failed_checks != failed) printf("on %s: %s\n", devices[d], kPrograms[p]);
    }
  }
  kiln_context_release(context);
  return test_result();
}
