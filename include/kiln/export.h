/** @file
 *  The declaration of exported functions. */
#ifndef KILN_EXPORT_H_
#define KILN_EXPORT_H_

/** Marks a function exported by libkiln.so. */
#if defined(__GNUC__) || defined(__clang__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

#endif /* KILN_EXPORT_H_ */
