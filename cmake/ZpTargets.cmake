# zp_add_layer(NAME LINKS target…): the static library of one layer from all its sources.
# Sources are globbed because a layer is its folder: the tree is the build.
function(zp_add_layer name)
  cmake_parse_arguments(ARG "" "" "LINKS;PRIVATE_LINKS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  add_library(zeroproof_${name} STATIC ${sources})
  add_library(zeroproof::${name} ALIAS zeroproof_${name})
  target_link_libraries(zeroproof_${name}
    PUBLIC ${ARG_LINKS} PRIVATE zeroproof_options fmt::fmt-header-only ${ARG_PRIVATE_LINKS})
  target_include_directories(zeroproof_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
endfunction()
