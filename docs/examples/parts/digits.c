#include "parts/digits.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

static uint32_t big_endian(const unsigned char* b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

/* Reads an IDX file of bytes: a magic number that tells type and rank, a size per dimension, and
 * the elements, which are to be freed. */
static unsigned char* read_idx(const char* folder, const char* name, size_t rank, size_t* sizes) {
  char* path = format_text("%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot read %s: %s", path, strerror(errno));
  long length = ftell(file);
  rewind(file);
  unsigned char word[4];
  if (fread(word, 1, 4, file) != 4) fail("%s: truncated: no magic number", path);
  if (word[0] == 0x1f && word[1] == 0x8b) fail("%s: compressed; unpack it with gunzip", path);
  if (big_endian(word) != 0x800 + rank) {
    fail("%s: bad magic number 0x%08x; expected 0x%08x", path, (unsigned)big_endian(word),
         (unsigned)(0x800 + rank));
  }
  uint64_t expected = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (fread(word, 1, 4, file) != 4) fail("%s: truncated: no sizes", path);
    sizes[i] = big_endian(word);
    if (sizes[i] == 0 || expected > UINT32_MAX) fail("%s: empty, or too large", path);
    expected *= sizes[i];
  }
  uint64_t there = (uint64_t)length - 4 * (1 + rank);
  if (there != expected) {
    fail("%s: %s: its sizes make %llu bytes of data, there are %llu", path,
         there < expected ? "truncated" : "too long", (unsigned long long)expected,
         (unsigned long long)there);
  }
  unsigned char* data = allocate(expected, 1);
  if (fread(data, 1, expected, file) != expected) fail("cannot read %s", path);
  fclose(file);
  free(path);
  return data;
}

digits read_digits(const char* folder, const char* part) {
  char images[64], labels[64];
  size_t sizes[3], label_count;
  snprintf(images, sizeof(images), "%s-images-idx3-ubyte", part);
  snprintf(labels, sizeof(labels), "%s-labels-idx1-ubyte", part);
  digits all;
  all.images = read_idx(folder, images, 3, sizes);
  all.labels = read_idx(folder, labels, 1, &label_count);
  all.count = sizes[0];
  all.rows = sizes[1];
  all.columns = sizes[2];
  if (all.count != label_count) {
    fail("%s: %zu images in %s, but %zu labels in %s", folder, all.count, images, label_count,
         labels);
  }
  for (size_t i = 0; i < all.count; ++i) {
    if (all.labels[i] < CLASSES) continue;
    fail("%s/%s: label %zu is %d; expected 0 to 9", folder, labels, i, all.labels[i]);
  }
  return all;
}

/* Where a pixel of the resampled image lies in the source: its offset from the centre, as a share
 * of the size, by a matrix, and a shift. */
typedef struct {
  float matrix[2][2], shift[2];
} placement;

/* A rotation, scales, a shear and a shift, small enough that the digit stays what it is. */
static placement random_placement(uint64_t* random) {
  double r[6];
  for (int i = 0; i < 6; ++i) r[i] = 2 * random_unit(random) - 1;
  const double angle = 0.2 * r[0], tall = 1 + 0.15 * r[1], wide = 1 + 0.15 * r[2];
  const double slant = 0.2 * r[3];
  const placement p = {{{(float)(tall * cos(angle)), (float)(-tall * sin(angle))},
                        {(float)(wide * (sin(angle) + slant)), (float)(wide * cos(angle))}},
                       {(float)(0.08 * r[4]), (float)(0.08 * r[5])}};
  return p;
}

/* The neighbours of a place among `size` pixels: between `*low` and `*high`, at the returned
 * distance from `*low`. Places are shares of the size from the middle; pixels are at their centres.
 */
static float neighbours(float place, size_t size, size_t* low, size_t* high) {
  float at = (place + 0.5f) * (float)size - 0.5f;
  at = fminf(fmaxf(at, 0), (float)(size - 1));
  *low = (size_t)at;
  *high = *low + 1 < size ? *low + 1 : *low;
  return at - (float)*low;
}

void digit_pixels(const digits* all, size_t number, uint64_t* random, float* pixels) {
  const placement plain = {{{1, 0}, {0, 1}}, {0, 0}};
  const placement p = random ? random_placement(random) : plain;
  const unsigned char* image = all->images + number * all->rows * all->columns;
  for (size_t i = 0; i < PIXELS; ++i) {
    const float y = ((float)(i / SIDE) + 0.5f) / SIDE - 0.5f;
    const float x = ((float)(i % SIDE) + 0.5f) / SIDE - 0.5f;
    size_t top, bottom, left, right;
    const float down =
        neighbours(p.matrix[0][0] * y + p.matrix[0][1] * x + p.shift[0], all->rows, &top, &bottom);
    const float across = neighbours(p.matrix[1][0] * y + p.matrix[1][1] * x + p.shift[1],
                                    all->columns, &left, &right);
    const unsigned char *above = image + top * all->columns, *below = image + bottom * all->columns;
    const float upper = (1 - across) * above[left] + across * above[right];
    const float lower = (1 - across) * below[left] + across * below[right];
    pixels[i] = ((1 - down) * upper + down * lower) / 255;
  }
}

void free_digits(digits all) {
  free(all.images);
  free(all.labels);
}

void digit_buffers(kiln_device* device, const digits* all, size_t count, uint64_t* random,
                   kiln_buffer* buffers[2]) {
  float* pixels = allocate(count * PIXELS, sizeof(float));
  int32_t* labels = allocate(count, sizeof(int32_t));
  for (size_t i = 0; i < count; ++i) {
    const size_t number = random ? random_bits(random) % all->count : i;
    digit_pixels(all, number, random, pixels + i * PIXELS);
    labels[i] = all->labels[number];
  }
  const int64_t dims[] = {(int64_t)count, SIDE, SIDE, 1};
  buffers[0] = f32_buffer(device, dims, 4, pixels);
  buffers[1] = s32_buffer(device, dims, 1, labels);
  free(pixels);
  free(labels);
}
