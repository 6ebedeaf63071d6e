# cmake --install: headers, library, tools, pkg-config file and CMake package.
#
# A process may have the installed library mapped: writing into the file would crash it. Every file
# is therefore copied to a temporary name in its folder and renamed over the old one.
set(KILN_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

# kiln_install(DESTINATION folder [PROGRAM] files...); files may be generator expressions.
function(kiln_install)
  cmake_parse_arguments(arg "PROGRAM;STRIP" "DESTINATION" "" ${ARGN})
  install(CODE "
    set(program ${arg_PROGRAM})
    set(strip ${arg_STRIP})
    set(strip_command \"${CMAKE_STRIP}\")
    set(destination \"${arg_DESTINATION}\")
    set(files \"${arg_UNPARSED_ARGUMENTS}\")
    include(\"${CMAKE_CURRENT_FUNCTION_LIST_DIR}/AtomicInstall.cmake\")")
endfunction()

include(CMakePackageConfigHelpers)
set(KILN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Kiln)
configure_package_config_file(${KILN_CMAKE_DIR}/KilnConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/KilnConfig.cmake
                              INSTALL_DESTINATION ${KILN_PACKAGE_DIR}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR
                                        CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/KilnConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH KILN_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(module kiln kiln_rt)
  configure_file(${KILN_CMAKE_DIR}/${module}.pc.in ${PROJECT_BINARY_DIR}/package/${module}.pc @ONLY)
endforeach()

file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/kiln/*.h)
kiln_install(DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln ${headers})
kiln_install(DESTINATION ${CMAKE_INSTALL_LIBDIR} PROGRAM STRIP
             $<TARGET_FILE:kiln> $<TARGET_SONAME_FILE:kiln> $<TARGET_LINKER_FILE:kiln>)
kiln_install(DESTINATION ${CMAKE_INSTALL_LIBDIR} $<TARGET_FILE:kiln_rt_archive>)
foreach(tool ${KILN_TOOLS})
  kiln_install(DESTINATION ${CMAKE_INSTALL_BINDIR} PROGRAM STRIP $<TARGET_FILE:${tool}>)
endforeach()

# Python's binding, where the distribution's Python looks below /usr and /usr/local.
find_program(KILN_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(KILN_PYTHON AND NOT DEFINED KILN_PYTHON_DIR)
  execute_process(COMMAND ${KILN_PYTHON} -c "import os, sys, sysconfig
print('lib/python{}.{}/{}'.format(*sys.version_info[:2],
                                  os.path.basename(sysconfig.get_path('purelib'))))"
                  OUTPUT_VARIABLE python_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(KILN_PYTHON_DIR ${python_dir} CACHE STRING "Where Python's binding is installed, below the prefix; empty: nowhere")
endif()
if(KILN_PYTHON_DIR)
  file(GLOB python_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bindings/python/kiln/*.py
       ${PROJECT_SOURCE_DIR}/bindings/python/kiln/py.typed)
  kiln_install(DESTINATION ${KILN_PYTHON_DIR}/kiln ${python_files})
endif()

kiln_install(DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${PROJECT_BINARY_DIR}/package/kiln.pc
             ${PROJECT_BINARY_DIR}/package/kiln_rt.pc)
kiln_install(DESTINATION ${KILN_PACKAGE_DIR} ${PROJECT_BINARY_DIR}/package/KilnConfig.cmake
             ${PROJECT_BINARY_DIR}/package/KilnConfigVersion.cmake
             ${KILN_CMAKE_DIR}/KilnAddProgram.cmake)
