/* Truth values of any byte: what is not 0 is true, for every op that takes them, on every device,
 * and what comes out is 0 or 1. */
#include <stdint.h>

#include "testing.h"

/* The types are f32 of any values, s32 within the preds' sizes, and pred. */
static const char* const kPrograms[] = {
    /* Elementwise. */
    "ENTRY e { p = pred[256] parameter(0)\n a = f32[256] parameter(1)\n b = f32[256] parameter(2)\n"
    " ROOT r = f32[256] select(p, a, b) }",
    "ENTRY e { p = pred[] parameter(0)\n a = f32[256] parameter(1)\n b = f32[256] parameter(2)\n"
    " ROOT r = f32[256] select(p, a, b) }",
    "ENTRY e { p = pred[256] parameter(0)\n q = pred[256] parameter(1)\n r = pred[256] "
    "parameter(2)\n"
    " ROOT s = pred[256] select(p, q, r) }",
    "ENTRY e { p = pred[256] parameter(0)\n a = s8[256] convert(p)\n b = u8[256] convert(p)\n"
    " c = s32[256] convert(p)\n d = f32[256] convert(p)\n f = f64[256] convert(p)\n"
    " g = bf16[256] convert(p)\n h = c64[256] convert(p)\n i = s64[256] convert(p)\n"
    " j = s4[256] convert(p)\n k = f8e4m3fn[256] convert(p)\n l = f16[256] convert(p)\n"
    " m = pred[256] convert(p)\n ROOT t = (s8[256], u8[256], s32[256], f32[256], f64[256],"
    " bf16[256], c64[256], s64[256], s4[256], f8e4m3fn[256], f16[256], pred[256])"
    " tuple(a, b, c, d, f, g, h, i, j, k, l, m) }",
    "ENTRY e { p = pred[256] parameter(0)\n q = pred[256] parameter(1)\n a = pred[256] and(p, q)\n"
    " b = pred[256] or(p, q)\n c = pred[256] xor(p, q)\n d = pred[256] not(p)\n"
    " f = pred[256] compare(p, q), direction=EQ\n g = pred[256] compare(p, q), direction=LT\n"
    " h = pred[256] compare(p, q), direction=GE\n i = pred[256] maximum(p, q)\n"
    " j = pred[256] minimum(p, q)\n"
    " ROOT t = (pred[256], pred[256], pred[256], pred[256], pred[256], pred[256], pred[256],"
    " pred[256], pred[256]) tuple(a, b, c, d, f, g, h, i, j) }",
    /* Handed on as they are. */
    "ENTRY e { ROOT p = pred[256] parameter(0) }",
    "ENTRY e { ROOT p = pred[] parameter(0) }",
    "ENTRY e { p = pred[256] parameter(0)\n ROOT c = pred[256] copy(p) }",
    "ENTRY e { p = pred[256] parameter(0)\n a = f32[7] parameter(1)\n"
    " ROOT t = (f32[7], pred[256], pred[256]) tuple(a, p, p) }",
    "ENTRY e { ROOT t = (f32[7], (pred[256], pred[])) parameter(0) }",
    "ENTRY e { t = (f32[7], (pred[256], pred[])) parameter(0)\n"
    " u = (pred[256], pred[]) get-tuple-element(t), index=1\n"
    " p = pred[256] get-tuple-element(u), index=0\n"
    " ROOT v = ((pred[256], pred[]), pred[256]) tuple(u, p) }",
    /* Moved. */
    "ENTRY e { p = pred[16,16] parameter(0)\n a = pred[16,16] transpose(p), dimensions={1,0}\n"
    " b = pred[256] reshape(p)\n c = pred[16,16] reverse(p), dimensions={1}\n"
    " d = pred[3,16] slice(p), slice={[2:5],[0:16]}\n"
    " f = pred[32,16] concatenate(p, p), dimensions={0}\n g = pred[2,16,16] broadcast(p),"
    " dimensions={1,2}\n"
    " ROOT t = (pred[16,16], pred[256], pred[16,16], pred[3,16], pred[32,16], pred[2,16,16])"
    " tuple(a, b, c, d, f, g) }",
    "ENTRY e { p = pred[1024] parameter(0)\n ROOT b = pred[64,16] reshape(p) }",
    "ENTRY e { p = pred[300,700] parameter(0)\n"
    " ROOT a = pred[700,300] transpose(p), dimensions={1,0} }",
    "ENTRY e { p = pred[256] parameter(0)\n z = pred[] parameter(1)\n"
    " ROOT a = pred[300] pad(p, z), padding=20_24 }",
    "ENTRY e { p = pred[256] parameter(0)\n q = pred[100] parameter(1)\n i = s32[] parameter(2)\n"
    " a = pred[30] dynamic-slice(p, i), dynamic_slice_sizes={30}\n"
    " b = pred[256] dynamic-update-slice(p, q, i)\n"
    " ROOT t = (pred[30], pred[256]) tuple(a, b) }",
    "ENTRY e { p = pred[256] parameter(0)\n i = s32[50,1] parameter(1)\n"
    " ROOT g = pred[50] gather(p, i), offset_dims={}, collapsed_slice_dims={0},"
    " start_index_map={0}, index_vector_dim=1, slice_sizes={1} }",
    "ENTRY e { p = pred[32,8] parameter(0)\n i = s32[5,1] parameter(1)\n"
    " ROOT g = pred[5,8] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},"
    " start_index_map={0}, index_vector_dim=1, slice_sizes={1,8} }",
    "last { a = pred[] parameter(0)\n ROOT b = pred[] parameter(1) }\n"
    "ENTRY e { p = pred[256] parameter(0)\n i = s32[50,1] parameter(1)\n q = pred[50] "
    "parameter(2)\n"
    " ROOT s = pred[256] scatter(p, i, q), update_window_dims={}, inserted_window_dims={0},"
    " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last }",
    "either { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT c = pred[] or(a, b) }\n"
    "ENTRY e { p = pred[256] parameter(0)\n i = s32[50,1] parameter(1)\n q = pred[50] "
    "parameter(2)\n"
    " ROOT s = pred[256] scatter(p, i, q), update_window_dims={}, inserted_window_dims={0},"
    " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=either }",
    "ENTRY e { p = pred[32,8] parameter(0)\n ROOT b = u8[32] bitcast-convert(p) }",
    "ENTRY e { p = pred[32,8] parameter(0)\n b = u8[32] bitcast-convert(p)\n"
    " ROOT q = pred[32,8] bitcast-convert(b) }",
    /* Folded. */
    "both { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT c = pred[] and(a, b) }\n"
    "either { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT c = pred[] or(a, b) }\n"
    "odd { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT c = pred[] xor(a, b) }\n"
    "sum { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }\n"
    "ENTRY e { p = pred[16,16] parameter(0)\n z = pred[] parameter(1)\n"
    " a = pred[16] reduce(p, z), dimensions={1}, to_apply=both\n"
    " b = pred[16] reduce(p, z), dimensions={0}, to_apply=either\n"
    " c = pred[] reduce(p, z), dimensions={0,1}, to_apply=odd\n"
    " i = s32[16,16] convert(p)\n n = s32[] constant(0)\n"
    " d = s32[16] reduce(i, n), dimensions={1}, to_apply=sum\n"
    " f = pred[15,15] reduce-window(p, z), window={size=2x2}, to_apply=either\n"
    " ROOT t = (pred[16], pred[16], pred[], s32[16], pred[15,15]) tuple(a, b, c, d, f) }",
    "ENTRY e { p = pred[16,16] parameter(0)\n q = pred[16,16] parameter(1)\n"
    " x = f32[16,16] convert(p)\n y = f32[16,16] convert(q)\n"
    " ROOT d = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    /* Sorted. */
    "less { a = pred[] parameter(0)\n b = pred[] parameter(1)\n"
    " ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { p = pred[256] parameter(0)\n"
    " ROOT s = pred[256] sort(p), dimensions={0}, is_stable=true, to_apply=less }",
    "less { a = pred[] parameter(0)\n b = pred[] parameter(1)\n"
    " ROOT c = pred[] compare(a, b), direction=GT }\n"
    "ENTRY e { p = pred[5000] parameter(0)\n"
    " ROOT s = pred[5000] sort(p), dimensions={0}, is_stable=true, to_apply=less }",
    "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = pred[] parameter(2)\n"
    " d = pred[] parameter(3)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { p = pred[256] parameter(1)\n x = f32[256] parameter(0)\n"
    " ROOT s = (f32[256], pred[256]) sort(x, p), dimensions={0}, is_stable=true, to_apply=less }",
    "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = pred[] parameter(2)\n"
    " d = pred[] parameter(3)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { p = pred[9000] parameter(1)\n x = f32[9000] parameter(0)\n"
    " ROOT s = (f32[9000], pred[9000]) sort(x, p), dimensions={0}, is_stable=true,"
    " to_apply=less }",
    "less { a = pred[] parameter(0)\n b = pred[] parameter(1)\n c = f32[] parameter(2)\n"
    " d = f32[] parameter(3)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { p = pred[256] parameter(0)\n x = f32[256] parameter(1)\n"
    " ROOT s = (pred[256], f32[256]) sort(p, x), dimensions={0}, is_stable=true, to_apply=less }",
    /* Deciding. */
    "plus { a = f32[8] parameter(0)\n ROOT b = f32[8] add(a, a) }\n"
    "minus { a = f32[8] parameter(0)\n ROOT b = f32[8] negate(a) }\n"
    "ENTRY e { p = pred[] parameter(0)\n x = f32[8] parameter(1)\n"
    " ROOT c = f32[8] conditional(p, x, x), true_computation=plus, false_computation=minus }",
    "first { a = pred[256] parameter(0)\n ROOT b = pred[256] copy(a) }\n"
    "second { a = pred[256] parameter(0)\n ROOT b = pred[256] not(a) }\n"
    "ENTRY e { p = pred[] parameter(0)\n x = pred[256] parameter(1)\n"
    " ROOT c = pred[256] conditional(p, x, x), true_computation=first, false_computation=second }",
    "go { s = (pred[], pred[256], s32[]) parameter(0)\n ROOT p = pred[] get-tuple-element(s), "
    "index=0 }\n"
    "next { s = (pred[], pred[256], s32[]) parameter(0)\n p = pred[] get-tuple-element(s), "
    "index=0\n"
    " q = pred[256] get-tuple-element(s), index=1\n i = s32[] get-tuple-element(s), index=2\n"
    " one = s32[] constant(1)\n j = s32[] add(i, one)\n n = pred[] not(p)\n"
    " ROOT t = (pred[], pred[256], s32[]) tuple(n, q, j) }\n"
    "ENTRY e { p = pred[] parameter(0)\n q = pred[256] parameter(1)\n z = s32[] constant(0)\n"
    " s = (pred[], pred[256], s32[]) tuple(p, q, z)\n"
    " ROOT w = (pred[], pred[256], s32[]) while(s), condition=go, body=next }",
    "go { s = (s32[], pred[256]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
    " n = s32[] constant(3)\n ROOT p = pred[] compare(i, n), direction=LT }\n"
    "next { s = (s32[], pred[256]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
    " q = pred[256] get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
    " j = s32[] add(i, one)\n r = pred[256] reverse(q), dimensions={0}\n"
    " ROOT t = (s32[], pred[256]) tuple(j, r) }\n"
    "ENTRY e { q = pred[256] parameter(0)\n z = s32[] constant(0)\n"
    " s = (s32[], pred[256]) tuple(z, q)\n"
    " ROOT w = (s32[], pred[256]) while(s), condition=go, body=next }",
    "not { a = pred[] parameter(0)\n ROOT b = pred[] not(a) }\n"
    "ENTRY e { p = pred[256] parameter(0)\n ROOT m = pred[256] map(p), dimensions={0},"
    " to_apply=not }",
    /* In the memory of an argument. */
    "ALIAS ENTRY e { ROOT p = pred[256] parameter(0) }",
    "ALIAS ENTRY e { p = pred[256] parameter(0)\n q = pred[100] parameter(1)\n i = s32[] "
    "parameter(2)\n"
    " ROOT b = pred[256] dynamic-update-slice(p, q, i) }",
    "ALIAS ENTRY e { p = pred[256] parameter(0)\n ROOT b = pred[256] reverse(p), dimensions={0} }",
    /* What a function of the user's makes. */
    "ENTRY e { p = pred[256] parameter(0)\n"
    " ROOT c = pred[256] custom-call(p), custom_call_target=\"test.raw\","
    " api_version=API_VERSION_TYPED_FFI }",
    "ENTRY e { p = pred[256] parameter(0)\n"
    " c = (pred[256], pred[256]) custom-call(p), custom_call_target=\"test.raw\","
    " api_version=API_VERSION_TYPED_FFI\n"
    " a = pred[256] get-tuple-element(c), index=0\n b = pred[256] get-tuple-element(c), index=1\n"
    " ROOT s = pred[256] concatenate(a), dimensions={0} }",
};

/* Whether the program's own arguments or the function's results are any bytes. */
static int raw = 0;

static unsigned char byte_at(int64_t i, size_t argument) {
  /* Every byte, half of them 0. */
  unsigned char byte = (unsigned char)(i * 37 + (int64_t)argument * 91 + i / 256);
  if ((i + (int64_t)argument + i / 256) % 2) byte = 0;
  return raw ? byte : byte != 0;
}

static kiln_error* make_raw(void* user_data, const kiln_custom_call* call) {
  (void)user_data;
  for (int64_t i = 0; i < call->operands[0]->byte_size; ++i) {
    /* Functions of the user's are given 0 and 1, too. */
    if (((const unsigned char*)call->operands[0]->data)[i] > 1) {
      return kiln_error_create(KILN_INTERNAL, "not 0 or 1", 10);
    }
  }
  for (size_t r = 0; r < call->result_count; ++r) {
    const kiln_call_array* array = call->results[r];
    for (int64_t i = 0; i < array->byte_size; ++i) {
      ((unsigned char*)array->data)[i] = byte_at(i, r + 3);
    }
  }
  return NULL;
}

static kiln_buffer* argument_of(kiln_executable* e, size_t index, int64_t scalar) {
  kiln_shape shape = KILN_SHAPE_INIT;
  if (!OK(kiln_executable_argument_shape(e, index, &shape))) return NULL;
  unsigned char* data = malloc((size_t)shape.byte_size);
  for (int64_t i = 0; i < shape.byte_size; ++i) {
    if (shape.dtype == KILN_PRED) {
      data[i] = shape.rank == 0 ? (unsigned char)(raw ? scalar : scalar != 0) : byte_at(i, index);
    }
    if (shape.dtype == KILN_F32 && i % 4 == 0) {
      float x = (float)((i / 4 * 29 + (int64_t)index * 3) % 101);
      memcpy(data + i, &x, 4);
    }
    if (shape.dtype == KILN_S32 && i % 4 == 0) {
      int32_t x = (int32_t)((i / 4 * 17 + 3) % 31);
      memcpy(data + i, &x, 4);
    }
  }
  kiln_buffer* buffer = NULL;
  OK(kiln_buffer_copy_host(kiln_executable_device(e), shape.dtype, shape.dims, shape.rank, data,
                           (size_t)shape.byte_size, &buffer));
  free(data);
  return buffer;
}

enum { MOST = 16, ROOM = 1 << 18 };

/* All results, one after the other; -1 where the run fails. */
static int64_t results_of(kiln_executable* e, int64_t scalar, unsigned char* out) {
  kiln_buffer *arguments[MOST] = {NULL}, *results[MOST] = {NULL};
  size_t argument_count = kiln_executable_argument_count(e);
  size_t result_count = kiln_executable_result_count(e);
  for (size_t i = 0; i < argument_count; ++i) arguments[i] = argument_of(e, i, scalar);
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donate_aliased = 1;
  int64_t bytes = -1;
  if (OK(kiln_executable_run(e, &options, arguments, argument_count, results, result_count))) {
    bytes = 0;
    for (size_t i = 0; i < result_count; ++i) {
      kiln_shape shape = KILN_SHAPE_INIT;
      OK(kiln_buffer_shape(results[i], &shape));
      OK(kiln_buffer_copy_to_host(results[i], out + bytes, (size_t)shape.byte_size));
      for (int64_t k = 0; shape.dtype == KILN_PRED && k < shape.byte_size; ++k) {
        if (out[bytes + k] > 1) {
          printf("result %zu has the byte %d\n", i, out[bytes + k]);
          ++failed_checks;
          break;
        }
      }
      bytes += shape.byte_size;
      kiln_buffer_release(results[i]);
    }
  }
  for (size_t i = 0; i < argument_count; ++i) kiln_buffer_release(arguments[i]);
  return bytes;
}

static kiln_executable* compile_on(kiln_context* context, const char* device, const char* text) {
  const int aliased = strncmp(text, "ALIAS ", 6) == 0;
  char whole[8192];
  snprintf(whole, sizeof whole, "HloModule m\n%s", text + (aliased ? 6 : 0));
  kiln_graph* graph = NULL;
  if (!OK(kiln_graph_from_hlo_text(context, whole, strlen(whole), &graph))) return NULL;
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = find_device(context, device);
  kiln_alias alias = {.result = 0, .argument = 0};
  options.aliases = &alias;
  options.alias_count = (size_t)aliased;
  kiln_executable* executable = NULL;
  OK(kiln_graph_compile(graph, &options, &executable));
  kiln_graph_release(graph);
  return executable;
}

int main(void) {
  kiln_context* context = make_context_with(1, KILN_GPU_EMULATED);
  OK(kiln_context_register_call(context, "test.raw", 8, make_raw, NULL, NULL));
  const char* const devices[] = {"REFERENCE:0", "CPU:0", "GPU:0"};
  static unsigned char expected[ROOM], found[ROOM];
  for (size_t p = 0; p < sizeof kPrograms / sizeof *kPrograms; ++p) {
    for (size_t d = 0; d < sizeof devices / sizeof *devices; ++d) {
      if (d == 2 && strstr(kPrograms[p], "custom-call")) continue;
      int failed = failed_checks;
      kiln_executable* e = compile_on(context, devices[d], kPrograms[p]);
      if (e) {
        /* Scalars take every byte, or three of them where arrays do. */
        const int all = d < 2 && strstr(kPrograms[p], "pred[] parameter(0)") != NULL;
        for (int64_t scalar = 0; scalar < 256; scalar += all ? 1 : 127) {
          raw = 0;
          int64_t bytes = results_of(e, scalar, expected);
          raw = 1;
          CHECK(results_of(e, scalar, found) == bytes);
          if (bytes > 0) CHECK(memcmp(expected, found, (size_t)bytes) == 0);
        }
        kiln_executable_release(e);
      }
      if (failed_checks != failed) printf("on %s: %s\n", devices[d], kPrograms[p]);
    }
  }
  kiln_context_release(context);
  return test_result();
}
