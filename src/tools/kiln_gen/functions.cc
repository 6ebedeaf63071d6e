#include "base/strings.h"
#include "tools/kiln_gen/tables.h"

namespace kiln::gen {

const std::vector<Function>& Functions() {
  static const std::vector<Function>* functions = new std::vector<Function>{
#define KILN_FUNCTION(name, returns, parameters, role, gives, threads, since) \
  {#name, #returns, #parameters, Role::role, gives, Threads::threads, since},
#include "capi/api.def"
#undef KILN_FUNCTION
  };
  return *functions;
}

namespace {

bool IsNameCharacter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Parameter ParseParameter(std::string_view text) {
  text = Trim(text);
  // In "void (*callback)(void* user_data)" the name stands inside; elsewhere it is the last word.
  size_t end = text.size();
  if (size_t star = text.find("(*"); star != text.npos) end = text.find(')', star);
  size_t begin = end;
  while (begin > 0 && IsNameCharacter(text[begin - 1])) --begin;
  return {std::string(Trim(Cat(text.substr(0, begin), text.substr(end)))),
          std::string(text.substr(begin, end - begin)), ""};
}

}  // namespace

std::vector<Parameter> ParseSignature(std::string_view signature) {
  std::vector<Parameter> parameters;
  signature = signature.substr(1, signature.size() - 2);
  if (signature == "void") return parameters;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= signature.size(); ++i) {
    if (i == signature.size() || (signature[i] == ',' && depth == 0)) {
      parameters.push_back(ParseParameter(signature.substr(begin, i - begin)));
      begin = i + 1;
      continue;
    }
    if (signature[i] == '(') ++depth;
    if (signature[i] == ')') --depth;
  }
  return parameters;
}

}  // namespace kiln::gen
