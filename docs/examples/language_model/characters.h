/* Characters in UTF-8, their classes, and words. */
#ifndef LANGUAGE_MODEL_CHARACTERS_H_
#define LANGUAGE_MODEL_CHARACTERS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { LETTER, NUMBER, SPACE, OTHER } character_class;

/* The code point at the front of a text of at least one byte, and its number of bytes. A byte that
 * begins no character is one of its own, beyond Unicode. */
unsigned read_character(const char* text, size_t size, size_t* length);

character_class class_of(unsigned code_point);

/* How texts are cut into words, in which tokenizers merge pairs. */
typedef enum {
  /* 's and other contractions; letters, numbers or others, with a space before them; spaces. */
  GPT2_WORDS,
  /* The same between digits, each of which is a word. */
  DIGIT_WORDS,
  /* Contractions in any case; letters with any character but a line's end before them; up to three
   * digits; others, with a space before and lines' ends behind them; spaces to the last line's end;
   * other spaces. */
  LLAMA3_WORDS
} word_rule;

/* The bytes of the first word of a text that has some. */
size_t word_length(word_rule rule, const char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_CHARACTERS_H_ */
