#define _POSIX_C_SOURCE 200809L
#include "parts/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts/common.h"

void show_progress(const char* name, size_t done, size_t steps, const char* figures) {
  static const char kBar[] = "########################################";
  if (!isatty(STDOUT_FILENO)) return;
  int width = (int)strlen(kBar), filled = (int)(done * (size_t)width / steps);
  printf("\r%-9s [%.*s%*s] %zu/%zu  %s\033[K", name, filled, kBar, width - filled, "", done, steps,
         figures);
  if (done == steps) printf("\r\033[K");
  fflush(stdout);
}

void show_tokens(const progress* p, size_t step, float loss) {
  const size_t done = step - p->first, steps = p->last - p->first;
  const double rate = (double)done / (now_in_seconds() - p->start);
  char* figures = format_text("loss %.3f  %.0f tokens/s  ETA %.0f s", (double)loss,
                              rate * (double)p->tokens, (double)(p->last - step) / rate);
  show_progress("training", done, steps, figures);
  const size_t tenth = steps < 10 ? 1 : steps / 10;
  if (done == steps || (!isatty(STDOUT_FILENO) && done % tenth == 0)) {
    printf("step %zu: %s\n", step, figures);
  }
  free(figures);
}

/* A text that grows. */
typedef struct {
  char* text;
  size_t length, room;
} output;

static void append(output* out, const char* piece) {
  const size_t length = strlen(piece);
  if (out->length + length >= out->room) {
    out->room = 2 * (out->length + length) + 4096;
    out->text = realloc(out->text, out->room);
    if (!out->text) fail("out of memory");
  }
  memcpy(out->text + out->length, piece, length + 1);
  out->length += length;
}

static void write_output(output* out, const char* folder, const char* name) {
  char* path = format_text("%s/%s", folder, name);
  const int error = write_file(path, out->text, out->length);
  if (error) fail("cannot write %s: %s", path, strerror(error));
  free(path);
  free(out->text);
}

static void write_table(const char* folder, const float* losses, size_t count) {
  output csv = {NULL, 0, 0};
  char line[64];
  append(&csv, "step,loss\n");
  for (size_t i = 0; i < count; ++i) {
    snprintf(line, sizeof line, "%zu,%.9g\n", i + 1, (double)losses[i]);
    append(&csv, line);
  }
  write_output(&csv, folder, "loss.csv");
}

enum { WIDTH = 640, HEIGHT = 400, MARGIN = 50 };

/* The places of a step and a loss in the picture. */
static double across(size_t step, size_t count) {
  return MARGIN + (WIDTH - 2.0 * MARGIN) * (double)step / (double)count;
}
static double down(double loss, double top) {
  return HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * loss / top;
}

/* A line through all losses, or through their means of `window` steps. */
static void append_line(output* svg, const float* losses, size_t count, size_t window, double top,
                        const char* style) {
  char piece[64];
  append(svg, "<polyline fill=\"none\" ");
  append(svg, style);
  append(svg, " points=\"");
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += (double)losses[i];
    if (i >= window) sum -= (double)losses[i - window];
    const double mean = sum / (double)(i < window ? i + 1 : window);
    snprintf(piece, sizeof piece, "%.1f,%.1f ", across(i + 1, count), down(mean, top));
    append(svg, piece);
  }
  append(svg, "\"/>\n");
}

static void append_axes(output* svg, size_t count, double top) {
  char piece[256];
  for (int i = 0; i <= 4; ++i) {
    const double loss = top * i / 4, y = down(loss, top);
    const size_t step = count * (size_t)i / 4;
    snprintf(piece, sizeof piece,
             "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n<text x=\"%d\" y=\"%.1f\" "
             "text-anchor=\"end\">%.2f</text>\n",
             MARGIN, y, WIDTH - MARGIN, MARGIN - 6, y + 4, loss);
    append(svg, piece);
    snprintf(piece, sizeof piece, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>\n",
             across(step, count), HEIGHT - MARGIN + 18, step);
    append(svg, piece);
  }
  snprintf(piece, sizeof piece,
           "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n"
           "<text x=\"%d\" y=\"%d\">loss</text>\n",
           WIDTH / 2, HEIGHT - 10, MARGIN, MARGIN - 12);
  append(svg, piece);
}

static void write_picture(const char* folder, const float* losses, size_t count) {
  double top = 0;
  for (size_t i = 0; i < count; ++i) top = fmax(top, (double)losses[i]);
  top = top > 0 && isfinite(top) ? top * 1.05 : 1;
  output svg = {NULL, 0, 0};
  char head[256];
  snprintf(head, sizeof head,
           "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
           "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" "
           "fill=\"white\"/>\n",
           WIDTH, HEIGHT, WIDTH, HEIGHT);
  append(&svg, head);
  append_axes(&svg, count, top);
  append_line(&svg, losses, count, 1, top, "stroke=\"#b0c4de\"");
  append_line(&svg, losses, count, count / 20 + 1, top, "stroke=\"#1f4e8c\" stroke-width=\"2\"");
  append(&svg, "</svg>\n");
  write_output(&svg, folder, "loss.svg");
}

void write_curve(const char* folder, const float* losses, size_t count) {
  write_table(folder, losses, count);
  if (count) write_picture(folder, losses, count);
}

void read_curve(const char* folder, float* losses, size_t count) {
  if (count == 0) return;
  char* path = format_text("%s/loss.csv", folder);
  char* text = read_file(path, NULL);
  const char* line = text;
  for (size_t i = 0; i < count; ++i) {
    if (line) line = strchr(line, '\n');
    if (!line || sscanf(++line, "%*u,%f", &losses[i]) != 1) fail("%s: no step %zu", path, i + 1);
  }
  free(text);
  free(path);
}
