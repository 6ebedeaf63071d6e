#include "sampling.h"

#include <math.h>
#include <stdlib.h>

#include "parts/common.h"

typedef struct {
  double weight;
  int32_t token;
} candidate;

static int32_t largest(const float* logits, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return (int32_t)best;
}

/* Restores the order of a heap whose root may be too small. */
static void sift_down(candidate* heap, int64_t root, int64_t count) {
  for (int64_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && heap[child + 1].weight > heap[child].weight) ++child;
    if (heap[root].weight >= heap[child].weight) return;
    candidate swapped = heap[root];
    heap[root] = heap[child];
    heap[child] = swapped;
  }
}

/* Moves the largest weights to the end, until they are `mass` together. Returns their number. */
static int64_t take_largest(candidate* heap, int64_t count, double mass, double* taken) {
  for (int64_t i = count / 2; i-- > 0;) sift_down(heap, i, count);
  int64_t left = count;
  *taken = 0;
  while (left > 0 && *taken < mass) {
    candidate root = heap[0];
    heap[0] = heap[--left];
    sift_down(heap, 0, left);
    heap[left] = root;
    *taken += root.weight;
  }
  return count - left;
}

int32_t sample_token(const float* logits, int64_t count, double temperature, double top_p,
                     uint64_t* random) {
  const int32_t best = largest(logits, count);
  if (temperature <= 0) return best;
  candidate* all = allocate((size_t)count, sizeof(candidate));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double weight = exp(((double)logits[i] - (double)logits[best]) / temperature);
    all[i] = (candidate){weight, (int32_t)i};
    sum += weight;
  }
  int64_t first = 0;
  if (top_p < 1) first = count - take_largest(all, count, top_p * sum, &sum);
  double left = random_unit(random) * sum;
  int32_t token = best; /* where rounding leaves something over */
  for (int64_t i = count; i-- > first;) {
    left -= all[i].weight;
    if (left < 0) {
      token = all[i].token;
      break;
    }
  }
  free(all);
  return token;
}
