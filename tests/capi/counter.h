/* A program that runs for as long as its argument tells. */
#ifndef KILN_TESTS_CAPI_COUNTER_H_
#define KILN_TESTS_CAPI_COUNTER_H_

#include <stdint.h>

#include "testing.h"

/* Counts from 0 up to the argument, in a loop. */
static inline kiln_executable* counter(kiln_context* context, kiln_device* device) {
  kiln_graph* condition = make_graph(context, "condition");
  kiln_value i = kiln_op_parameter(condition, KILN_S64, NULL, 0, "i", 1);
  kiln_value n = kiln_op_parameter(condition, KILN_S64, NULL, 0, "n", 1);
  kiln_value less = kiln_op_compare(condition, i, n, KILN_LT);
  OK(kiln_graph_set_results(condition, &less, 1));
  kiln_graph* body = make_graph(context, "body");
  i = kiln_op_parameter(body, KILN_S64, NULL, 0, "i", 1);
  n = kiln_op_parameter(body, KILN_S64, NULL, 0, "n", 1);
  kiln_value next[2] = {kiln_op_add(body, i, kiln_op_scalar(body, KILN_S64, 1)), n};
  OK(kiln_graph_set_results(body, next, 2));
  kiln_graph* g = make_graph(context, "counter");
  n = kiln_op_parameter(g, KILN_S64, NULL, 0, "n", 1);
  kiln_value state[2] = {kiln_op_scalar(g, KILN_S64, 0), n};
  kiln_value loop = kiln_op_while(g, kiln_op_tuple(g, state, 2), condition, body);
  kiln_executable* e = compile_result(g, kiln_op_get_tuple_element(g, loop, 0), device);
  kiln_graph_release(condition);
  kiln_graph_release(body);
  return e;
}

#endif /* KILN_TESTS_CAPI_COUNTER_H_ */
