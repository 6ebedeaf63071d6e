/** @file
 *  How the functions of the C ABI are declared. */
#ifndef KILN_EXPORT_H_
#define KILN_EXPORT_H_

/** Marks a function that libkiln.so exports. */
#if defined(__GNUC__) || defined(__clang__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

#endif /* KILN_EXPORT_H_ */
