# Precompiled headers: a whole build spends much of its time in the headers of the standard
# library and of GoogleTest. Each set is compiled once, and every target of the same flags reuses it.
option(ZP_PRECOMPILE "Precompile the headers that most sources include" ON)

set(ZP_COMMON_HEADERS
  <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <span>
  <string> <string_view> <utility> <vector> <fmt/format.h>)

# zp_add_precompiled(NAME HEADER…): the common headers and these, for zp_precompile(… NAME).
function(zp_add_precompiled name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Has no code: ${name} is its precompiled header.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE fmt::fmt zeroproof_options)
  target_precompile_headers(${name} PRIVATE ${ZP_COMMON_HEADERS} ${ARGN})
endfunction()

if(ZP_PRECOMPILE)
  zp_add_precompiled(zeroproof_precompiled)
endif()

# zp_precompile(TARGET [NAME]): TARGET, which links fmt, is compiled with the headers of NAME.
# Sources still include what they use: ./zp tidy goes without.
function(zp_precompile target)
  set(name ${ARGN})
  if(NOT name)
    set(name zeroproof_precompiled)
  endif()
  if(ZP_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
