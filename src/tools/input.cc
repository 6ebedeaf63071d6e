#include "tools/input.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/characters.h"
#include "base/strings.h"

namespace kiln::tools {

Result<std::string> ReadInput(const std::string& file) {
  std::ifstream stream;
  if (file != kStandardInput) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) return InvalidArgument(file, " is a folder");
    stream.open(file, std::ios::binary);
    if (!stream) return NotFound("cannot read ", file);
  }
  std::istream& in = file == kStandardInput ? std::cin : stream;
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) return DataLoss("cannot read ", file);
  return text;
}

namespace {

// Whether the text begins with a computation, "name {" or "%name (a: f32[]) -> f32[] {".
bool BeginsWithComputation(std::string_view text) {
  size_t end = StartsWith(text, "%") ? 1 : 0;
  if (end == 0 && (text.empty() || !IsLetter(text[0]))) return false;
  while (end < text.size() &&
         (IsLetter(text[end]) || IsDigit(text[end]) || text[end] == '.' || text[end] == '-')) {
    ++end;
  }
  const std::string_view name = text.substr(0, end), rest = Trim(text.substr(end));
  return name != "module" && name != "builtin.module" &&
         (StartsWith(rest, "{") || StartsWith(rest, "("));
}

}  // namespace

bool IsHloText(std::string_view text) {
  while (true) {
    text = Trim(text);
    const bool is_block = StartsWith(text, "/*");
    if (!is_block && !StartsWith(text, "//")) break;
    const size_t end = text.find(is_block ? "*/" : "\n");
    if (end == text.npos) return false;
    text.remove_prefix(end + (is_block ? 2 : 1));
  }
  return StartsWith(text, "HloModule") || StartsWith(text, "ENTRY") || BeginsWithComputation(text);
}

Status AtPlace(const std::string& file, const Status& failure) {
  const std::string name = file == kStandardInput ? "<stdin>" : file;
  const std::string_view message = failure.message();
  constexpr std::string_view kLine = "line ", kColumn = ", column ";
  const size_t column = message.find(kColumn), colon = message.find(": ");
  if (!StartsWith(message, kLine) || column == message.npos || colon == message.npos ||
      column > colon) {
    return failure.WithContext(name);
  }
  const size_t column_digits = column + kColumn.size();
  return Status(failure.code(),
                Cat(name, ":", message.substr(kLine.size(), column - kLine.size()), ":",
                    message.substr(column_digits, colon - column_digits), message.substr(colon)));
}

}  // namespace kiln::tools
