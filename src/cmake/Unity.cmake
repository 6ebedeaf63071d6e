# Sources of a folder are compiled together, a few at a time (CMake's unity builds): what they include
# is read once, and templates that they use are instantiated and optimised once. A build takes little
# more than half of the time, and a file that was changed takes longer: those who write code may
# prefer OFF.
option(KILN_UNITY_BUILD "Compile several sources of a folder at a time" ON)

# Sources of a group have so many blocks of 4 KiB, which take some five seconds. In blocks, as a group
# should not change by every edit.
set(KILN_UNITY_BLOCKS 14)

# The names that a source defines at the beginning of a line, with types, functions and variables of
# its unnamed namespace among them, and those that it uses of other namespaces.
function(kiln_names file defined used)
  file(READ ${file} text)
  # These would be parts of CMake's lists.
  string(REGEX REPLACE "[][;]" "(" text "${text}")
  set(name "[A-Za-z_][A-Za-z0-9_]*")
  string(REGEX MATCHALL "\n(struct|class|union|enum|enum class|#define) ${name}|\nusing ${name} =|\n${name}[A-Za-z0-9_:<>,&* ]*[ &*>]${name}(\\(| =|{)"
         names "\n${text}")
  list(TRANSFORM names REPLACE "( =|\\(|{)$" "")
  list(TRANSFORM names REPLACE "^.*[^A-Za-z0-9_]" "")
  set(${defined} ${names} PARENT_SCOPE)
  string(REGEX MATCHALL "\nusing [A-Za-z0-9_:]+::${name}" names "\n${text}")
  list(TRANSFORM names REPLACE "^.*:" "")
  set(${used} ${names} PARENT_SCOPE)
endfunction()

# Whether a source has the flags of its target, and no others.
function(kiln_has_own_flags target source result)
  set(${result} FALSE PARENT_SCOPE)
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES SKIP_PRECOMPILE_HEADERS)
    get_source_file_property(value ${source} TARGET_DIRECTORY ${target} ${property})
    if(value)
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Compiles the sources of a target in groups. Their own flags are set before.
function(kiln_unity_build target)
  if(NOT KILN_UNITY_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes a source for a header here.
  target_compile_options(${target} PRIVATE
                         $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "^[^$]*\\.cc$")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${base} NORMALIZE)
    kiln_has_own_flags(${target} ${source} apart)
    if(apart)
      continue()
    endif()
    # It goes into the first group of its folder that has room for it and defines no name of its own
    # for something else.
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    file(SIZE ${source} bytes)
    math(EXPR blocks "${bytes} / 4096 + 1")
    kiln_names(${source} defined used)
    foreach(number RANGE 1 1000)
      set(group ${folder}_${number})
      list(JOIN ${group}_defined "|" its_defined)
      list(JOIN ${group}_used "|" its_used)
      set(common ${defined})
      list(FILTER common INCLUDE REGEX "^(${its_defined}|${its_used})$")
      set(hidden ${used})
      list(FILTER hidden INCLUDE REGEX "^(${its_defined})$")
      math(EXPR total "0${${group}_blocks} + ${blocks}")
      if(NOT DEFINED ${group}_blocks OR
         (total LESS_EQUAL KILN_UNITY_BLOCKS AND NOT common AND NOT hidden))
        break()
      endif()
    endforeach()
    list(APPEND ${group}_defined ${defined})
    list(APPEND ${group}_used ${used})
    set(${group}_blocks ${total})
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()
