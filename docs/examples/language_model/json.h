/* A reader of JSON, for config.json, vocab.json and tokenizer.json. */
#ifndef LANGUAGE_MODEL_JSON_H_
#define LANGUAGE_MODEL_JSON_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json_value {
  json_kind kind;
  double number;            /* of a number; 0 or 1 of a truth value */
  const char* text;         /* of a string, in UTF-8, null-terminated */
  size_t length;            /* bytes of `text` */
  const char* key;          /* in an object: the name of the member, as `text` */
  size_t key_length;        /* bytes of `key` */
  struct json_value* first; /* of an array or object, NULL if it is empty */
  struct json_value* next;  /* the next one in the same array or object */
} json_value;

/* Reads a text. It is changed, must be followed by a NUL, and must stay: strings point into it.
 * Returns the value, to be freed with json_free(); or NULL, with a message in `error` and the
 * number of the byte in `position`. */
json_value* json_parse(char* text, size_t size, const char** error, size_t* position);
void json_free(json_value* value);

/* The member of an object, or NULL. NULL is no object. */
const json_value* json_member(const json_value* object, const char* key);

/* The number, truth value or text of a member; `absent` if it is not there or is null. A member of
 * another kind ends the program. */
double json_number(const json_value* object, const char* key, double absent);
int json_bool(const json_value* object, const char* key, int absent);
const char* json_text(const json_value* object, const char* key, const char* absent);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_JSON_H_ */
