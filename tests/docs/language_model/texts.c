/* JSON, tokenizers and sampling. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language_model/characters.h"
#include "language_model/json.h"
#include "language_model/sampling.h"
#include "language_model/tokenizer.h"
#include "parts/common.h"
#include "testing.h"

/* --- JSON --------------------------------------------------------------------------------------*/

static json_value* parse(const char* text, char** copy) {
  const char* error;
  size_t position, size = strlen(text);
  *copy = allocate(size + 1, 1);
  memcpy(*copy, text, size);
  return json_parse(*copy, size, &error, &position);
}

static void expect_no_json(const char* text, const char* message, size_t at) {
  const char* error = "";
  size_t position = 0, size = strlen(text);
  char* copy = allocate(size + 1, 1);
  memcpy(copy, text, size);
  json_value* value = json_parse(copy, size, &error, &position);
  if (value || !strstr(error, message) || position != at) {
    printf("%s: got %s at %zu; expected %s at %zu\n", text, value ? "a value" : error, position,
           message, at);
    ++failed_checks;
  }
  json_free(value);
  free(copy);
}

void test_json(void) {
  char* copy;
  json_value* v = parse(
      " {\"a\": [1, -2.5e3, true, null], \"\\u0120\\\"\\n\\ud83d\\ude00\": \"x\\ty\", \"b\": {} } ",
      &copy);
  CHECK(v && v->kind == JSON_OBJECT);
  const json_value* a = json_member(v, "a");
  CHECK(a && a->kind == JSON_ARRAY && a->first->number == 1);
  CHECK(a->first->next->number == -2500 && a->first->next->next->kind == JSON_BOOL);
  CHECK(a->first->next->next->number == 1 && a->first->next->next->next->kind == JSON_NULL);
  CHECK(strcmp(json_text(v, "\xc4\xa0\"\n\xf0\x9f\x98\x80", ""), "x\ty") == 0);
  CHECK(json_member(v, "b")->first == NULL && json_member(v, "c") == NULL);
  CHECK(json_number(v, "c", 7) == 7 && json_bool(v, "c", 1) == 1);
  json_free(v);
  free(copy);
  expect_no_json("", "a value is expected", 0);
  expect_no_json("[1, 2", "',' or the end", 5);
  expect_no_json("{\"a\" 1}", "':' is expected", 5);
  expect_no_json("{1: 2}", "a name in quotes", 1);
  expect_no_json("[1] 2", "something follows", 4);
  expect_no_json("\"abc", "a string without an end", 4);
  expect_no_json("\"\\x\"", "an unknown escape", 3);
  expect_no_json("\"\\ud800x\"", "half of a surrogate pair", 7);
  expect_no_json("\"a\nb\"", "a control character", 2);
  expect_no_json("-", "a value is expected", 0);
  char deep[201];
  memset(deep, '[', 200);
  deep[200] = '\0';
  expect_no_json(deep, "nested too deep", 65);
}

/* --- Tokenizers --------------------------------------------------------------------------------*/

/* The words of a text, with bars between them. */
static void expect_words(word_rule rule, const char* text, const char* words) {
  char got[256] = "";
  size_t used = 0, size = strlen(text);
  for (size_t i = 0, length; i < size; i += length) {
    length = word_length(rule, text + i, size - i);
    if (length == 0) fail("a word without an end");
    if (i > 0) got[used++] = '|';
    memcpy(got + used, text + i, length);
    used += length;
  }
  if (strcmp(got, words) != 0) {
    printf("the words are %s; expected %s\n", got, words);
    ++failed_checks;
  }
}

static void test_words(void) {
  expect_words(GPT2_WORDS, "Hello world", "Hello| world");
  expect_words(GPT2_WORDS, "I'm don't we'll 'tis", "I|'m| don|'t| we|'ll| '|tis");
  expect_words(GPT2_WORDS, "a1 b22c  3", "a|1| b|22|c| | 3");
  expect_words(GPT2_WORDS, "x  \n\ty", "x|  \n|\t|y");
  expect_words(GPT2_WORDS, "end   ", "end|   ");
  expect_words(GPT2_WORDS, "(a)!? -- b", "(|a|)!?| --| b");
  expect_words(GPT2_WORDS, " \n", " \n");
  expect_words(GPT2_WORDS, "\xc3\xa9t\xc3\xa9 \xc2\xb2\xe2\x80\x94x",
               "\xc3\xa9t\xc3\xa9| \xc2\xb2|\xe2\x80\x94|x");
  expect_words(GPT2_WORDS, "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c",
               "\xe4\xbd\xa0\xe5\xa5\xbd|\xef\xbc\x8c");
  expect_words(GPT2_WORDS, "\xff\xfe", "\xff\xfe");
  expect_words(DIGIT_WORDS, "a1 b22c  3 d'll", "a|1| b|2|2|c|  |3| d|'ll");
  expect_words(LLAMA3_WORDS, "Hello  world\tx", "Hello| | world|\tx");
  expect_words(LLAMA3_WORDS, "I'M we'LL 12345 (a)", "I|'M| we|'LL| |123|45| (|a|)");
  expect_words(LLAMA3_WORDS, "x!?\n\ny  \n \n z", "x|!?\n\n|y|  \n \n| z");
  expect_words(LLAMA3_WORDS, "\nab .\r\n  ", "\n|ab| .\r\n|  ");
  expect_words(LLAMA3_WORDS, "a\xc2\xb2 _\xc3\xa9", "a|\xc2\xb2| _|\xc3\xa9");
  CHECK(class_of(0xa0) == SPACE && class_of(0x663) == NUMBER && class_of(0x439) == LETTER);
  CHECK(class_of(0x1f600) == OTHER && class_of(0x10ffff) == OTHER && class_of(0xaa) == LETTER);
}

enum { MERGES = 7 };
static const char* const kMerges[MERGES][2] = {{"h", "e"},         {"l", "l"},        {"he", "ll"},
                                               {"hell", "o"},      {"\xc4\xa0", "w"}, {"o", "r"},
                                               {"\xc4\xa0w", "or"}};

/* Themselves where they are printable, or characters from U+0100 on. */
char* write_byte_names(char* to) {
  unsigned other = 256;
  for (int i = 0; i < 256; ++i) {
    unsigned c = (i >= 33 && i <= 126) || (i >= 161 && i != 173) ? (unsigned)i : other++;
    to += sprintf(to, "%s\"\\u%04x\": %d", i ? ", " : "", c, i);
  }
  return to;
}

static void write_text(const char* folder, const char* name, const char* text) {
  char* path = format_text("%s/%s", folder, name);
  if (write_file(path, text, strlen(text))) fail("%s cannot be written", path);
  free(path);
}

/* "whole": GPT-2's form; "digits" and "llama3": other rules for words, and words that are taken as
 * they are. */
static void write_tokenizer_json(const char* out, const char* name, const char* pre_tokenizer,
                                 int whole_words, const char* vocabulary, const char* merges) {
  char* folder = make_test_folder(out, name);
  char* json = format_text(
      "{\"added_tokens\": [{\"id\": 263, \"content\": \"<|endoftext|>\"}], \"normalizer\": null,\n"
      " \"pre_tokenizer\": %s,\n \"model\": {\"type\": \"BPE\", \"ignore_merges\": %s, \"vocab\": "
      "{%s},"
      " \"merges\": [%s]}}",
      pre_tokenizer, whole_words ? "true" : "false", vocabulary, merges);
  write_text(folder, "tokenizer.json", json);
  free(json);
  free(folder);
}

static void write_tokenizers(const char* out) {
  char* vocabulary = allocate(1 << 14, 1);
  char* merges = allocate(1 << 10, 1);
  char* list = allocate(1 << 10, 1);
  write_byte_names(vocabulary);
  strcpy(merges, "#version: 0.2\n");
  for (int i = 0; i < MERGES; ++i) {
    const char *left = kMerges[i][0], *right = kMerges[i][1];
    sprintf(vocabulary + strlen(vocabulary), ", \"%s%s\": %d", left, right, 256 + i);
    sprintf(merges + strlen(merges), "%s %s\n", left, right);
    sprintf(list + strlen(list), i % 2 ? "%s[\"%s\", \"%s\"]" : "%s\"%s %s\"", i ? ", " : "", left,
            right);
  }
  strcat(vocabulary, ", \"xyz\": 264");
  char* names = format_text("{%s, \"<|endoftext|>\": 263}", vocabulary);
  char* pair = make_test_folder(out, "pair");
  write_text(pair, "vocab.json", names);
  write_text(pair, "merges.txt", merges);
  write_tokenizer_json(out, "whole", "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}", 0,
                       vocabulary, list);
  write_tokenizer_json(out, "digits",
                       "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", "
                       "\"individual_digits\": true}, {\"type\": \"ByteLevel\"}]}",
                       0, vocabulary, list);
  write_tokenizer_json(
      out, "llama3",
      "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
      "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"
      " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
      "\"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", \"use_regex\": false}]}",
      1, vocabulary, list);
  free(pair);
  free(names);
  free(list);
  free(merges);
  free(vocabulary);
}

static void expect_tokens(const tokenizer* t, const char* text, const int32_t* expected,
                          size_t expected_count) {
  size_t count, used = 0, size = strlen(text);
  int32_t* tokens = encode_text(t, text, size, &count);
  int same = count == expected_count;
  for (size_t i = 0; same && i < count; ++i) same = tokens[i] == expected[i];
  if (!same) {
    printf("%s: the tokens are", text);
    for (size_t i = 0; i < count; ++i) printf(" %d", (int)tokens[i]);
    printf("\n");
    ++failed_checks;
  }
  /* Tokens are the bytes again. */
  for (size_t i = 0; i < count; ++i) {
    size_t length;
    const char* bytes = token_bytes(t, tokens[i], &length);
    CHECK(used + length <= size && memcmp(text + used, bytes, length) == 0);
    used += length;
  }
  CHECK(used == size);
  free(tokens);
}

static void test_pairs(const tokenizer* t) {
  expect_tokens(t, "hello world", (int32_t[]){259, 262, 'l', 'd'}, 4);
  expect_tokens(t, "hellhe", (int32_t[]){258, 256}, 2);
  expect_tokens(t, "lll hel\n", (int32_t[]){257, 'l', ' ', 256, 'l', '\n'}, 6);
  expect_tokens(t, "\xc3\xa9 \xff", (int32_t[]){0xc3, 0xa9, ' ', 0xff}, 4);
  expect_tokens(t, "", NULL, 0);
  size_t length;
  CHECK(strcmp(token_bytes(t, 263, &length), "<|endoftext|>") == 0 && length == 13);
  CHECK(strcmp(token_bytes(t, 262, &length), " wor") == 0 && length == 4);
  CHECK(*token_bytes(t, 265, &length) == '\0' && length == 0);
}

static tokenizer* read_from(const char* out, const char* name, int64_t vocabulary) {
  char* folder = make_test_folder(out, name);
  tokenizer* t = read_tokenizer(folder, vocabulary);
  free(folder);
  return t;
}

void test_tokenizers(const char* out) {
  static const char* const kSame[] = {"pair", "whole", "digits", "llama3"};
  test_words();
  write_tokenizers(out);
  for (int i = 0; i < 4; ++i) {
    tokenizer* t = read_from(out, kSame[i], 265);
    test_pairs(t);
    expect_tokens(t, "or or", (int32_t[]){261, ' ', 261}, 3);
    /* No merges make "xyz" of letters. */
    if (i == 3) {
      expect_tokens(t, "xyz xyz", (int32_t[]){264, ' ', 'x', 'y', 'z'}, 5);
    } else {
      expect_tokens(t, "xyz", (int32_t[]){'x', 'y', 'z'}, 3);
    }
    free_tokenizer(t);
  }
  tokenizer* t = read_from(out, "bytes", 256);
  expect_tokens(t, "he l\xff", (int32_t[]){'h', 'e', ' ', 'l', 0xff}, 5);
  free_tokenizer(t);
}

/* --- Sampling ----------------------------------------------------------------------------------*/

enum { TOKENS = 6, DRAWS = 60000 };

/* Draws tokens, and compares how often each comes with its probability. */
static void expect_shares(const float* logits, double temperature, double top_p,
                          const double* expected) {
  int counts[TOKENS] = {0};
  uint64_t random = 5;
  for (int i = 0; i < DRAWS; ++i) {
    ++counts[sample_token(logits, TOKENS, temperature, top_p, &random)];
  }
  for (int i = 0; i < TOKENS; ++i) {
    double share = (double)counts[i] / DRAWS;
    double deviation = sqrt(expected[i] * (1 - expected[i]) / DRAWS);
    CHECK(fabs(share - expected[i]) <= 4.5 * deviation);
  }
}

void test_sampling(void) {
  const double probabilities[TOKENS] = {0.05, 0.4, 0.1, 0.25, 0.15, 0.05};
  float logits[TOKENS];
  for (int i = 0; i < TOKENS; ++i) logits[i] = (float)log(probabilities[i]) + 30;
  uint64_t random = 1, again = 1, other = 2;
  CHECK(sample_token(logits, TOKENS, 0, 1, &random) == 1 && random == 1);
  expect_shares(logits, 1, 1, probabilities);
  const double best_two[TOKENS] = {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0, 0};
  expect_shares(logits, 1, 0.6, best_two);
  const double best[TOKENS] = {0, 1, 0, 0, 0, 0};
  expect_shares(logits, 1, 0.3, best);
  double squares[TOKENS], sum = 0;
  for (int i = 0; i < TOKENS; ++i) sum += squares[i] = probabilities[i] * probabilities[i];
  for (int i = 0; i < TOKENS; ++i) squares[i] /= sum;
  expect_shares(logits, 0.5, 1, squares);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    int32_t token = sample_token(logits, TOKENS, 1, 0.9, &random);
    CHECK(token == sample_token(logits, TOKENS, 1, 0.9, &again));
    differ |= token != sample_token(logits, TOKENS, 1, 0.9, &other);
  }
  CHECK(differ);
}
