# Precompiled headers: a build from nothing spends half its time in the headers of the standard
# library and of GoogleTest. ccache keys on every header by itself, so the two are alternatives.
if(ZP_CCACHE)
  set(precompile_default OFF)
else()
  set(precompile_default ON)
endif()
option(ZP_PRECOMPILE "Precompile the headers that most sources include" ${precompile_default})

set(ZP_COMMON_HEADERS
  <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <span>
  <string> <string_view> <utility> <vector> <fmt/format.h>)

# zp_precompile(TARGET HEADER…): the common headers and these. Sources still include what they use:
# a build with ccache, and ./zp tidy, go without.
function(zp_precompile target)
  if(ZP_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ZP_COMMON_HEADERS} ${ARGN})
  endif()
endfunction()
