# What the functions of the library are made with: Eigen's headers, and loops that are compiled once
# for each kind of vectors.
find_path(KILN_EIGEN_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
target_include_directories(kiln_runtime SYSTEM PRIVATE ${KILN_EIGEN_INCLUDE_DIR})
set(dense_files runtime/lib/linear/kernels.cc)
foreach(file factors general real reflections self_adjoint singular)
  list(APPEND dense_files runtime/lib/linear/${file}.cc)
endforeach()
set_source_files_properties(${dense_files} PROPERTIES
  COMPILE_DEFINITIONS "EIGEN_DONT_PARALLELIZE;EIGEN_NO_DEBUG" COMPILE_OPTIONS -O2
  SKIP_PRECOMPILE_HEADERS ON)
set_source_files_properties(runtime/lib/linear/blocked.cc runtime/lib/linear/reflected.cc PROPERTIES
  COMPILE_OPTIONS -O2)
set(loop_options -O3 -ffp-contract=fast -fno-math-errno -fopenmp-simd)
set_source_files_properties(runtime/lib/linear/loops.cc PROPERTIES COMPILE_OPTIONS "${loop_options}"
  SKIP_PRECOMPILE_HEADERS ON)
set(fft_options -O3 -ffp-contract=fast)
set_source_files_properties(runtime/lib/fft/kernels.cc PROPERTIES COMPILE_OPTIONS "${fft_options}"
  SKIP_PRECOMPILE_HEADERS ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(runtime/lib/fft/kernels_avx2.cc PROPERTIES
    COMPILE_OPTIONS "${fft_options};-mavx2;-mfma" SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(runtime/lib/fft/kernels_avx512.cc PROPERTIES
    COMPILE_OPTIONS "${fft_options};-mavx512f;-mfma" SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(runtime/lib/linear/loops_avx2.cc PROPERTIES
    COMPILE_OPTIONS "${loop_options};-mavx2;-mfma" SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(runtime/lib/linear/loops_avx512.cc PROPERTIES
    COMPILE_OPTIONS "${loop_options};-mavx512f;-mfma;-mprefer-vector-width=512"
    SKIP_PRECOMPILE_HEADERS ON)
endif()
