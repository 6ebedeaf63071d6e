/* usage: gate-beside-llvm kiln-first|llvm-first LIBKILN LIBLLVM
 *
 * Loads libkiln.so and another LLVM into one process, in the given order and with global symbols,
 * as a host application would that already holds an LLVM, and calls into both; then unloads Kiln
 * and sees that it is gone. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* (*create_fn)(void);
typedef void* (*named_fn)(const char*, void*);
typedef void (*dispose_fn)(void*);
typedef char* (*print_fn)(void*);
typedef int32_t (*version_fn)(void);

static void* open_or_die(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (handle == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  return handle;
}

static void* symbol_or_die(void* handle, const char* name) {
  void* symbol = dlsym(handle, name);
  if (symbol == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  return symbol;
}

/* Makes, prints and frees a module with the other LLVM. */
static int call_llvm(void* llvm) {
  void* context = ((create_fn)symbol_or_die(llvm, "LLVMContextCreate"))();
  void* module =
      ((named_fn)symbol_or_die(llvm, "LLVMModuleCreateWithNameInContext"))("beside", context);
  char* text = ((print_fn)symbol_or_die(llvm, "LLVMPrintModuleToString"))(module);
  int good = strstr(text, "beside") != NULL;
  ((dispose_fn)symbol_or_die(llvm, "LLVMDisposeMessage"))(text);
  ((dispose_fn)symbol_or_die(llvm, "LLVMDisposeModule"))(module);
  ((dispose_fn)symbol_or_die(llvm, "LLVMContextDispose"))(context);
  return good;
}

static int call_kiln(void* kiln) { return ((version_fn)symbol_or_die(kiln, "kiln_version"))() > 0; }

static int mapped(const char* part) {
  char line[4096];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    found |= strstr(line, part) != NULL;
  }
  if (maps != NULL) fclose(maps);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    printf("usage: %s kiln-first|llvm-first LIBKILN LIBLLVM\n", argv[0]);
    return 2;
  }
  int kiln_first = strcmp(argv[1], "kiln-first") == 0;
  void* first = open_or_die(argv[kiln_first ? 2 : 3]);
  if (!(kiln_first ? call_kiln(first) : call_llvm(first))) return 1;
  void* second = open_or_die(argv[kiln_first ? 3 : 2]);
  if (!(kiln_first ? call_llvm(second) : call_kiln(second))) return 1;
  void* kiln = kiln_first ? first : second;
  void* llvm = kiln_first ? second : first;
  if (!call_kiln(kiln) || !call_llvm(llvm)) return 1;

  if (!mapped("libkiln")) return 1;
  dlclose(kiln);
  if (mapped("libkiln")) {
    printf("dlclose left libkiln mapped\n");
    return 1;
  }
  return call_llvm(llvm) ? 0 : 1;
}
