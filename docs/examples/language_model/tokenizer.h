/* Texts as tokens: bytes, or byte pair encoding as GPT-2's and Llama 3's. */
#ifndef LANGUAGE_MODEL_TOKENIZER_H_
#define LANGUAGE_MODEL_TOKENIZER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tokenizer tokenizer;

/* Reads FOLDER/tokenizer.json, or vocab.json and merges.txt. Without these files, a vocabulary of
 * 256 tokens is that of bytes. Of byte-level BPE, the rules for words of GPT-2, of GPT-2 with
 * single digits (SmolLM), and of Llama 3 are known; other tokenizers end the program.
 *
 * Texts are cut into words before pairs are merged. The classes of characters in which this is
 * done, letters, numbers, spaces and others, are exact for ASCII, and for the rest of Unicode known
 * by ranges: a character outside of them counts as a letter. */
tokenizer* read_tokenizer(const char* folder, int64_t vocabulary);
void free_tokenizer(tokenizer* t);

/* The tokens of a text, to be freed with free(). */
int32_t* encode_text(const tokenizer* t, const char* text, size_t size, size_t* count);

/* The bytes of a token, none for an unknown one; they live as long as the tokenizer. */
const char* token_bytes(const tokenizer* t, int32_t token, size_t* length);

#ifdef __cplusplus
}
#endif

#endif /* LANGUAGE_MODEL_TOKENIZER_H_ */
