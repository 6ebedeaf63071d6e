/* Characters in UTF-8, and their classes in GPT-2's rule for words. */
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

/* The bytes of the first word: 's and other contractions, or letters, numbers or other characters,
 * each with a space before them, or spaces.  */
size_t word_length(const char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_CHARACTERS_H_ */
