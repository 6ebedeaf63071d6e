# LLVM as static archives, with nothing at run time but libm, libc and the loader.

# The version must name major and minor: LLVM's package file accepts nothing less.
find_package(LLVM 19.1 CONFIG REQUIRED)
llvm_map_components_to_libnames(KILN_LLVM_LIBS orcjit x86codegen nvptxcodegen passes)

# LLVM's package file asks for the shared zlib, zstd and z3. The first two are linked statically,
# the third is never called by the components above.
set_target_properties(LLVMSupport PROPERTIES
                      INTERFACE_LINK_LIBRARIES "rt;dl;m;-l:libz.a;-l:libzstd.a;LLVMDemangle")

# lld links the library five times faster than GNU ld, and has functions of the same code once: no
# address of a function is compared. The distribution's lld-19 is not on the PATH under the name
# that compilers look for, hence -B.
set(KILN_FOLD_FUNCTIONS "")
if(EXISTS ${LLVM_TOOLS_BINARY_DIR}/ld.lld)
  add_link_options(-fuse-ld=lld -B${LLVM_TOOLS_BINARY_DIR})
  set(KILN_FOLD_FUNCTIONS -Wl,--icf=all)
endif()
