#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "parts/common.h"

enum { MAX_DEPTH = 64 };

typedef struct {
  char *at, *end;
  const char* error; /* the first one; parsing ends with it */
  int depth;
} reader;

static int failed(reader* r, const char* error) {
  if (!r->error) r->error = error;
  return 0;
}

static void skip_space(reader* r) {
  while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) ++r->at;
}

static int take(reader* r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return 0;
  ++r->at;
  return 1;
}

static int take_word(reader* r, const char* word) {
  size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length)) return 0;
  r->at += length;
  return 1;
}

static unsigned hex4(reader* r) {
  unsigned value = 0;
  for (int i = 0; i < 4; ++i, ++r->at) {
    const char* digits = "0123456789abcdef0123456789ABCDEF";
    const char* digit = r->at < r->end && *r->at ? strchr(digits, *r->at) : NULL;
    if (!digit) return (unsigned)failed(r, "four hexadecimal digits are expected");
    value = value * 16 + (unsigned)(digit - digits) % 16;
  }
  return value;
}

static char* put_utf8(char* to, unsigned c) {
  if (c < 0x80) {
    *to++ = (char)c;
    return to;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
  *to++ = (char)(kLead[more] | c >> 6 * more);
  while (more-- > 0) *to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
  return to;
}

/* After a backslash; never makes more bytes than it reads. */
static char* unescape(reader* r, char* to) {
  static const char kLetters[] = "\"\\/bfnrt", kBytes[] = "\"\\/\b\f\n\r\t";
  if (r->at == r->end) return to;
  char c = *r->at++;
  const char* letter = c ? strchr(kLetters, c) : NULL;
  if (letter) {
    *to++ = kBytes[letter - kLetters];
    return to;
  }
  if (c != 'u') {
    failed(r, "an unknown escape");
    return to;
  }
  unsigned code = hex4(r);
  if (code >= 0xd800 && code < 0xdc00) {
    unsigned low = take_word(r, "\\u") ? hex4(r) : 0;
    if (low < 0xdc00 || low >= 0xe000) failed(r, "half of a surrogate pair");
    code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
  } else if (code >= 0xdc00 && code < 0xe000) {
    failed(r, "half of a surrogate pair");
  }
  return r->error ? to : put_utf8(to, code);
}

/* After the opening quote. The text is unescaped in its place. */
static int read_string(reader* r, const char** text, size_t* length) {
  char* to = r->at;
  *text = to;
  while (!r->error && r->at < r->end && *r->at != '"') {
    if ((unsigned char)*r->at < 0x20) return failed(r, "a control character in a string");
    char c = *r->at++;
    if (c == '\\') {
      to = unescape(r, to);
    } else {
      *to++ = c;
    }
  }
  if (r->error) return 0;
  if (r->at == r->end) return failed(r, "a string without an end");
  ++r->at;
  *length = (size_t)(to - *text);
  *to = '\0'; /* in the place of the closing quote, or before it */
  return 1;
}

static int read_number(reader* r, double* number) {
  char* p = r->at;
  if (p < r->end && *p == '-') ++p;
  if (p == r->end || *p < '0' || *p > '9') return failed(r, "a value is expected");
  char* end;
  *number = strtod(r->at, &end);
  r->at = end;
  return 1;
}

static json_value* read_value(reader* r);

static void read_members(reader* r, json_value* parent, char close) {
  json_value** last = &parent->first;
  if (take(r, close)) return;
  do {
    const char* key = NULL;
    size_t key_length = 0;
    if (parent->kind == JSON_OBJECT) {
      if (!take(r, '"')) {
        failed(r, "a name in quotes is expected");
        return;
      }
      if (!read_string(r, &key, &key_length)) return;
      if (!take(r, ':')) {
        failed(r, "':' is expected");
        return;
      }
    }
    json_value* value = read_value(r);
    if (!value) return;
    value->key = key;
    value->key_length = key_length;
    *last = value;
    last = &value->next;
  } while (take(r, ','));
  if (!take(r, close)) failed(r, "',' or the end of the list is expected");
}

static json_value* read_value(reader* r) {
  json_value* value = allocate(1, sizeof(json_value));
  if (take(r, '{') || take(r, '[')) {
    char close = r->at[-1] == '{' ? '}' : ']';
    value->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
    if (++r->depth > MAX_DEPTH) failed(r, "nested too deep");
    if (!r->error) read_members(r, value, close);
    --r->depth;
  } else if (take(r, '"')) {
    value->kind = JSON_STRING;
    read_string(r, &value->text, &value->length);
  } else if (take_word(r, "null")) {
    value->kind = JSON_NULL;
  } else if (take_word(r, "true") || take_word(r, "false")) {
    value->kind = JSON_BOOL;
    value->number = r->at[-2] == 'u';
  } else {
    value->kind = JSON_NUMBER;
    read_number(r, &value->number);
  }
  if (!r->error) return value;
  json_free(value);
  return NULL;
}

json_value* json_parse(char* text, size_t size, const char** error, size_t* position) {
  reader r = {text, text + size, NULL, 0};
  json_value* value = read_value(&r);
  if (value) skip_space(&r);
  if (value && r.at != r.end) failed(&r, "something follows the value");
  if (!r.error) return value;
  json_free(value);
  *error = r.error;
  *position = (size_t)(r.at - text);
  return NULL;
}

void json_free(json_value* value) {
  while (value) {
    json_value* next = value->next;
    json_free(value->first);
    free(value);
    value = next;
  }
}

const json_value* json_member(const json_value* object, const char* key) {
  if (!object || object->kind != JSON_OBJECT) return NULL;
  size_t length = strlen(key);
  for (const json_value* m = object->first; m; m = m->next) {
    if (m->key_length == length && memcmp(m->key, key, length) == 0) return m;
  }
  return NULL;
}

static const json_value* member_of_kind(const json_value* object, const char* key, json_kind kind) {
  const json_value* m = json_member(object, key);
  if (!m || m->kind == JSON_NULL) return NULL;
  if (m->kind != kind) fail("\"%s\" is of the wrong kind", key);
  return m;
}

double json_number(const json_value* object, const char* key, double absent) {
  const json_value* m = member_of_kind(object, key, JSON_NUMBER);
  return m ? m->number : absent;
}

int json_bool(const json_value* object, const char* key, int absent) {
  const json_value* m = member_of_kind(object, key, JSON_BOOL);
  return m ? m->number != 0 : absent;
}

const char* json_text(const json_value* object, const char* key, const char* absent) {
  const json_value* m = member_of_kind(object, key, JSON_STRING);
  return m ? m->text : absent;
}
