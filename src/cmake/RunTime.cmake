include(${CMAKE_CURRENT_LIST_DIR}/KilnAddProgram.cmake)

# libkiln_rt.a: what programs compiled ahead of time are linked with, beside libc and libm. A member is
# linked where it is used. The core has nothing of the C++ library in it. Each part of the library of
# functions is one member with all that it needs, the C++ library's parts included, and one visible
# symbol; so it gets along with any other C++ library in a program, or none.
target_compile_options(kiln_rt PRIVATE $<$<CONFIG:Release>:-Os>)
# Nor does it call what distributions' compilers add by themselves.
set(rt_core_options -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-asynchronous-unwind-tables
    -fno-stack-protector -U_FORTIFY_SOURCE)
file(GLOB rt_core CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/rt/*.cc)
set_source_files_properties(${rt_core} PROPERTIES COMPILE_OPTIONS "${rt_core_options}")

# What the parts are made from. The objects are those of libkiln: the results are, too.
add_library(kiln_rt_pieces STATIC $<TARGET_OBJECTS:kiln_base> $<TARGET_OBJECTS:kiln_tensor>
            $<TARGET_OBJECTS:kiln_runtime>)

# The C++ library as an archive.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a
                OUTPUT_VARIABLE rt_cxx_library OUTPUT_STRIP_TRAILING_WHITESPACE)
# The linker beside objcopy is that of the machine: "aarch64-linux-gnu-ld.bfd".
get_filename_component(rt_linker "${CMAKE_OBJCOPY}" NAME)
string(REPLACE "objcopy" "ld" rt_linker "${rt_linker}")
find_program(KILN_LD NAMES ${rt_linker}.bfd ${rt_linker} ld.bfd ld REQUIRED)
mark_as_advanced(KILN_LD)

set(rt_parts "")
foreach(part fft linear lapack random checks)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/rt/${part}.o)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${KILN_LD} -r --gc-sections --force-group-allocation -u kiln_aot_${part}
            -o ${output}.whole "$<FILTER:$<TARGET_OBJECTS:kiln_rt>,INCLUDE,rt/library/${part}\\.>"
            --start-group $<TARGET_FILE:kiln_rt_pieces> ${rt_cxx_library} --end-group
    # Names of inline variables are visible in their own way, which --keep-global-symbol does not end.
    COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=_Z* ${output}.whole
    COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --keep-global-symbol=kiln_aot_${part} ${output}.whole
            ${output}
    DEPENDS kiln_rt_pieces kiln_rt $<TARGET_OBJECTS:kiln_rt>
    VERBATIM COMMENT "Linking the part ${part} of libkiln_rt.a")
  list(APPEND rt_parts ${output})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/rt)

add_library(kiln_rt_archive STATIC
  "$<FILTER:$<TARGET_OBJECTS:kiln_rt>,EXCLUDE,rt/library/>"
  "$<FILTER:$<TARGET_OBJECTS:kiln_runtime>,INCLUDE,runtime/launch\\.>" ${rt_parts})
set_target_properties(kiln_rt_archive PROPERTIES OUTPUT_NAME kiln_rt LINKER_LANGUAGE C)
set_source_files_properties(${rt_parts} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
target_include_directories(kiln_rt_archive INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(kiln_rt_archive INTERFACE m -pthread)
add_library(kiln::kiln_rt ALIAS kiln_rt_archive)
