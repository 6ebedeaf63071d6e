#include "characters.h"

#include <string.h>

unsigned read_character(const char* text, size_t size, size_t* length) {
  const unsigned char* bytes = (const unsigned char*)text;
  unsigned lead = bytes[0];
  size_t count = lead < 0x80   ? 1
                 : lead < 0xc2 ? 0
                 : lead < 0xe0 ? 2
                 : lead < 0xf0 ? 3
                 : lead < 0xf5 ? 4
                               : 0;
  *length = 1;
  if (count == 0 || count > size) return 0x110000 + lead;
  if (count == 1) return lead;
  unsigned code = lead & (0x7fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((bytes[i] & 0xc0) != 0x80) return 0x110000 + lead;
    code = code << 6 | (bytes[i] & 0x3f);
  }
  *length = count;
  return code;
}

typedef struct {
  unsigned first, last;
  character_class is;
} class_range;

/* Of what is no letter, in order. */
static const class_range kRanges[] = {
    {0x80, 0x84, OTHER},        {0x85, 0x85, SPACE},        {0x86, 0x9f, OTHER},
    {0xa0, 0xa0, SPACE},        {0xa1, 0xa9, OTHER},        {0xab, 0xb1, OTHER},
    {0xb2, 0xb3, NUMBER},       {0xb4, 0xb4, OTHER},        {0xb6, 0xb8, OTHER},
    {0xb9, 0xb9, NUMBER},       {0xbb, 0xbb, OTHER},        {0xbc, 0xbe, NUMBER},
    {0xbf, 0xbf, OTHER},        {0xd7, 0xd7, OTHER},        {0xf7, 0xf7, OTHER},
    {0x2c2, 0x2c5, OTHER},      {0x2d2, 0x2df, OTHER},      {0x300, 0x36f, OTHER},
    {0x483, 0x489, OTHER},      {0x591, 0x5c7, OTHER},      {0x60c, 0x60f, OTHER},
    {0x610, 0x61f, OTHER},      {0x64b, 0x65f, OTHER},      {0x660, 0x669, NUMBER},
    {0x66a, 0x66d, OTHER},      {0x6d4, 0x6d4, OTHER},      {0x6f0, 0x6f9, NUMBER},
    {0x93a, 0x93c, OTHER},      {0x93e, 0x94f, OTHER},      {0x964, 0x965, OTHER},
    {0x966, 0x96f, NUMBER},     {0xe31, 0xe31, OTHER},      {0xe34, 0xe3f, OTHER},
    {0xe47, 0xe4f, OTHER},      {0xe50, 0xe59, NUMBER},     {0x1680, 0x1680, SPACE},
    {0x2000, 0x200a, SPACE},    {0x200b, 0x2027, OTHER},    {0x2028, 0x2029, SPACE},
    {0x202a, 0x202e, OTHER},    {0x202f, 0x202f, SPACE},    {0x2030, 0x205e, OTHER},
    {0x205f, 0x205f, SPACE},    {0x2060, 0x206f, OTHER},    {0x2070, 0x2070, NUMBER},
    {0x2074, 0x2079, NUMBER},   {0x207a, 0x207e, OTHER},    {0x2080, 0x2089, NUMBER},
    {0x208a, 0x208e, OTHER},    {0x20a0, 0x20ff, OTHER},    {0x2116, 0x2117, OTHER},
    {0x2120, 0x2123, OTHER},    {0x2150, 0x2182, NUMBER},   {0x2185, 0x2189, NUMBER},
    {0x2190, 0x245f, OTHER},    {0x2460, 0x249b, NUMBER},   {0x249c, 0x24e9, OTHER},
    {0x24ea, 0x24ff, NUMBER},   {0x2500, 0x2775, OTHER},    {0x2776, 0x2793, NUMBER},
    {0x2794, 0x2bff, OTHER},    {0x2e00, 0x2e2e, OTHER},    {0x2e30, 0x2fff, OTHER},
    {0x3000, 0x3000, SPACE},    {0x3001, 0x3004, OTHER},    {0x3007, 0x3007, NUMBER},
    {0x3008, 0x3020, OTHER},    {0x3021, 0x3029, NUMBER},   {0x302a, 0x3030, OTHER},
    {0x303d, 0x303f, OTHER},    {0x3099, 0x309c, OTHER},    {0x30a0, 0x30a0, OTHER},
    {0x30fb, 0x30fb, OTHER},    {0xd800, 0xf8ff, OTHER},    {0xfe00, 0xfe6f, OTHER},
    {0xfeff, 0xfeff, OTHER},    {0xff01, 0xff0f, OTHER},    {0xff10, 0xff19, NUMBER},
    {0xff1a, 0xff20, OTHER},    {0xff3b, 0xff40, OTHER},    {0xff5b, 0xff65, OTHER},
    {0xffe0, 0xffff, OTHER},    {0x1d7ce, 0x1d7ff, NUMBER}, {0x1f000, 0x1faff, OTHER},
    {0xe0000, 0x110100, OTHER},
};

character_class class_of(unsigned c) {
  if (c < 0x80) {
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return LETTER;
    if (c >= '0' && c <= '9') return NUMBER;
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f) ? SPACE : OTHER;
  }
  size_t low = 0, high = sizeof kRanges / sizeof *kRanges;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (kRanges[middle].last < c) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const size_t count = sizeof kRanges / sizeof *kRanges;
  return low < count && kRanges[low].first <= c ? kRanges[low].is : LETTER;
}

/* The class of the first character, and its bytes; of no character OTHER and 0. */
static character_class next_class(const char* text, size_t size, size_t* length) {
  *length = 0;
  return size == 0 ? OTHER : class_of(read_character(text, size, length));
}

static size_t run_of(character_class is, const char* text, size_t size) {
  size_t end = 0, length;
  while (end < size && next_class(text + end, size - end, &length) == is) end += length;
  return end;
}

/* The bytes of 's or another contraction. */
static size_t contraction_length(const char* text, size_t size, int any_case) {
  static const char* const kContractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
  for (size_t i = 0; i < sizeof kContractions / sizeof *kContractions; ++i) {
    size_t length = strlen(kContractions[i]), same = 0;
    while (same < length && same < size) {
      char c = text[same];
      if (any_case && c >= 'A' && c <= 'Z') c = (char)(c + 'a' - 'A');
      if (c != kContractions[i][same]) break;
      ++same;
    }
    if (same == length) return length;
  }
  return 0;
}

/* Spaces: the last one of several belongs to the next word, if there is one. */
static size_t spaces_length(const char* text, size_t size) {
  size_t end = run_of(SPACE, text, size), last = 0, length;
  if (end == size) return end;
  for (size_t i = 0; i < end; i += length) {
    last = i;
    read_character(text + i, size - i, &length);
  }
  return last > 0 ? last : end;
}

static size_t gpt2_word(const char* text, size_t size) {
  size_t length = contraction_length(text, size, 0);
  if (length > 0) return length;
  size_t space = size > 1 && *text == ' ';
  character_class is = next_class(text + space, size - space, &length);
  if (is == SPACE) return spaces_length(text, size);
  return space + run_of(is, text + space, size - space);
}

/* Digits are cut off first: other words end before one, and spaces do not join the next word. */
static size_t digit_word(const char* text, size_t size) {
  size_t end = 0, length;
  if (next_class(text, size, &length) == NUMBER) return length;
  while (end < size && next_class(text + end, size - end, &length) != NUMBER) end += length;
  return gpt2_word(text, end);
}

static int ends_line(char c) { return c == '\n' || c == '\r'; }

static size_t llama3_word(const char* text, size_t size) {
  size_t length, next;
  size_t contraction = contraction_length(text, size, 1);
  if (contraction > 0) return contraction;
  character_class is = next_class(text, size, &length);
  if (is == LETTER) return run_of(LETTER, text, size);
  if (is == NUMBER) {
    size_t end = length;
    for (int more = 2; more > 0 && next_class(text + end, size - end, &next) == NUMBER; --more) {
      end += next;
    }
    return end;
  }
  if (!ends_line(*text) && next_class(text + length, size - length, &next) == LETTER) {
    return length + run_of(LETTER, text + length, size - length);
  }
  size_t end = *text == ' ';
  end += run_of(OTHER, text + end, size - end);
  if (end > (*text == ' ')) {
    while (end < size && ends_line(text[end])) ++end;
    return end;
  }
  size_t spaces = run_of(SPACE, text, size);
  for (end = spaces; end > 0; --end) {
    if (ends_line(text[end - 1])) return end;
  }
  return spaces_length(text, size);
}

size_t word_length(word_rule rule, const char* text, size_t size) {
  switch (rule) {
    case DIGIT_WORDS:
      return digit_word(text, size);
    case LLAMA3_WORDS:
      return llama3_word(text, size);
    case GPT2_WORDS:
      break;
  }
  return gpt2_word(text, size);
}
