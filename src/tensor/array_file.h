// Files of arrays: NumPy's .npy and .npz, and safetensors, as arguments and results of programs.
//
// A .npy file is a magic number, a version, the length of a header, the header (a Python dict with
// the type, the order and the sizes), and the elements. A .npz file is a ZIP archive of .npy files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/literal.h"

namespace kiln {

// An array of a file.
struct FileArray {
  std::string name;  // in the file, without ".npy"; "" in a .npy file
  Literal literal;
  // The type says no more than the width of the elements: NumPy stores types that it does not know
  // as bytes ("V2" is a bf16, if its program wants one).
  bool is_bits = false;
};

// The arrays of a file, by the form of its contents, in their order. They are in the mapped file
// where the form allows it: elements in row-major order, little-endian and aligned; others are
// copied. A mapped file must not be changed or cut off. INVALID_ARGUMENT for contents of no form,
// UNIMPLEMENTED for compressed archives and for types without an element type; errors of the
// system. All of them name the path, and the array in it.
Result<std::vector<FileArray>> ReadArrays(const std::string& path);

// The array as a value of a shape: INVALID_ARGUMENT, naming both, if it is another one. Bits, and
// unsigned integers, are taken for any type of their width that NumPy lacks.
Result<Literal> AsShape(const FileArray& array, const Shape& shape);

// A .npy file of an array; types that NumPy lacks are stored as bytes. Errors name the path.
Status WriteNpy(const std::string& path, const Literal& array);

// The parsed contents of a .npy file.
struct NpyHeader {
  ElementType type = ElementType::kInvalid;
  bool is_bits = false, is_big_endian = false, is_fortran_order = false;
  std::vector<int64_t> dims;
  size_t data = 0;  // where the elements begin
};
// INVALID_ARGUMENT with the byte; UNIMPLEMENTED for types without an element type.
Result<NpyHeader> ParseNpyHeader(std::string_view bytes);

// A member of an archive.
struct ZipEntry {
  std::string_view name, bytes;
};
// The members of an archive of stored files. INVALID_ARGUMENT with the member or the part;
// UNIMPLEMENTED for compressed ones.
Result<std::vector<ZipEntry>> ReadZip(std::string_view archive);

}  // namespace kiln
