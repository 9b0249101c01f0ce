# Compiler settings shared by every target, as one interface library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# ccache accepts a precompiled header only with the word that macros before it make no difference.
find_program(ZP_CCACHE ccache)
if(ZP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ZP_CCACHE})
endif()

add_library(zeroproof_options INTERFACE)
# -ffp-contract=off: the same bits from every compiler and preset.
target_compile_options(zeroproof_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Wno-missing-field-initializers -Woverloaded-virtual -ffp-contract=off $<$<BOOL:${ZP_WERROR}>:-Werror>)
# A failed check names its file from the root of the tree: the same words wherever it was built.
target_compile_options(zeroproof_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
if(ZP_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(zeroproof_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
target_include_directories(zeroproof_options INTERFACE ${PROJECT_SOURCE_DIR}
                           ${PROJECT_SOURCE_DIR}/include)
if(ZP_SANITIZE)
  target_compile_options(zeroproof_options INTERFACE
    -fsanitize=${ZP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(zeroproof_options INTERFACE -fsanitize=${ZP_SANITIZE})
  # GCC 12 takes the checks it adds to std::regex for reads of what is not set (GCC bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(zeroproof_options INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endif()
if(ZP_BUILD_FUZZ)
  target_compile_options(zeroproof_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
