# zp_add_layer(NAME LINKS target…): the static library of one layer from all its sources.
# Sources are globbed because a layer is its folder: the tree is the build.
# Header-only packages stay out of the installed targets: their headers are in .cpp files only.
set(ZP_HEADER_ONLY nlohmann_json::nlohmann_json zeroproof_options)

function(zp_add_layer name)
  cmake_parse_arguments(ARG "" "" "LINKS;PRIVATE_LINKS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${pattern})
    list(FILTER headers EXCLUDE REGEX ${pattern})
  endforeach()
  foreach(link IN LISTS ARG_PRIVATE_LINKS ITEMS fmt::fmt zeroproof_options)
    if(link IN_LIST ZP_HEADER_ONLY)
      list(APPEND private_links $<BUILD_INTERFACE:${link}>)
    else()
      list(APPEND private_links ${link})
    endif()
  endforeach()

  add_library(zeroproof_${name} STATIC ${sources})
  add_library(zeroproof::${name} ALIAS zeroproof_${name})
  set_target_properties(zeroproof_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(zeroproof_${name} PUBLIC ${ARG_LINKS} PRIVATE ${private_links})
  zp_precompile(zeroproof_${name})
  zp_unity(zeroproof_${name} ${sources})
  target_link_libraries(zeroproof_${name} PUBLIC zeroproof_headers)
  install(TARGETS zeroproof_${name} EXPORT zeroproof_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

  # Never installed: so that each header is compiled alone.
  add_library(zeroproof_${name}_headers INTERFACE)
  target_sources(zeroproof_${name}_headers INTERFACE
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(zeroproof_${name}_headers INTERFACE zeroproof_headers)
endfunction()

# The headers that are installed: public ones, and those in internal/ that they include.
function(zp_add_public_headers)
  set(folder ${PROJECT_SOURCE_DIR}/include)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${folder}/zeroproof/*.h)
  add_library(zeroproof_headers INTERFACE)
  add_library(zeroproof::headers ALIAS zeroproof_headers)
  set_target_properties(zeroproof_headers PROPERTIES EXPORT_NAME headers)
  target_sources(zeroproof_headers INTERFACE FILE_SET HEADERS BASE_DIRS ${folder} FILES ${headers})
  target_link_libraries(zeroproof_headers INTERFACE tl::expected)
  install(TARGETS zeroproof_headers EXPORT zeroproof_targets
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()
