#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "characters.h"
#include "config.h"
#include "parts/common.h"

typedef struct {
  char* bytes;
  size_t length;
  int known;
} token_text;

/* A pair of tokens that become one. Earlier merges go first. */
typedef struct {
  int32_t left, right, merged;
  int32_t rank; /* -1: an empty place of the table */
} merge;

struct tokenizer {
  token_text* tokens;
  size_t token_count;
  int32_t* by_text; /* a hash table of tokens by their bytes; -1: an empty place */
  size_t text_places;
  merge* merges; /* a hash table by the pair */
  size_t merge_places, merge_count;
  int32_t of_byte[256];
  word_rule words;
  int whole_words; /* a word that is a token is not merged, but taken */
};

/* --- Tables ------------------------------------------------------------------------------------*/

static size_t place_of(const void* key, size_t size, size_t places) {
  uint64_t hash = hash_bytes(HASH_START, key, size);
  return (hash ^ hash >> 29) & (places - 1);
}

static size_t places_for(size_t count) {
  size_t places = 16;
  while (places < 2 * count) places *= 2;
  return places;
}

/* The place of a text in the table, or the empty one where it would be. */
static int32_t* find_text(const tokenizer* t, const char* bytes, size_t length) {
  size_t at = place_of(bytes, length, t->text_places);
  for (;; at = (at + 1) & (t->text_places - 1)) {
    int32_t token = t->by_text[at];
    if (token < 0) return &t->by_text[at];
    const token_text* text = &t->tokens[token];
    if (text->length == length && memcmp(text->bytes, bytes, length) == 0) return &t->by_text[at];
  }
}

static merge* find_merge(const tokenizer* t, int32_t left, int32_t right) {
  const int32_t pair[] = {left, right};
  size_t at = place_of(pair, sizeof pair, t->merge_places);
  for (;; at = (at + 1) & (t->merge_places - 1)) {
    merge* m = &t->merges[at];
    if (m->rank < 0 || (m->left == left && m->right == right)) return m;
  }
}

static void make_tables(tokenizer* t, size_t merges) {
  t->text_places = places_for(t->token_count);
  t->by_text = allocate(t->text_places, sizeof(int32_t));
  memset(t->by_text, -1, t->text_places * sizeof(int32_t));
  for (size_t i = 0; i < t->token_count; ++i) {
    if (!t->tokens[i].known) continue;
    int32_t* place = find_text(t, t->tokens[i].bytes, t->tokens[i].length);
    if (*place < 0) *place = (int32_t)i;
  }
  t->merge_places = places_for(merges);
  t->merges = allocate(t->merge_places, sizeof(merge));
  for (size_t i = 0; i < t->merge_places; ++i) t->merges[i].rank = -1;
  for (int i = 0; i < 256; ++i) {
    char byte = (char)i;
    t->of_byte[i] = *find_text(t, &byte, 1);
  }
}

/* --- Files -------------------------------------------------------------------------------------*/

/* Files name bytes by printable characters: themselves, or, in order, those from U+0100 on.
 * Returns -1 for other characters. */
static int byte_of_character(unsigned c) {
  static int next[256], made;
  if (!made) {
    int others = 0;
    for (int i = 0; i < 256; ++i) {
      int printable = (i >= 33 && i <= 126) || (i >= 161 && i != 173);
      if (!printable) next[others++] = i;
    }
    made = others;
  }
  if ((c >= 33 && c <= 126) || (c >= 161 && c < 256 && c != 173)) return (int)c;
  return c >= 256 && c < 256 + (unsigned)made ? next[c - 256] : -1;
}

/* The bytes that a text of a file stands for; never more than the text has. */
static size_t decode_name(const char* name, size_t size, char* bytes) {
  size_t count = 0, length;
  for (size_t i = 0; i < size; i += length) {
    int byte = byte_of_character(read_character(name + i, size - i, &length));
    if (byte >= 0) {
      bytes[count++] = (char)byte;
    } else { /* of a token that is no result of merges */
      memcpy(bytes + count, name + i, length);
      count += length;
    }
  }
  return count;
}

static void add_token(tokenizer* t, const json_value* number, const char* name, size_t length,
                      int decoded) {
  if (!number || number->kind != JSON_NUMBER || number->number < 0 ||
      number->number >= (double)t->token_count) {
    fail("the token \"%s\" has no number below %zu", name, t->token_count);
  }
  token_text* token = &t->tokens[(size_t)number->number];
  if (token->known) return;
  token->bytes = allocate(length + 1, 1);
  token->known = 1;
  if (decoded) memcpy(token->bytes, name, length);
  token->length = decoded ? length : decode_name(name, length, token->bytes);
}

static void add_vocabulary(tokenizer* t, const json_value* vocabulary) {
  if (!vocabulary || vocabulary->kind != JSON_OBJECT) fail("the tokenizer has no vocabulary");
  for (const json_value* m = vocabulary->first; m; m = m->next) {
    add_token(t, m, m->key, m->key_length, 0);
  }
}

static int32_t token_of_name(const tokenizer* t, const char* name, size_t length, char* bytes) {
  return *find_text(t, bytes, decode_name(name, length, bytes));
}

static void add_merge(tokenizer* t, const char* left, size_t left_length, const char* right,
                      size_t right_length) {
  char* bytes = allocate(left_length + right_length + 1, 1);
  int32_t a = token_of_name(t, left, left_length, bytes);
  int32_t b = token_of_name(t, right, right_length, bytes);
  size_t length = decode_name(left, left_length, bytes);
  length += decode_name(right, right_length, bytes + length);
  int32_t merged = *find_text(t, bytes, length);
  if (a < 0 || b < 0 || merged < 0) {
    fail("a merge of what are no tokens: %.*s %.*s", (int)left_length, left, (int)right_length,
         right);
  }
  merge* m = find_merge(t, a, b);
  if (m->rank < 0) *m = (merge){a, b, merged, (int32_t)t->merge_count};
  ++t->merge_count;
  free(bytes);
}

/* "left right". */
static void add_merge_line(tokenizer* t, const char* line, size_t length) {
  const char* space = memchr(line, ' ', length);
  if (!space) fail("a merge without two tokens: %.*s", (int)length, line);
  size_t left = (size_t)(space - line);
  add_merge(t, line, left, space + 1, length - left - 1);
}

static size_t count_of(const json_value* list) {
  size_t count = 0;
  for (const json_value* m = list ? list->first : NULL; m; m = m->next) ++count;
  return count;
}

static void read_merges(tokenizer* t, const char* path) {
  size_t size, lines = 1;
  char* text = read_file(path, &size);
  if (!text) fail("%s: there is no such file", path);
  for (size_t i = 0; i < size; ++i) lines += text[i] == '\n';
  make_tables(t, lines);
  for (char* line = text; line < text + size;) {
    char* end = memchr(line, '\n', (size_t)(text + size - line));
    size_t length = (size_t)((end ? end : text + size) - line);
    size_t used = length && line[length - 1] == '\r' ? length - 1 : length;
    int comment = line == text && used > 0 && *line == '#';
    if (used > 0 && !comment) add_merge_line(t, line, used);
    line += length + 1;
  }
  free(text);
}

static void demand_member(const json_value* json, const char* key, const char* text) {
  const char* is = json_text(json, key, "");
  if (strcmp(is, text) != 0) fail("tokenizer.json: \"%s\" is \"%s\", not %s", key, is, text);
}

/* ByteLevel alone, or a sequence that ends with it. */
static word_rule read_word_rule(const json_value* pre_tokenizer) {
  static const char kLlama3[] =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
      " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const json_value* first = pre_tokenizer;
  word_rule rule = GPT2_WORDS;
  if (strcmp(json_text(pre_tokenizer, "type", ""), "Sequence") == 0) {
    const json_value* list = json_member(pre_tokenizer, "pretokenizers");
    first = list ? list->first : NULL;
    const char* type = json_text(first, "type", "");
    if (strcmp(type, "Digits") == 0 && json_bool(first, "individual_digits", 0)) {
      rule = DIGIT_WORDS;
    } else if (strcmp(type, "Split") == 0) {
      demand_member(json_member(first, "pattern"), "Regex", kLlama3);
      demand_member(first, "behavior", "Isolated");
      rule = LLAMA3_WORDS;
    }
    if (rule != GPT2_WORDS) first = first->next;
    if (first && first->next) fail("tokenizer.json: a sequence of pre-tokenizers is not supported");
  }
  demand_member(first, "type", "ByteLevel");
  if (json_bool(first, "use_regex", 1) != (rule != LLAMA3_WORDS)) {
    fail("tokenizer.json: words are cut by another rule");
  }
  if (json_bool(first, "add_prefix_space", 0)) {
    fail("tokenizer.json: add_prefix_space is not supported");
  }
  return rule;
}

static void read_tokenizer_json(tokenizer* t, const json_value* json) {
  const json_value* model = json_member(json, "model");
  const json_value* normalizer = json_member(json, "normalizer");
  demand_member(model, "type", "BPE");
  t->words = read_word_rule(json_member(json, "pre_tokenizer"));
  t->whole_words = json_bool(model, "ignore_merges", 0);
  if (normalizer && normalizer->kind != JSON_NULL) fail("tokenizer.json: a normalizer is used");
  const json_value* added = json_member(json, "added_tokens");
  for (const json_value* m = added ? added->first : NULL; m; m = m->next) {
    const json_value* content = json_member(m, "content");
    if (content && content->kind == JSON_STRING) {
      add_token(t, json_member(m, "id"), content->text, content->length, 1);
    }
  }
  add_vocabulary(t, json_member(model, "vocab"));
  const json_value* merges = json_member(model, "merges");
  make_tables(t, count_of(merges));
  for (const json_value* m = merges ? merges->first : NULL; m; m = m->next) {
    if (m->kind == JSON_STRING) {
      add_merge_line(t, m->text, m->length);
    } else if (count_of(m) == 2 && m->first->kind == JSON_STRING &&
               m->first->next->kind == JSON_STRING) {
      const json_value *left = m->first, *right = left->next;
      add_merge(t, left->text, left->length, right->text, right->length);
    } else {
      fail("tokenizer.json: a merge is no pair of tokens");
    }
  }
}

static void make_byte_tokens(tokenizer* t) {
  for (int i = 0; i < 256; ++i) {
    t->tokens[i] = (token_text){allocate(2, 1), 1, 1};
    t->tokens[i].bytes[0] = (char)i;
  }
  make_tables(t, 0);
}

tokenizer* read_tokenizer(const char* folder, int64_t vocabulary) {
  tokenizer* t = allocate(1, sizeof(tokenizer));
  t->token_count = (size_t)vocabulary;
  t->tokens = allocate(t->token_count, sizeof(token_text));
  char* whole = format_text("%s/tokenizer.json", folder);
  char* names = format_text("%s/vocab.json", folder);
  char* merges = format_text("%s/merges.txt", folder);
  char* text = NULL;
  json_value* json = read_json(whole, &text);
  if (json) {
    read_tokenizer_json(t, json);
  } else if ((json = read_json(names, &text)) != NULL) {
    add_vocabulary(t, json);
    read_merges(t, merges);
  } else if (vocabulary == 256) {
    make_byte_tokens(t);
  } else {
    fail("%s: neither tokenizer.json nor vocab.json is there", folder);
  }
  json_free(json);
  free(text);
  free(merges);
  free(names);
  free(whole);
  return t;
}

void free_tokenizer(tokenizer* t) {
  for (size_t i = 0; i < t->token_count; ++i) free(t->tokens[i].bytes);
  free(t->tokens);
  free(t->by_text);
  free(t->merges);
  free(t);
}

/* --- Texts -------------------------------------------------------------------------------------*/

/* Merges the pair of the lowest rank until there is none. Returns the number of tokens. */
static size_t merge_word(const tokenizer* t, int32_t* tokens, size_t count) {
  while (count > 1) {
    const merge* best = NULL;
    for (size_t i = 0; i + 1 < count; ++i) {
      const merge* m = find_merge(t, tokens[i], tokens[i + 1]);
      if (m->rank >= 0 && (!best || m->rank < best->rank)) best = m;
    }
    if (!best) break;
    size_t kept = 0;
    for (size_t i = 0; i < count; ++kept) {
      int both = i + 1 < count && tokens[i] == best->left && tokens[i + 1] == best->right;
      tokens[kept] = both ? best->merged : tokens[i];
      i += both ? 2 : 1;
    }
    count = kept;
  }
  return count;
}

int32_t* encode_text(const tokenizer* t, const char* text, size_t size, size_t* count) {
  int32_t* tokens = allocate(size, sizeof(int32_t));
  *count = 0;
  for (size_t i = 0; i < size;) {
    size_t length = t->merge_count ? word_length(t->words, text + i, size - i) : size;
    int32_t* word = tokens + *count;
    int32_t whole = t->whole_words ? *find_text(t, text + i, length) : -1;
    if (whole >= 0) {
      *word = whole;
      ++*count;
      i += length;
      continue;
    }
    for (size_t j = 0; j < length; ++j) {
      unsigned char byte = (unsigned char)text[i + j];
      word[j] = t->of_byte[byte];
      if (word[j] < 0) fail("the tokenizer has no token for the byte %d", byte);
    }
    *count += merge_word(t, word, length);
    i += length;
  }
  return tokens;
}

const char* token_bytes(const tokenizer* t, int32_t token, size_t* length) {
  int known = token >= 0 && (size_t)token < t->token_count && t->tokens[token].known;
  *length = known ? t->tokens[token].length : 0;
  return known ? t->tokens[token].bytes : "";
}
